"""Topics as users hold them: tables, changes, guidance, the model folder."""

import contextlib
import copy
import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import chi2_contingency
from sklearn.metrics import adjusted_rand_score
from synthetic import topic_documents

from lab.faults.strangers import seal
from varitext import DocumentModel, InputError
from varitext.documents import topics as topics_module
from varitext.documents.topic_records import read_topic_table
from varitext.documents.topic_words import DEFAULT_WORDING, WordCounts, cohesion_of, documents_having, name_topics
from varitext.evaluation.shares import shares_by_value

WORDS = [f"{kind}{chr(97 + i)}" for kind in ("space", "sport", "faith", "trade") for i in range(15)]
COUNTS = topic_documents(documents=400)
TEXTS = [" ".join(word for column in row.indices for word in [WORDS[column]] * int(row[0, column])) for row in COUNTS]
KINDS = [["space", "sport", "faith", "trade"][np.asarray(row.sum(0)).reshape(4, 15).sum(1).argmax()] for row in COUNTS]


@pytest.fixture(scope="module")
def texts_model():
    return DocumentModel(latent_dim=4, epochs=30, threads=1, n_topics=4).fit(TEXTS)


@pytest.fixture
def model(texts_model, tmp_path):
    """A copy that a test may change."""
    texts_model.save(tmp_path / "model")
    return DocumentModel.load(tmp_path / "model")


def kind_of(topic) -> str:
    kinds = {word[:5] for word in topic.words[:5]}
    assert len(kinds) == 1, topic.words
    return kinds.pop()


# Tables


def test_regions_are_the_topics_that_made_the_documents(texts_model):
    topics = texts_model.topics(5)
    assert sorted(map(kind_of, topics)) == ["faith", "space", "sport", "trade"]
    assert sum(topic.documents for topic in topics) == len(TEXTS)
    assert sum(topic.tokens for topic in topics) == COUNTS.sum()
    assert sum(topic.share for topic in topics) == pytest.approx(1)
    for topic in topics:
        assert topic.documents == pytest.approx(KINDS.count(kind_of(topic)), abs=4)
        assert len(topic.words) == len(topic.weights) == 5 and set(topic.name.replace(",", "").split()) <= set(WORDS)
        assert topic.coherence > 0
        for typical in topic.typical:
            assert KINDS[typical.row] == kind_of(topic) and TEXTS[typical.row].startswith(typical.text[:100])


def test_documents_are_told_their_topic_and_how_sure_it_is(texts_model):
    known, other = {kind_of(topic): topic for topic in texts_model.topics()}, ["nothing that it knows", "spacea"]
    records = texts_model.document_info(TEXTS[:50] + other)
    assert [record.topic for record in records[:50]] == [known[kind].number for kind in KINDS[:50]]
    memberships = texts_model.topic_memberships(TEXTS[:50] + other)
    np.testing.assert_allclose(memberships.sum(1), 1)
    columns = [topic.number for topic in texts_model.topics()]
    for record, row in zip(records[:50], memberships, strict=False):
        first, second = np.argsort(-row)[:2]
        assert (record.topic, record.second_topic) == (columns[first], columns[second])
        assert record.probability == row[first] > row[second] == record.second_probability
    nothing, short = records[50:]
    assert nothing.topic is nothing.surprise is nothing.probability is None and nothing.known_words == 0
    assert short.known_words == 1 and short.spread > np.mean([record.spread for record in records[:50]])
    assert short.probability < np.mean([record.probability for record in records[:50]])


def test_documents_of_mixed_words_surprise(texts_model):
    generator = np.random.default_rng(5)
    mixed = [" ".join(generator.choice(WORDS, 40)) for _ in range(30)]
    usual, odd = (
        np.mean([record.surprise for record in texts_model.document_info(texts)]) for texts in (TEXTS[:100], mixed)
    )
    assert odd > usual + 0.3 and abs(usual) < 0.2


def test_tables_become_data_frames(texts_model):
    pandas = pytest.importorskip("pandas")
    frame = texts_model.topics().to_frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame["number"]) == [0, 1, 2, 3]
    documents = texts_model.document_info(TEXTS[:3]).to_frame()
    assert list(documents["row"]) == [0, 1, 2] and {"topic", "probability", "surprise"} <= set(documents.columns)


