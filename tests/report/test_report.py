"""The report: one file that fetches nothing, shows other people's text as text, and is written whole or not at all."""

import copy
import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from report_page import (
    HOSTILE,
    Page,
    check_nothing_is_fetched,
    check_only_our_tags,
    check_the_policy_allows_exactly_the_scripts,
)

pytest.importorskip("plotly")
pytest.importorskip("openTSNE")

from varitext.charts.records import DOCUMENT_CURVES, Axis, for_plotly, one_line, training_curves
from varitext.corpora.documents import Documents, SourceFile
from varitext.documents.charts import (
    MAX_GROUPS,
    OTHERS,
    choose_documents,
    choose_examples,
    label_groups,
    posterior_spread,
    topic_groups,
)
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.evaluation.map_layout import lay_out
from varitext.models.documents import DOCUMENT_MODELS
from varitext.report import ColumnValues, write_document_report
from varitext.report.documents import document_tiles, in_the_paper
from varitext.report.page import for_script
from varitext.text.vocabulary import Vocabulary


def counts_of(documents: int, words: int = 40, seed: int = 0) -> scipy.sparse.csr_matrix:
    """Two kinds of documents, each with its own half of the words."""
    generator = np.random.default_rng(seed)
    rates = np.full((documents, words), 0.1)
    rates[::2, : words // 2] = rates[1::2, words // 2 :] = 1.5
    counts = generator.poisson(rates)
    counts[:, 0] += 1  # no document is empty
    return scipy.sparse.csr_matrix(counts.astype(np.float32))


def corpus(documents: int, words: tuple[str, ...]) -> Documents:
    files = (SourceFile("part.feat", "ab" * 32),)
    return Documents("toy", "test", files, counts=counts_of(documents, len(words)), vocabulary=Vocabulary(words))


@pytest.fixture(scope="module")
def model() -> DocumentModel:
    words = (*HOSTILE, *(f"word{number}" for number in range(40 - len(HOSTILE))))
    return DocumentModel(latent_dim=4, epochs=2, batch_size=64, threads=1).fit(corpus(120, words))


@pytest.fixture(scope="module")
def hostile_page(model: DocumentModel, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    documents = corpus(60, model.fitted_.vocabulary.words)
    write_document_report(
        model,
        documents,
        path,
        record=model.perplexity_record(documents, samples=2),
        corpus_name=f"toy {HOSTILE[0]}",
        labels=[HOSTILE[row % 3] for row in range(60)],
        titles=[HOSTILE[row % len(HOSTILE)] for row in range(60)],
        columns=[
            ColumnValues(HOSTILE[1], [HOSTILE[row % 3] for row in range(60)]),
            ColumnValues("when", [f"2026-0{1 + row % 4}" for row in range(60)], over_time=True),
        ],
    )
    return path.read_text(encoding="utf-8")


def write_small(model: DocumentModel, documents, path: Path, **columns) -> Page:
    record = model.perplexity_record(documents, samples=2)
    write_document_report(model, documents, path, record=record, corpus_name="toy", **columns)
    return Page(path.read_text(encoding="utf-8"))


def test_topics_by_column_are_on_the_page(hostile_page):
    text = Page(hostile_page).text
    assert f"Topics by {HOSTILE[1]}" in text and "Topics over time" in text and "Distinctive words" in text


def test_nothing_is_fetched(hostile_page):
    check_nothing_is_fetched(hostile_page)
    check_the_policy_allows_exactly_the_scripts(hostile_page)


def test_hostile_text_stays_text(model, hostile_page):
    check_only_our_tags(hostile_page)
    topic_words = {word for topic in model.topics() for word in topic.words}
    shown_words = topic_words.intersection(HOSTILE)
    assert shown_words
    for text in (*shown_words, HOSTILE[0]):  # the first is in the corpus' name too
        assert text in Page(hostile_page).text


def test_the_headline_is_there(model, tmp_path):
    documents = corpus(30, model.fitted_.vocabulary.words)
    record = model.perplexity_record(documents, samples=2)
    page = write_small(model, documents, tmp_path / "report.html")
    low, high = record.per_document_interval_95
    for value in (record.per_document_perplexity, low, high, record.iwae_per_document_perplexity):
        assert f"{value:,.1f}" in page.text
    assert f"{record.unigram_per_document_perplexity:,.1f}" in page.text
    assert f"{record.ratio_to_unigram:.3f}" in page.text and f"{record.kl_per_word:.3f}" in page.text
    assert f"{record.n_tokens:,}" in page.text
    assert documents.sha256 in page.text and "ab" * 32 in page.text


@pytest.mark.parametrize("number", [1, 2, 3, 9, 10, 12])
def test_few_documents_are_enough(model, tmp_path, number):
    page = write_small(model, counts_of(number), tmp_path / "report.html", labels=["only"] * number)
    assert sum(len(trace["customdata"]) for trace in page.figures[0]["data"]) == number


def test_the_papers_figure_stands_beside_where_it_is_of_the_same_documents(model):
    documents = dataclasses.replace(corpus(12, model.fitted_.vocabulary.words), name="20newsgroups-nvdm")

    def sized(name, latent_dim=50):
        stand_in = DocumentModel(name, latent_dim=latent_dim)
        stand_in.fitted_ = replace(model.fitted_, model=name, corpus=None)
        return stand_in

    def published(name, documents, latent_dim=50):
        return [(tile.value, tile.note) for tile in in_the_paper(sized(name, latent_dim), documents)]

    assert published("nvdm", documents) == [("836", "the same model, same K and documents")]
    assert published("nvdm_dcm", documents) == [("836", "NVDM with a multinomial likelihood, same K and documents")]
    assert published("docnade", documents) == [("896", "the same model, same K and documents")]
    assert not published("nvdm", documents, latent_dim=3) and not published("nvdm_gsm", documents)
    assert not published("nvdm", dataclasses.replace(documents, part="train"))
    assert not published("nvdm", dataclasses.replace(documents, name="mine"))
    record = model.perplexity_record(documents, samples=2)
    tiles = document_tiles(sized("nvdm"), record, documents)
    assert "836" in [tile.value for tile in tiles if tile.name == "the paper"]
    assert "the paper" not in [tile.name for tile in document_tiles(model, record, documents)]


def test_a_perplexity_of_a_sample_says_so(model, tmp_path, monkeypatch):
    documents = corpus(12, model.fitted_.vocabulary.words)
    for most, said in ((5, True), (12, False)):
        monkeypatch.setattr("varitext.report.documents.MAX_EVALUATED", most)
        write_document_report(model, documents, tmp_path / "report.html")
        page = Page((tmp_path / "report.html").read_text(encoding="utf-8")).text
        assert ("sample of 5 of 12 documents" in page) is said


def test_a_perplexity_of_training_documents_is_never_the_large_one(model, tmp_path):
    documents = corpus(12, model.fitted_.vocabulary.words)
    record = model.perplexity_record(documents, samples=2)
    own = copy.copy(model)
    own.fitted_ = replace(own.fitted_, corpus=documents.recorded())
    held_out, trained, *_ = document_tiles(own, record, documents)
    assert (held_out.name, held_out.value) == ("held-out perplexity", f"{model.fitted_.dev_perplexity:,.1f}")
    assert (trained.name, trained.value) == ("on the training documents", f"{record.per_document_perplexity:,.1f}")
    page = write_small(own, documents, tmp_path / "report.html")
    assert "would be worse on new ones" in page.text
    own.fitted_ = replace(own.fitted_, corpus=documents.recorded() | {"part": "train"})
    assert document_tiles(own, record, documents)[0].name == "perplexity per document"


@pytest.mark.parametrize("name", DOCUMENT_MODELS)
def test_every_model_of_documents_has_a_report(name, tmp_path):
    if name == "lda":
        pytest.importorskip("tomotopy")
    documents = corpus(40, tuple(f"word{number}" for number in range(20)))
    fitted = DocumentModel(name, latent_dim=3, epochs=2, batch_size=64, threads=1, n_topics=3).fit(documents)
    page = write_small(fitted, documents, tmp_path / "report.html", labels=["odd", "even"] * 20, folder=tmp_path)
    headings = ("Document map", "Topics", "Example documents", "Evaluation", "Training", "Latent dimensions")
    places = [page.text.index(heading) for heading in headings]
    assert places == sorted(places)  # it opens on the model
    for topic in fitted.topics():
        assert topic.name in page.text
    for figure in page.figures:
        assert figure["data"], "a figure without anything in it"
    spread = fitted.posterior(documents).std.any()
    assert ("there is no uncertainty to show" in page.text) != spread


def test_texts_without_labels_and_with_unknown_words(tmp_path):
    texts = ["the cat sat on the warm mat", "a dog ran in the green park", "cats like warm mats"] * 6
    model = DocumentModel(latent_dim=2, epochs=1, threads=1).fit(texts)
    page = write_small(model, [*texts, "zzz qqq"], tmp_path / "report.html")
    assert sum(len(trace["customdata"]) for trace in page.figures[0]["data"]) == len(texts)
    assert "1 without a known word left out" in page.text


def test_an_error_leaves_the_old_file(model, tmp_path):
    path = tmp_path / "report.html"
    documents = counts_of(12)
    record = model.perplexity_record(documents, samples=1)
    path.write_text("before")
    with pytest.raises(InputError, match="3 labels given for 12 documents"):
        write_document_report(model, documents, path, record=record, corpus_name="toy", labels=["a"] * 3)
    with pytest.raises(InputError, match="is a folder"):
        write_document_report(model, documents, tmp_path, record=record, corpus_name="toy")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_a_picture_that_fails_leaves_no_file(model, tmp_path, monkeypatch):
    documents = counts_of(12)
    record = model.perplexity_record(documents, samples=1)
    monkeypatch.setattr(DocumentModel, "similar_words", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_document_report(model, documents, tmp_path / "new" / "report.html", record=record, corpus_name="toy")
    assert not list(tmp_path.rglob("*.html"))


def test_without_the_extra_one_line_says_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setattr("varitext.report.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'varitext\[report\]'"):
        write_document_report(model, counts_of(12), tmp_path / "report.html", record=None, corpus_name="toy")


def test_the_map_repeats_and_keeps_like_with_like():
    vectors = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    vectors[::2, 0] += 6
    vectors[1::2, 1] += 6
    places = lay_out(vectors, seed=3)
    assert np.array_equal(places, lay_out(vectors, seed=3)) and np.isfinite(places).all()
    apart = np.linalg.norm(places[::2].mean(0) - places[1::2].mean(0))
    assert apart > 2 * np.linalg.norm(places[::2] - places[::2].mean(0), axis=1).mean()


def test_documents_that_are_all_alike_have_a_map():
    assert np.isfinite(lay_out(np.ones((40, 3), np.float32), seed=0)).all()
    assert np.isfinite(lay_out(np.ones((40, 1), np.float32), seed=0)).all()
    assert np.isfinite(lay_out(np.zeros((5, 1), np.float32), seed=0)).all()


def test_many_labels_share_the_last_colour():
    groups = label_groups(tuple(f"label{number:03}" for number in range(50)) * 2)
    assert len(groups) == MAX_GROUPS and groups[0].name == OTHERS
    assert sorted(np.concatenate([group.rows for group in groups])) == list(range(100))


def test_large_corpora_are_sampled_the_same_way_each_time(model):
    counts = counts_of(50)
    sample = choose_documents(model, counts, labels=list(map(str, range(50))), most=20)
    again = choose_documents(model, counts, labels=list(map(str, range(50))), most=20)
    assert len(sample) == 20 and sample.of == 50 and sample.labels == again.labels
    rows = [int(label) for label in sample.labels]
    assert np.array_equal(sample.mean, model.posterior(counts[rows]).mean)
    lengths = [example.words for example in choose_examples(sample, model.topics())]
    assert lengths == sorted(lengths)


def test_dimensions_whose_interval_covers_zero_are_left_out(model):
    sample = choose_documents(model, counts_of(20))
    topics, dimensions = model.topics(), model.latent_dimensions()
    example = choose_examples(sample, topics, [0.5])[0]
    assert example.topics[0][1] == pytest.approx(sample.memberships[example.row].max())
    mean = np.array([0.5, -2.0, 3.0, 0.1])
    for std, shown in ((np.ones(4), [3.0, 2.0]), (np.full(4, 5.0), None), (np.zeros(4), [3.0, 2.0, 0.5, 0.1])):
        changed = dataclasses.replace(sample, mean=np.tile(mean, (20, 1)), std=np.tile(std, (20, 1)))
        chart = posterior_spread(example, changed, dimensions, Axis())
        assert (None if chart is None else chart.values.tolist()) == shown


def test_topics_have_the_colours_of_the_map_the_most_frequent_first(model):
    sample = choose_documents(model, counts_of(50))
    places = np.random.default_rng(0).normal(size=(50, 2))
    groups = topic_groups(sample, model.topics(), places)
    assert len({group.colour for group in groups}) == len(groups)
    for group in groups:
        assert {one_line(model.topics()[place].name, 60) for place in sample.topic[group.rows]} == {group.name}
    sizes = [len(group.rows) for group in groups]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == 50
    names = {topic.name for topic in model.topics()}
    assert {group.name for group in groups} <= {one_line(name, 60) for name in names}


def test_curves_go_on_after_partial_fit():
    history = [
        {"epoch": epoch, "dev_perplexity": 9.0 - epoch, "dev_kl": epoch, "kl_weight": 1} for epoch in (0, 1, 2, 1)
    ]
    perplexity, kl = training_curves(history, DOCUMENT_CURVES)
    assert list(perplexity.x) == list(kl.x) == [0, 1, 2, 3]
    assert training_curves([], DOCUMENT_CURVES) == training_curves(history[:1], DOCUMENT_CURVES) == []


def test_text_is_made_plain():
    assert one_line("a\x00b\n\tc\u202ed \ud800 e") == "a b c d e"
    assert one_line("one two three", 9) == "one two…" and one_line("x" * 20, 5) == "xxxx…"
    assert for_plotly('"<b>" & c') == '"&lt;b&gt;" &amp; c'
    assert json.loads(for_script(json.dumps("</script>&<!--"))) == "</script>&<!--"
