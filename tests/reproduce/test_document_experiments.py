"""Experiments of documents on a small corpus, from fit to table; what completing a document is, model by model."""

import re
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse
import torch
from small_corpora import PARTS, WORDS, use_small_documents

from varitext import DocumentModel
from varitext.batches.counts import CountBatch
from varitext.documents.evaluation import completion_log_likelihoods
from varitext.evaluation.perplexity import split_words
from varitext.layers.dcm import Entries
from varitext.models.documents import DOCUMENT_MODELS
from varitext.models.documents.nvdm_dcm import NVDMDCM
from varitext.models.documents.rsm import RSM
from varitext.reproduce import experiment_named, table1a, table2, tsne
from varitext.reproduce.document_fits import NEWSGROUPS, RCV1, RCV1_SAMPLE, Setting, fitted_model, some_of
from varitext.reproduce.engine import Plan, reproduce


@pytest.fixture
def small(monkeypatch):
    use_small_documents(monkeypatch)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Where the experiments keep fitted models for each other."""
    return tmp_path_factory.mktemp("models")


# From fit to table


@pytest.mark.parametrize("name", ["table1a", "table1b", "table2"])
def test_experiments_run_from_fit_to_table(name, small, tmp_path, models):
    plan = Plan(quick=True, models=models, threads=1)
    table = reproduce(experiment_named(name), plan, tmp_path, lambda _: None)
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 3 and "nan" not in table
    for part in table.split("\n\n"):
        assert len({row.count("|") for row in part.splitlines() if row.startswith("|")}) <= 1


def test_a_model_is_fitted_once(small, tmp_path):
    plan = Plan(quick=True, models=tmp_path, threads=1)
    first = fitted_model(NEWSGROUPS, Setting("sbn"), 0, plan)
    folder = tmp_path / f"{NEWSGROUPS}-sbn-50-recommended-0-quick"
    written = (folder / "config.json").stat().st_mtime_ns
    again = fitted_model(NEWSGROUPS, Setting("sbn"), 0, plan)
    assert np.array_equal(first.transform(PARTS["test"]), again.transform(PARTS["test"]))
    assert again.fitted_.fit_seconds == first.fitted_.fit_seconds
    assert (folder / "config.json").stat().st_mtime_ns == written
    fitted_model(NEWSGROUPS, Setting("sbn"), 1, plan)
    assert len(list(tmp_path.iterdir())) == 2


def test_some_documents_keep_their_labels():
    chosen = some_of(replace(PARTS["train"], columns={"again": PARTS["train"].labels}), 30)
    assert chosen.columns["again"] == chosen.labels
    assert len(chosen) == 30
    for row, label in zip(chosen.counts, chosen.labels, strict=True):
        (place,) = np.flatnonzero(abs(PARTS["train"].counts - scipy.sparse.vstack([row] * 120)).sum(1) == 0)
        assert label == PARTS["train"].labels[place]


# Table 1 (a)


def test_runs_are_cheap_first_and_each_once(monkeypatch):
    monkeypatch.setattr(table1a, "is_here", lambda corpus, plan: False)
    names = [run.name for run in table1a.runs(Plan())]
    assert len(set(names)) == len(names) == sum(row.seeds for row in table1a.all_rows())
    assert names[0].startswith(f"{NEWSGROUPS}-nvdm-50-recommended-0")
    cost = {"-".join(map(str, row.setting)): row.seconds for row in table1a.all_rows()}
    costs = [cost[name.removeprefix(f"{NEWSGROUPS}-").rsplit("-", 1)[0]] for name in names]
    assert costs == sorted(costs)
    monkeypatch.setattr(table1a, "is_here", lambda corpus, plan: True)
    assert {run.settings["seed"] for run in table1a.runs(Plan(quick=True))} == {0}
    settings = [run.settings for run in table1a.runs(Plan())]
    assert [one["seed"] for one in settings if one["corpus"] == RCV1] == [0] * len(table1a.all_rows())
    sampled = [one for one in settings if one["corpus"] == RCV1_SAMPLE]
    assert len({tuple(one.values()) for one in sampled}) == len(sampled)
    several = {(one["model"], one["latent_dim"], one["preset"]) for one in sampled if one["seed"] == 2}
    assert several == {(model, size, "recommended") for model in ("nvdm", "nvdm_dcm") for size in (50, 200)}


def record_of(corpus: str, setting: Setting, seed: int, perplexity: float, **others: object) -> dict:
    result = {"per_document_perplexity": perplexity, "kind": "bound", "standard_error": 0.0}
    result |= {"iwae_per_document_perplexity": perplexity - 10, "dev_perplexity": 700.0}
    result |= {"fit_seconds": 10.0 + seed, "evaluation_seconds": 2.0}
    return {"settings": {"corpus": corpus, **setting._asdict(), "seed": seed}, "result": result | others}


def test_table1a_by_hand():
    values = ((0, 810.0), (1, 800.0))
    records = [record_of(NEWSGROUPS, Setting("sbn"), seed, value, unrefined=880.0) for seed, value in values]
    table = table1a.table(records)
    (row,) = [line for line in table.splitlines() if line.startswith("| SBN")]
    assert [float(one) for one in re.findall(r"\d[\d.]*", row)] == [50, 909, 800, 810, 795, 880, 700, 10, 2, 2]
    assert "RCV1-v2: not measured" in table and RCV1_SAMPLE not in table
    estimate = record_of(NEWSGROUPS, Setting("rsm"), 0, 900.0, kind="estimate", standard_error=1.5)
    on_reuters = record_of(RCV1, Setting("rsm"), 0, 950.0, kind="estimate")
    sampled = record_of(RCV1_SAMPLE, Setting("nvdm"), 0, 540.0)
    table = table1a.table([estimate, on_reuters, sampled])
    heading, _, head, _, row = next(part for part in re.split(r"\n\n(?=rcv1)", table) if "540" in part).splitlines()
    assert "20,737 training documents; the paper trained on 794,414" in heading
    assert head.split("|")[2:4] == [" paper (full corpus) ", " ours "] and "| 563 | **540.0** |" in row
    rows = [line for line in table.splitlines() if line.startswith("| RSM")]
    assert "| 953 | **900.0** | estimate | 1.5 |  |" in rows[0] and "| 988 | **950.0** | estimate |  |" in rows[1]


# The others


def test_topics_stand_beside_those_whose_words_weigh_most(small, tmp_path):
    model = fitted_model(NEWSGROUPS, Setting("nvdm"), 0, Plan(quick=True, threads=1))
    weights = np.zeros((len(WORDS), 5), np.float32)
    a, b, c, d = np.argsort(-np.asarray(PARTS["train"].counts.sum(0)).ravel())[:4]  # rare words stand for no topic
    one, other = ({WORDS.words[place] for place in pair} for pair in ((a, b), (c, d)))
    wanted = {"first": [*one], "second": [*other, "not-a-word"], "third": ["not-a-word"]}
    weights[[a, b], 3] = 1
    weights[[c, d], 1] = -1  # the other end of an axis
    with torch.no_grad():
        model.fitted_.network.decoder.weight.copy_(torch.from_numpy(weights))
        model.fitted_.network.axes.copy_(torch.eye(5))
    found = table2.matched_topics(model, wanted)
    assert set(found) == {"first", "second"}
    assert set(found["first"]["words"][:2]) == one and set(found["second"]["words"][:2]) == other
    assert table2.matched_topics(model, {"third": ["not-a-word"]}) == {}


def test_neighbour_accuracy_by_hand():
    vectors = np.array([[0.0], [1], [2], [10], [11], [12], [3.1]])
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    assert tsne.neighbour_accuracy(vectors, labels, "euclidean", 1) == pytest.approx(6 / 7)
    # all others vote. Two votes each way at 0, 1 and -4: the nearest decides, and is wrong at -4; three to one at -2, 3
    points, names = np.array([[0.0], [1], [-2], [3], [-4]]), np.array([1, 1, 0, 0, 1])
    assert tsne.neighbour_accuracy(points, names, "euclidean", 4) == pytest.approx(2 / 5)


def test_the_map_is_a_figure_of_every_document(small, tmp_path, models):
    plan = Plan(quick=True, models=models, threads=1)
    reproduce(experiment_named("tsne"), plan, tmp_path, lambda _: None)
    drawn = ElementTree.parse(tmp_path / "tsne-quick.svg").getroot()
    paths = drawn.findall(".//{http://www.w3.org/2000/svg}path")
    dots = [path.get("d") for path in paths if "stroke-linecap: round" in path.get("style", "")]
    assert len(dots) == 2 * 4  # models, labels
    assert sum(path.count("M") for path in dots) == 2 * len(PARTS["test"])


# Completing documents


@pytest.mark.parametrize("name", DOCUMENT_MODELS)
def test_words_given_the_observed_half_are_a_distribution(name):
    """Whatever the model: the probabilities of all words as the one hidden word add up to one."""
    model = DocumentModel(name, latent_dim=3, epochs=2, threads=1, n_topics=3).fit(PARTS["train"])
    observed = PARTS["test"].counts[[0] * len(WORDS)]
    halves = split_words(PARTS["test"].counts)._replace(observed=observed, hidden=scipy.sparse.eye(len(WORDS)).tocsr())
    samples, network = 3, model.fitted_.network
    if hasattr(network, "completion_log_likelihood") and not isinstance(network, NVDMDCM):
        found = completion_log_likelihoods(network, halves, samples)
    else:  # one draw of h for all words, as within one document
        encoding = network.encode(CountBatch.from_rows(observed[:1]))
        posterior = network.posterior(encoding)
        h = (posterior.rsample if hasattr(posterior, "rsample") else posterior.sample)(samples)
        if isinstance(network, NVDMDCM):
            every_word = Entries(torch.arange(len(WORDS)), torch.zeros(len(WORDS), dtype=torch.long), torch.ones(()))
            each = network.decoder.next_word_log_probabilities(h, encoding.counts, every_word)[:, None]
        else:
            each = network.word_log_probabilities(h)  # [S, 1, V]
        found = each.exp().mean(0)[0].log().double().numpy()
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-4)


def test_rsm_completes_as_enumeration_says():
    torch.manual_seed(0)
    network = RSM(4, latent_dim=3)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_()
    observed = scipy.sparse.csr_matrix(np.array([[2.0, 0, 1, 0]], np.float32))

    def unnormalised(words: np.ndarray) -> float:
        weights, bias, hidden_bias = (
            one.detach().double().numpy() for one in (network.word_weights, network.word_bias, network.hidden_bias)
        )
        energies = [
            words @ bias + np.array(h) @ (words.sum() * hidden_bias + words @ weights)
            for h in product((0, 1), repeat=3)
        ]
        return float(np.exp(energies).sum())

    longer = np.array([unnormalised(np.array([2.0, 0, 1, 0]) + np.eye(4)[word]) for word in range(4)])
    exact = np.log(longer / longer.sum())
    hidden = scipy.sparse.csr_matrix(np.array([[1.0, 0, 2, 1]], np.float32))
    batches = (CountBatch.from_rows(rows) for rows in (observed, hidden))
    assert network.completion_log_likelihood(*batches, 1).item() == pytest.approx(hidden.toarray()[0] @ exact, rel=1e-5)