def test_frames_can_have_the_names_of_bertopic(texts_model):
    pytest.importorskip("pandas")
    topics = texts_model.topics().to_frame("bertopic")
    assert {"Topic", "Count", "Name", "Representation", "Representative_Docs"} <= set(topics.columns)
    assert list(topics["Count"]) == [topic.documents for topic in texts_model.topics()]
    assert topics["Representative_Docs"][0] == [one.text for one in texts_model.topics()[0].typical]
    documents = texts_model.document_info([TEXTS[0], "nothing that it knows"]).to_frame("bertopic")
    assert documents["Topic"][1] == -1 and documents["Topic"][0] >= 0 and "Probability" in documents.columns
    with pytest.raises(InputError, match="names must be one of varitext, bertopic"):
        texts_model.topics().to_frame("gensim")


def test_shares_by_class_have_intervals(texts_model):
    shares = texts_model.topic_shares(TEXTS, KINDS)
    names = {topic.number: kind_of(topic) for topic in texts_model.topics()}
    for share in shares:
        assert 0 <= share.low <= share.share <= share.high <= 1 and share.of == KINDS.count(share.value)
        assert (share.share > 0.9) == (names[share.topic] == share.value)
    one_value = texts_model.topic_shares(TEXTS, ["all"] * len(TEXTS))
    assert [share.documents for share in one_value] == [topic.documents for topic in texts_model.topics()]
    with pytest.raises(InputError, match="400 documents have 1 values"):
        texts_model.topic_shares(TEXTS, ["all"])


def test_shares_are_counts_with_jeffreys_intervals():
    shares = shares_by_value([0, 0, 1, None], ["a", "a", "a", "b"], [0, 1])
    assert [(one.value, one.category, one.documents, one.of) for one in shares] == [
        ("a", 0, 2, 3), ("a", 1, 1, 3), ("b", 0, 0, 1), ("b", 1, 0, 1),
    ]  # fmt: skip
    ends = betainc(1.5, 2.5, [shares[1].low, shares[1].high])  # 1 of 3, and a half on either side
    assert ends == pytest.approx([0.025, 0.975])
    assert shares[2].low == 0 and shares[2].high < 1


def test_matrices_for_other_tools_are_distributions(texts_model):
    matrices = texts_model.topic_matrices([*TEXTS[:20], "unknown"])
    assert matrices.topic_term_dists.shape == (4, len(matrices.vocab)) and matrices.doc_topic_dists.shape == (20, 4)
    for rows in (matrices.topic_term_dists, matrices.doc_topic_dists):
        np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-5)
    assert matrices.doc_lengths.sum() == matrices.term_frequency.sum() == COUNTS[:20].sum()


def test_transform_gives_topics_with_their_names(model):
    pandas = pytest.importorskip("pandas")
    names = [f"topic{topic.number}: {topic.name}" for topic in model.topics()]
    assert list(model.get_feature_names_out())[:2] == ["documentmodel0", "documentmodel1"]
    model.set_params(transform_to="topics")
    assert list(model.get_feature_names_out()) == names
    np.testing.assert_array_equal(model.transform(TEXTS[:5]), model.topic_memberships(TEXTS[:5]))
    frame = model.set_output(transform="pandas").transform(TEXTS[:5])
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == names
    with pytest.raises(InputError, match="transform_to must be one of vectors, topics"):
        DocumentModel(transform_to="colours").fit(TEXTS)


def test_notebooks_show_the_topics(model):
    model.rename_topic(1, "<b>bold</b>")
    shown = model._repr_mimebundle_()["text/html"]
    assert all(topic.name in shown for topic in model.topics() if topic.number != 1)
    assert "&lt;b&gt;bold&lt;/b&gt;" in shown and "<b>bold" not in shown
    assert model._repr_html_().endswith(shown[shown.rindex("<table>") :])
    assert "documents</th>" not in DocumentModel()._repr_mimebundle_()["text/html"]  # not fitted


