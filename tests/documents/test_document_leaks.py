"""What a fit and its figures must not depend on: words of test documents, other evaluated documents.

Poisoned documents have the lengths of the real ones and other words.
"""

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse
import small_corpora
import torch
from small_corpora import PARTS, use_small_documents
from synthetic import scattered_network, topic_documents

from varitext import DocumentModel
from varitext.documents.fitting import DEV_SAMPLES, DocumentTask
from varitext.documents.posterior import perplexity_of
from varitext.models.documents.base import DocumentObjective
from varitext.reproduce import experiment_named, table1a
from varitext.reproduce.document_fits import NEWSGROUPS, Setting, fitted_model
from varitext.reproduce.engine import Plan
from varitext.training.settings import TrainingSettings

COUNTS = topic_documents(120, 30, 3, 15)
TRAIN, DEV, TEST = COUNTS[:70], COUNTS[70:90], COUNTS[90:]
SETTINGS = {"latent_dim": 3, "epochs": 3, "learning_rate": 0.02, "threads": 1}
QUICK = Plan(quick=True, threads=1)


def poisoned(counts: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """As if words had changed places."""
    return counts[:, np.random.default_rng(7).permutation(counts.shape[1])]


POISONED = PARTS | {"test": dataclasses.replace(PARTS["test"], counts=poisoned(PARTS["test"].counts))}


def without_words(record: dict) -> dict:
    """What a row of a table records that the words of test documents cannot change."""
    of_training = ("dev_perplexity", "epochs", "stopped", "n_documents", "n_tokens", "n_samples", "kind")
    return {name: record[name] for name in of_training}


@pytest.mark.parametrize("model", ["nvdm_dcm", "nvdm"])
def test_test_words_change_test_figures_only(model, monkeypatch):
    """From fit to row of the table, as `varitext reproduce` does it."""
    use_small_documents(monkeypatch)
    clean = fitted_model(NEWSGROUPS, Setting(model), 0, QUICK)
    rows = [table1a.measure(NEWSGROUPS, Setting(model), 0, QUICK)]
    monkeypatch.setattr(small_corpora, "PARTS", POISONED)
    rows.append(table1a.measure(NEWSGROUPS, Setting(model), 0, QUICK))
    again = fitted_model(NEWSGROUPS, Setting(model), 0, QUICK)
    assert without_words(rows[0]) == without_words(rows[1])
    assert rows[0]["per_document_perplexity"] != rows[1]["per_document_perplexity"]  # the poison is read, where it may
    assert same_weights(clean, again) and clean.topics() == again.topics()
    for kind in ("", "iwae_", "unigram_"):
        name = f"{kind}per_document_perplexity"
        assert getattr(clean.perplexity_record(PARTS["train"]), name) == getattr(
            again.perplexity_record(PARTS["train"]), name
        )


def same_weights(one: DocumentModel, other: DocumentModel) -> bool:
    ours, theirs = (model.fitted_.network.state_dict() for model in (one, other))
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("name", ["table1b", "table2"])
def test_tables_of_words_do_not_read_test_documents(name, monkeypatch):
    use_small_documents(monkeypatch)
    found = []
    for parts in (PARTS, POISONED):
        monkeypatch.setattr(small_corpora, "PARTS", parts)
        run = next(iter(experiment_named(name).runs(QUICK)))
        found.append(json.dumps(run.measure(), sort_keys=True))
    assert found[0] == found[1]


def test_held_out_documents_choose_when_to_stop_and_nothing_else():
    """Two that choose the last epoch give the same model."""
    fits = [DocumentModel("nvdm_dcm", **SETTINGS, n_topics=3).fit(TRAIN, dev=dev) for dev in (DEV, TEST)]
    scores = [[record["dev_perplexity"] for record in model.fitted_.history] for model in fits]
    assert all(score[-1] == min(score) for score in scores) and scores[0] != scores[1]
    assert same_weights(*fits) and fits[0].topics() == fits[1].topics()


# The unigram model and early stopping


def test_the_unigram_figure_is_that_of_the_training_documents():
    model = DocumentModel("nvdm", **SETTINGS).fit(TRAIN, dev=DEV)
    counts = np.asarray(TRAIN.sum(0), np.float64).ravel() + 1
    lengths = np.asarray(TEST.sum(1)).ravel()
    nats = -(TEST @ np.log(counts / counts.sum()))
    found = model.perplexity_record(TEST)
    assert found.unigram_per_document_perplexity == pytest.approx(np.exp((nats / lengths).mean()))
    assert found.unigram_corpus_perplexity == pytest.approx(np.exp(nats.sum() / lengths.sum()))
    assert found.ratio_to_unigram == pytest.approx(
        found.per_document_perplexity / found.unigram_per_document_perplexity
    )


def test_training_is_stopped_by_the_bound_and_not_by_a_tighter_one():
    """The weights are random, so that the two bounds lie far apart."""
    network = scattered_network("nvdm", TRAIN, 0.2).float()
    score = DocumentTask(TRAIN, DEV, TrainingSettings(epochs=1), DocumentObjective()).score(network)
    records = [perplexity_of(network, DEV, DEV_SAMPLES, seed) for seed in range(20)]
    bound, tighter = (
        np.array([getattr(one, name) for one in records])
        for name in ("per_document_perplexity", "iwae_per_document_perplexity")
    )
    assert tighter.max() < 0.7 * bound.min()
    assert bound.min() * 0.95 < score.loss == score.metrics["dev_perplexity"] < bound.max() * 1.05