def test_a_fit_starts_from_seed_words_and_shows_its_progress(capsys, tmp_path):
    seeds = {"money": ["tradea", "tradeb"], "belief": ["faitha", "faithb"]}
    fitted = DocumentModel(latent_dim=4, epochs=6, threads=1, n_topics=4, seed_topics=seeds, verbose=True).fit(TEXTS)
    assert {"money", "belief"} < {topic.name for topic in fitted.topics()}
    assert "100%  epoch 6" in capsys.readouterr().err
    fitted.save(tmp_path / "model")
    assert DocumentModel.load(tmp_path / "model").seed_topics == seeds
    fitted.set_params(verbose=False).fit(TEXTS)
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match="'money' needs a list of words"):
        DocumentModel(seed_topics={"money": "trade"}).fit(TEXTS)
    unknown = DocumentModel(latent_dim=4, seed_topics={"odd": ["zyzzyva"]}, verbose=True)
    with pytest.raises(InputError, match="none of the seed words of 'odd'"):
        unknown.fit(TEXTS)
    assert capsys.readouterr().err == ""  # it was said before training


def test_topics_are_found_by_a_query(texts_model):
    known = {kind_of(topic): topic.number for topic in texts_model.topics()}
    for kind, number in known.items():
        found = texts_model.find_topics(f"{kind}a and {kind}b", n=3)
        assert found[0][0] == number and len(found) == 3 and found[0][1] > 0.5
        assert [likeness for _, likeness in found] == sorted((likeness for _, likeness in found), reverse=True)
    assert len(texts_model.find_topics("spacea", n=9)) == 4
    with pytest.raises(InputError, match="no word of the query 'nothing known' is among the 60 words"):
        texts_model.find_topics("nothing known")


# Changes


def test_topics_are_merged_split_renamed_and_dropped(model):
    before = {topic.number: topic for topic in model.topics()}
    memberships = model.topic_memberships(TEXTS[:20])
    model.merge_topics([3, 1]).rename_topic(1, "both")
    after = {topic.number: topic for topic in model.topics()}
    assert list(after) == [1, 0, 2] and after[1].name == "both"  # the largest first
    assert after[1].documents == before[1].documents + before[3].documents and after[1].coherence is None
    np.testing.assert_allclose(model.topic_memberships(TEXTS[:20])[:, 0], memberships[:, 1] + memberships[:, 3])
    model.split_topic(1)
    assert sorted(topic.number for topic in model.topics()) == [0, 1, 2, 4]
    assert sorted(topic.words for topic in model.topics()) == sorted(topic.words for topic in before.values())
    model.drop_topics([0])
    left = model.topic_memberships(TEXTS[:20])
    np.testing.assert_allclose(left.sum(1), 1)
    assert all(record.topic in (1, 2, 4) for record in model.document_info(TEXTS[:20]))


def test_a_topic_that_was_not_merged_is_split_by_documents(model):
    model.refit_topics(TEXTS, 3)
    mixed = max(model.topics(), key=lambda topic: topic.documents)
    with pytest.raises(InputError, match="splitting it needs documents"):
        model.split_topic(mixed.number)
    model.split_topic(mixed.number, TEXTS)
    assert len(model.topics()) == 4 and sum(topic.documents for topic in model.topics()) == len(TEXTS)
    found = model.topic_memberships(TEXTS).argmax(1)
    assert adjusted_rand_score(KINDS, found) > 0.9


def test_those_most_alike_are_merged_first(model):
    model.refit_topics(TEXTS, 8)
    tree = model.topic_tree()
    assert len(tree) == 7 and sorted(tree[-1].left + tree[-1].right) == list(range(8))
    assert [merge.distance for merge in tree] == sorted(merge.distance for merge in tree)
    model.reduce_topics(4)
    assert len(model.topics()) == 4
    assert adjusted_rand_score(KINDS, model.topic_memberships(TEXTS).argmax(1)) > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model.rename_topic(9, "x"), "there is no topic 9; there are 0, 1, 2, 3"),
        (lambda model: model.rename_topic(1, " "), "topic 1 needs a name"),
        (lambda model: model.merge_topics([2, 2]), "at least two topics"),
        (lambda model: model.drop_topics([0, 1, 2, 3]), "at least one topic must stay"),
        (lambda model: model.reduce_topics(0), "n_topics must be at least 1"),
        (lambda model: model.refit_topics(TEXTS, 0), "n_topics must be at least 1"),
        (lambda model: model.refit_topics(TEXTS, 4, {"x": ["zyzzyva"]}), "none of the seed words of 'x'"),
        (lambda model: model.refit_topics(TEXTS, 4, {"x": "spacea"}), "'x' needs a list of words"),
        (lambda model: model.refit_topics(TEXTS, 4, {}), "names with lists of words"),
        (lambda model: model.refit_topics(["nothing known"]), "none of the 1 documents has a word"),
    ],
)
def test_impossible_changes_are_refused(model, change, message):
    before = model.topics()
    with pytest.raises(InputError, match=message):
        change(model)
    assert model.topics() == before


# Guidance, and how many


def test_seed_words_make_topics(model):
    model.refit_topics(TEXTS, 5, {"money": ["tradea", "tradeb", "zyzzyva"], "belief": ["faithc", "faithd"]})
    topics = {topic.name: topic for topic in model.topics(15)}
    assert len(topics) == 5 and [kind_of(topics[name]) for name in ("money", "belief")] == ["trade", "faith"]
    first = model.fitted_.regions.seeds[0]
    assert first["number"] == topics["money"].number
    assert first["unknown_words"] == ["zyzzyva"] and first["cosine_to_seed"] > 0.8
    assert set(first["words_shown"]) <= {"tradea", "tradeb"}


def test_the_number_is_chosen_by_held_out_documents():
    model = DocumentModel("nvdm", latent_dim=4, epochs=30, threads=1).fit(TEXTS)
    assert 3 <= len(model.topics()) <= 8 and "held-out log-likelihood" in model.fitted_.regions.choice.how


def test_two_documents_or_documents_all_alike_have_what_topics_they_can():
    with pytest.warns(UserWarning, match="50 topics requested, but only"):
        two = DocumentModel(latent_dim=2, epochs=2, threads=1, n_topics=50).fit(COUNTS[:2])
    assert len(two.topics()) <= 2
    alike = DocumentModel(latent_dim=2, epochs=2, threads=1).fit(COUNTS[[0] * 40])
    assert [topic.documents for topic in alike.topics()] == [40]


# The model folder


def test_topics_come_back_from_the_folder_and_are_read_without_the_model(model, tmp_path):
    model.merge_topics([0, 2], "joined").drop_topics([1])
    model.save(tmp_path / "again")
    loaded = DocumentModel.load(tmp_path / "again")
    assert loaded.topics(30) == model.topics(30) and loaded.topic_tree() == model.topic_tree()
    assert loaded.document_info(TEXTS[:9]) == model.document_info(TEXTS[:9])
    table = read_topic_table(tmp_path / "again")
    assert table is not None and table.topics == list(model.topics(30))
    loaded.save(tmp_path / "third")
    for name in ("topics.json", "topics.safetensors"):
        assert (tmp_path / "third" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_folder_of_an_interrupted_fit_gets_topics_from_documents(model, tmp_path):
    folder = tmp_path / "model"
    config = json.loads((folder / "config.json").read_text())
    for name in ("topics.json", "topics.safetensors"):
        (folder / name).unlink()
        del config["sha256"][name]
    del config["config_sha256"]
    (folder / "config.json").write_text(json.dumps(config))
    assert read_topic_table(folder) is None
    old = DocumentModel.load(folder)
    with pytest.raises(InputError, match="the model has no topics yet"):
        old.topics()
    assert len(old.latent_dimensions()) == 4
    assert len(old.refit_topics(TEXTS, 4).topics()) == 4


def test_changed_topics_are_refused(model, tmp_path):
    path = tmp_path / "model" / "topics.json"
    path.write_text(path.read_text().replace("space", "SPACE"))
    with pytest.raises(InputError, match=r"topics.json is damaged or was changed"):
        DocumentModel.load(tmp_path / "model")
    with pytest.raises(InputError, match=r"topics.json is damaged or was changed"):
        read_topic_table(tmp_path / "model")


@pytest.mark.parametrize(
    "place, value",
    [
        (("phrases", 0), 2**70),
        (("wording", "ngrams"), "2"),
        (("wording", "relevance"), None),
        (("choice", "number"), 2**63),
        (("groups", 0, "number"), 2**70),
        (("groups", 0, "name"), 5),
        (("length_line", "slope"), "steep"),
    ],
)
def test_a_value_of_another_type_is_refused(model, tmp_path, place, value):
    folder = tmp_path / "model"
    table = json.loads((folder / "topics.json").read_text())
    holder = table
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    (folder / "topics.json").write_text(json.dumps(table))
    seal(folder)
    with pytest.raises(InputError, match=r"must be|not a line of text"):
        DocumentModel.load(folder)


@pytest.mark.parametrize("name", ["topics.json", "metrics.jsonl"])
@pytest.mark.parametrize("content", ["[" * 100_000, "9" * 5000, '{"a": ' * 990 + "1" + "}" * 990, "{", "NaN"])
def test_json_that_cannot_be_read_is_refused(model, tmp_path, name, content):
    (tmp_path / "model" / name).write_text(content)
    seal(tmp_path / "model")
    with pytest.raises(InputError, match=r"cannot be read|not valid JSON lines|does not describe"):
        DocumentModel.load(tmp_path / "model")


def test_nothing_outside_the_folder_is_read(model, tmp_path):
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["sha256"]["../secret"] = "0"
    del config["config_sha256"]
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match="is not a file of the folder"):
        DocumentModel.load(tmp_path / "model")


def test_an_update_keeps_the_topics(model):
    before = [topic.name for topic in model.topics()]
    model.partial_fit(TEXTS[:100], epochs=1)
    assert [topic.name for topic in model.topics()] == before
    assert model.topic_memberships(TEXTS[:5]).shape == (5, 4)


def test_a_name_stays_after_a_merge_only_if_its_topic_has_most_of_the_documents(model):
    largest, second, _, smallest = model.topics()
    model.rename_topic(smallest.number, "mine").reduce_topics(1)
    assert [topic.name for topic in model.topics()] != ["mine"]
    model.split_topic(0).rename_topic(0, "most").merge_topics([0, 4])
    assert (model.topics()[0].name == "most") == (largest.documents > second.documents)
    with pytest.raises(InputError, match="topic 5 is called 'taken' already"):
        model.rename_topic(5, "taken").rename_topic(6, "taken")


# Sizes


def test_sizes_are_counts_of_all_documents_largest_first(model, monkeypatch):
    """Also where topics are found from a sample, and documents are counted some at a time."""
    monkeypatch.setattr(topics_module, "MAX_DOCUMENTS", 150)
    monkeypatch.setattr(topics_module, "DIRECTIONS_AT_ONCE", 37)
    model.refit_topics(TEXTS, 6)
    sizes = [topic.documents for topic in model.topics()]
    assert sizes == np.bincount(model.topic_memberships(TEXTS).argmax(1)).tolist() == sorted(sizes, reverse=True)
    assert sum(topic.tokens for topic in model.topics()) == COUNTS.sum()


@pytest.mark.parametrize("sampled", [150, 20_000])
def test_the_documents_of_small_topics_go_to_others(model, monkeypatch, sampled):
    monkeypatch.setattr(topics_module, "MAX_DOCUMENTS", sampled)
    small = min(topic.documents for topic in model.refit_topics(TEXTS, 10).topics())
    model.refit_topics(TEXTS, 10, min_topic_size=small + 20)
    sizes = [topic.documents for topic in model.topics()]
    assert min(sizes) >= small + 20 and len(sizes) < 10 and sum(sizes) == len(TEXTS)
    model.refit_topics(TEXTS, 10, {"money": ["tradea"]}, min_topic_size=len(TEXTS))
    assert "money" in [topic.name for topic in model.topics()]  # the user's stays


# Words


def word_counts(terms, having, sizes, every=None):
    having, sizes = np.array(having), np.array(sizes)
    return WordCounts(tuple(terms), having, sizes, having.sum(0), int(sizes.sum()) if every is None else every)


def test_a_word_that_one_document_repeats_does_not_lead_a_topic():
    """Ten documents of a topic have `orbit` once; one of them has its author's name a hundred times."""
    counts = np.zeros((20, 4), np.float32)
    counts[:10, 0], counts[0, 1], counts[10:, 2], counts[:, 3] = 1, 100, 1, 1  # orbit, the name, hockey, the
    having = documents_having(scipy.sparse.csr_matrix(counts), np.repeat([0, 1], 10), 3)
    assert having.tolist() == [[10, 1, 0, 10], [0, 0, 10, 10], [0, 0, 0, 0]]
    counted = word_counts(["orbit", "name", "hockey", "the"], having[:2], [10, 10])
    np.testing.assert_allclose(counted.relevance(0.3)[0, :2], 0.3 * np.log([1, 0.1]) + 0.7 * np.log(2), rtol=1e-6)
    assert counted.relevance()[0, 2] == -np.inf
    best = counted.best(4, DEFAULT_WORDING)
    assert [columns[0] for columns in best] == [0, 2] and 3 not in best[0]


def test_significance_is_the_root_of_the_likelihood_ratio():
    counted = word_counts(["a", "b"], [[8, 1], [4, 20]], [10, 40])
    for row, column in np.ndindex(2, 2):
        have = counted.having[:, column]
        table = np.array([have, counted.sizes - have])
        expected = chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
        more = have[row] / counted.sizes[row] > have.sum() / 50
        assert counted.significance()[row, column] == pytest.approx((1 if more else -1) * np.sqrt(expected))


def test_words_that_occur_together_come_first():
    """Four words are in equally many documents of the topic; one of them is beside each of the others."""
    counts = np.zeros((40, 5), np.float32)
    counts[:10, 0] = counts[:10, 1] = counts[5:15, 2] = counts[10:20, 3] = counts[20:, 4] = 1
    together = cohesion_of(scipy.sparse.csr_matrix(counts), [np.arange(4), np.array([4])])
    p = np.array([1, 0.5, 1e-12 * 4]) / 4  # of word 0 with words 1, 2 and 3
    assert together[0, 0] == pytest.approx(np.mean(np.log(p * 16) / -np.log(p)), rel=1e-5)
    assert together[0, 4] == pytest.approx(together[0, :4].mean(), rel=1e-5) and together[1].tolist() == [0] * 5
    counted = word_counts("abcde", [[10, 10, 10, 10, 0], [0, 0, 0, 0, 20]], [20, 20])
    assert counted._replace(cohesion=together).best(5, DEFAULT_WORDING)[0].tolist() == [2, 0, 1, 3]
    turned = np.where(np.arange(5) == 3, 1.0, together)
    assert counted._replace(cohesion=turned).best(5, DEFAULT_WORDING)[0].tolist() == [3, 2, 0, 1]


def test_words_and_names_are_in_the_documents_of_the_topic():
    """31 messages about passwords, none of which has another word often: nothing is added to make ten."""
    terms = ["password", "email", "repair", "card", "page"]
    having = [[31, 15, 0, 0, 2], [0, 0, 40, 0, 4], [0, 0, 0, 60, 7]]
    counted = word_counts(terms, having, [31, 40, 60])
    best = [[terms[column] for column in columns] for columns in counted.best(10, DEFAULT_WORDING)]
    assert best[0] == ["password", "email"] and best[1][0] == "repair" and best[2][0] == "card"
    everything = word_counts(terms, [[3, 2, 0, 1, 1]], [3])
    assert [terms[column] for column in everything.best(3, DEFAULT_WORDING)[0]] == ["password", "email", "card"]


def test_names_have_the_best_words_phrases_and_the_usual_form():
    terms = ["machine", "learning", "bikes", "bike", "neural", "motor", "helmet"]
    having = [[50, 60, 0, 0, 30, 0, 0], [0, 0, 30, 50, 0, 20, 10], [0, 0, 25, 45, 0, 15, 0], [0] * 7]
    counted = word_counts(terms, having, [100, 60, 50, 10], every=400)
    phrases = word_counts(["machine learning", "bike helmet"], [[45, 0], [0, 1], [0, 0], [0, 0]], counted.sizes)
    given = [(0, None), (1, None), (2, None), (7, None)]
    names = name_topics(given, counted.best(30, DEFAULT_WORDING), counted, phrases)
    assert names[0] == "machine learning, neural" and names[1].startswith("bike, ") and "bikes" not in names[1]
    assert names[3] == "topic 7" and len(set(names)) == 4
    mine = name_topics([(0, "bike, motor"), *given[1:]], counted.best(30, DEFAULT_WORDING), counted, phrases)
    assert mine[0] == "bike, motor" and mine[2] not in (mine[0], mine[1])


def test_words_change_without_a_fit(model, tmp_path):
    words, names = ([getattr(topic, of) for topic in model.topics()] for of in ("words", "name"))
    model.update_words(stop_words=[words[0][0], words[1][0]], relevance=0)
    assert not {words[0][0], words[1][0]} & {word for topic in model.topics(30) for word in topic.words}
    assert all(words[row][0] not in model.topics()[row].name for row in (0, 1))
    model.save(tmp_path / "other")
    assert DocumentModel.load(tmp_path / "other").topics() == model.topics()
    assert [topic.name for topic in model.update_words().topics()] == names
    with_phrases = model.update_words(ngrams=2).topics(30)
    pairs = [word for topic in with_phrases for word in topic.words if " " in word]
    assert pairs and all(any(pair in text for text in TEXTS) for pair in pairs)
    assert all(0 <= weight <= 1 for topic in with_phrases for weight in topic.weights)
    half = model.update_words(TEXTS[:200]).topics()
    assert sum(topic.documents for topic in half) == 200
    for change, message in (
        (lambda: model.update_words(relevance=2), "relevance must lie between 0 and 1"),
        (lambda: model.update_words(ngrams=3), "ngrams must be one of 1, 2"),
        (lambda: model.update_words(stop_words="the"), "stop_words is a list of words"),
        (lambda: model.update_words(COUNTS).update_words(ngrams=2), "phrases need texts"),
    ):
        with pytest.raises(InputError, match=message):
            change()


# Undo, parts and stability


def test_the_last_changes_are_undone_also_after_loading(model, tmp_path):
    states = [model.topics()]
    model.rename_topic(0, "first")
    states.append(model.topics())
    model.split_topic(1, TEXTS, n_parts=3)  # changes the mixture, too
    states.append(model.topics())
    model.merge_topics([0, 2])
    model.save(tmp_path / "edited")
    loaded = DocumentModel.load(tmp_path / "edited")
    for before in reversed(states):
        assert loaded.undo_topics().topics() == before
    with pytest.raises(InputError, match="no change of topics to undo"):
        loaded.undo_topics()


def test_a_folder_keeps_five_changes(model, tmp_path):
    for number in range(8):
        model.rename_topic(0, f"name {number}")
    model.save(tmp_path / "edited")
    assert len(list((tmp_path / "edited").glob("before-*"))) == 5  # the tensors are the same: kept once
    loaded = DocumentModel.load(tmp_path / "edited")
    for _ in range(5):
        loaded.undo_topics()
    assert loaded.topics()[0].name == "name 2"


def test_topics_within_a_topic_leave_the_model_alone(model):
    model.refit_topics(TEXTS, 2)
    before = model.topics()
    mixed = max(before, key=lambda topic: topic.documents)
    parts = model.subtopics(mixed.number, TEXTS, 3)
    assert len(parts) == 3 and parts[0].number == mixed.number and model.topics() == before
    assert sum(part.documents for part in parts) == pytest.approx(mixed.documents, abs=8)
    with pytest.raises(InputError, match="n_parts must be at least 2"):
        model.subtopics(mixed.number, TEXTS, 1)


def test_topics_that_are_there_are_stable(model):
    found = model.topic_stability(TEXTS, n_refits=6)
    assert min(found.values()) > 0.85
    assert {topic.number: topic.stability for topic in model.rename_topic(0, "mine").topics()} == found
    assert all(topic.stability is None for topic in model.merge_topics([0, 1]).topics())
    model.refit_topics(TEXTS, 9)  # four kinds in nine pieces
    assert min(model.topic_stability(TEXTS).values()) < 0.6


@given(
    st.lists(st.tuples(st.sampled_from(["merge", "split", "drop", "rename", "undo"]), st.integers(0, 9)), max_size=8)
)
@settings(max_examples=15, deadline=None)
def test_memberships_stay_normalised_whatever_is_changed(texts_model, changes):
    model, some = copy.copy(texts_model), TEXTS[:60]
    posterior = model.posterior(some)
    for change, place in changes:
        numbers = [topic.number for topic in model.topics()]
        one, other = numbers[place % len(numbers)], numbers[(place + 1) % len(numbers)]
        with contextlib.suppress(InputError):
            {
                "merge": lambda one=one, other=other: model.merge_topics([one, other]),
                "split": lambda one=one: model.split_topic(one, some),
                "drop": lambda one=one: model.drop_topics([one]),
                "rename": lambda one=one: model.rename_topic(one, "renamed"),
                "undo": lambda: model.undo_topics(),
            }[change]()
        found = model.topic_memberships(posterior)
        assert found.shape == (60, len(model.topics())) and (found >= 0).all()
        np.testing.assert_allclose(found.sum(1), 1)
