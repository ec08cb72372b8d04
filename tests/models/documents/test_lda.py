"""LDA behind our interface: the bound against sums and a loop per document, fitting, life without tomotopy."""

import itertools
import sys

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.special import gammaln, psi
from synthetic import batch_of, topic_documents
from torch.distributions import Dirichlet

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch
from varitext.models.documents import lda, model_class
from varitext.models.documents.lda import (
    TopicPrior,
    _expected_log,
    _sampler,
    infer_topics,
    lda_bounds,
    lda_document_bounds,
)
from varitext.runtime.randomness import seeded
from varitext.training.settings import TrainingSettings

GENERATOR = np.random.default_rng(0)
TOPICS = GENERATOR.dirichlet(np.full(20, 0.3), 3)  # [K, V]
ALPHA = np.array([0.3, 0.8, 0.1])
COUNTS = scipy.sparse.csr_matrix(GENERATOR.poisson(0.6, (30, 20)).astype(np.float32))


def prior(topics: np.ndarray = TOPICS, alpha: np.ndarray = ALPHA) -> TopicPrior:
    return TopicPrior(torch.from_numpy(topics.T.copy()), torch.from_numpy(alpha))


def bound_of_one(topics: np.ndarray, counts: np.ndarray, alpha: np.ndarray) -> float:
    """Blei, Ng and Jordan's updates for one document, written out."""
    gamma = alpha + counts.sum() / len(alpha)
    for _ in range(400):
        weight = np.exp(psi(gamma) - psi(gamma.sum()))
        gamma = alpha + weight * (topics @ (counts / (weight @ topics)))
    expected_log = psi(gamma) - psi(gamma.sum())
    words = counts @ np.log(np.exp(expected_log) @ topics)
    dirichlets = gammaln(alpha.sum()) - gammaln(alpha).sum() - gammaln(gamma.sum()) + gammaln(gamma).sum()
    return float(words + dirichlets + (alpha - gamma) @ expected_log)


@pytest.mark.parametrize("largest_chunk", [1, 500, 2**20])
def test_the_bound_is_that_of_one_document_at_a_time(monkeypatch, largest_chunk):
    monkeypatch.setattr(lda, "MAX_CHUNK", largest_chunk)
    found = lda_document_bounds(COUNTS, TOPICS, ALPHA)
    expected = [bound_of_one(TOPICS, row, ALPHA) for row in COUNTS.toarray().astype(np.float64)]
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_bounds_lie_below_the_evidence_and_the_tighter_one_close_to_it():
    """Few words: the evidence by summing over all topics of all words, theta integrated by the Dirichlet's formula."""
    counts = np.zeros((2, 20), np.float32)
    counts[0, [1, 4]], counts[1, [0, 7]] = (2, 1), (3, 2)
    evidence = []
    for row in counts:
        words = np.repeat(np.arange(20), row.astype(int))
        total = 0.0
        for assigned in itertools.product(range(3), repeat=len(words)):
            n = np.bincount(assigned, minlength=3)
            log_prior = gammaln(ALPHA + n).sum() - gammaln(ALPHA).sum()
            log_prior += gammaln(ALPHA.sum()) - gammaln(ALPHA.sum() + len(words))
            total += np.exp(log_prior) * np.prod(TOPICS[assigned, words])
        evidence.append(np.log(total))
    torch.manual_seed(0)
    bounds = lda_bounds(prior(), scipy.sparse.csr_matrix(counts), samples=20_000)
    assert (bounds.elbo < evidence).all()
    np.testing.assert_allclose(bounds.importance_weighted, evidence, atol=0.05)
    assert (bounds.kl > 0).all()


def test_one_topic_is_the_unigram_model_exactly():
    words = TOPICS[:1]
    bounds = lda_bounds(prior(words, np.array([0.7])), COUNTS, samples=3)
    np.testing.assert_allclose(bounds.elbo, COUNTS @ np.log(words[0]), rtol=1e-9)
    np.testing.assert_allclose(bounds.importance_weighted, bounds.elbo, rtol=1e-9)


def test_a_document_without_words_has_the_prior_and_probability_one():
    counts = scipy.sparse.csr_matrix(np.vstack([np.zeros(20), COUNTS.toarray()[0]]))
    np.testing.assert_array_equal(infer_topics(prior(), counts)[0].numpy(), ALPHA)
    assert lda_document_bounds(counts, TOPICS, ALPHA)[0] == 0
    assert lda_document_bounds(counts[:0], TOPICS, ALPHA).shape == (0,)


@pytest.fixture(scope="module")
def fitted():
    pytest.importorskip("tomotopy")
    return DocumentModel("lda", 4, epochs=60, threads=1, seed=1).fit(topic_documents(400))


def test_it_finds_the_topics_that_documents_were_drawn_from(fitted):
    """60 words in four stretches of 15: each topic's ten most probable words lie in one of them."""
    first = fitted.fitted_.network.word_topics.topk(10, dim=0).indices // 15  # [10, K]
    assert sorted(map(set, first.T.tolist()), key=min) == [{0}, {1}, {2}, {3}]
    record = fitted.perplexity_record(topic_documents(100, seed=1))
    assert record.kind == "bound" and "topics fixed" in record.description
    assert record.ratio_to_unigram < 0.6
    assert record.iwae_per_document_perplexity < record.per_document_perplexity
    assert fitted.fitted_.history[-1]["dev_perplexity"] == pytest.approx(fitted.fitted_.dev_perplexity, rel=0.05)
    assert len(fitted.fitted_.history) == 10 and fitted.fitted_.stopped == "finished"


def test_vectors_are_shares_with_their_std(fitted):
    short, long = topic_documents(20, length=5, seed=3), topic_documents(20, length=200, seed=3)
    for counts in (short, long):
        np.testing.assert_allclose(fitted.transform(counts).sum(1), 1, rtol=1e-5)
    assert fitted.posterior(short).std.mean() > 2 * fitted.posterior(long).std.mean()  # more words, less doubt


def test_a_saved_model_needs_no_tomotopy(fitted, tmp_path, monkeypatch):
    held_out = topic_documents(50, seed=1)
    fitted.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "tomotopy", None)  # import now fails
    again = DocumentModel.load(tmp_path / "model")
    assert again.perplexity_record(held_out) == fitted.perplexity_record(held_out)
    np.testing.assert_array_equal(again.transform(held_out), fitted.transform(held_out))
    assert again.topics() == fitted.topics()
    with pytest.raises(InputError, match=r"varitext\[lda\]"):
        DocumentModel("lda", 4, epochs=1).fit(held_out)


def test_words_that_no_document_has_get_next_to_nothing():
    pytest.importorskip("tomotopy")
    counts = topic_documents(40).toarray()
    counts[:, 7] = 0
    network = DocumentModel("lda", 2, epochs=5, threads=1).fit(counts).fitted_.network
    assert (network.word_topics[7] < 1e-11).all()
    torch.testing.assert_close(network.word_topics.sum(0), torch.ones(2, dtype=torch.double))


def test_the_same_seed_gives_the_same_topics():
    pytest.importorskip("tomotopy")
    first, second = (DocumentModel("lda", 3, epochs=20, threads=1, seed=5).fit(topic_documents(100)) for _ in range(2))
    assert torch.equal(first.fitted_.network.word_topics, second.fitted_.network.word_topics)


def test_what_it_cannot_do_is_said(fitted):
    with pytest.raises(InputError, match="lda needs whole counts"):
        DocumentModel("lda", 2, fractional_counts=True).fit(topic_documents(20))
    with pytest.raises(InputError, match="learns from all documents at once"):
        DocumentModel.partial_fit(fitted, topic_documents(20))


# Inference


def small_lda(words: int = 9, topics: int = 3):
    model = model_class("lda")(words, topics)
    with seeded(0):
        model.word_topics.copy_(Dirichlet(torch.ones(words).double()).sample((topics,)).T)
        model.alpha.copy_(torch.tensor([0.2, 0.5, 0.9]).double())
    return model


def test_topic_shares_are_those_of_the_dirichlet():
    model, counts = small_lda(), topic_documents(6, 9, 3, 12)
    batch = CountBatch.from_rows(counts)
    gamma = infer_topics(TopicPrior(model.word_topics, model.alpha), counts)
    vectors = model.document_vectors(batch)
    torch.testing.assert_close(vectors.mean.double(), Dirichlet(gamma).mean, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(vectors.std.double(), Dirichlet(gamma).variance.sqrt(), atol=1e-6, rtol=1e-5)
    weights = _expected_log(gamma).exp()  # gamma is where the updates stand still
    mixed = weights @ model.word_topics.T
    again = model.alpha + weights * ((torch.from_numpy(counts.toarray()).double() / mixed) @ model.word_topics)
    torch.testing.assert_close(again, gamma, atol=1e-3, rtol=0)
    with seeded(1):
        draws = Dirichlet(gamma).sample((20_000,))  # E_q[log theta]
    torch.testing.assert_close(_expected_log(gamma), draws.log().mean(0), atol=0.1, rtol=0)


def test_hidden_words_come_from_the_mean_shares():
    model, counts = small_lda(), topic_documents(3, 9, 3, 12)
    hidden = np.zeros((3, 9), np.float32)
    hidden[0, 2], hidden[0, 5], hidden[2, 8] = 2, 1, 4
    found = model.completion_log_likelihood(CountBatch.from_rows(counts), batch_of(hidden), 1)
    shares = model.document_vectors(CountBatch.from_rows(counts)).mean.double()
    expected = (torch.from_numpy(hidden).double() * (shares @ model.word_topics.T).log()).sum(1)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("epochs", "shares"), [(3, [1 / 3, 2 / 3, 1.0]), (20, [part / 10 for part in range(1, 11)])])
def test_gibbs_rounds_add_up_to_all_passes(epochs, shares):
    pytest.importorskip("tomotopy")
    model = model_class("lda")(12, 2)
    found = list(model.fit_without_gradients(topic_documents(10, 12, 3, 6), TrainingSettings(epochs=epochs)))
    assert found == pytest.approx(shares)
    torch.testing.assert_close(model.word_topics.sum(0), torch.ones(2).double(), rtol=0, atol=1e-12)
    fitted = _sampler(topic_documents(10, 12, 3, 6), 2, model.first_alpha, model.eta, TrainingSettings().seed)
    for part in np.diff([0, *(round(epochs * share) for share in shares)]):
        fitted.train(int(part), workers=1)
    assert model.alpha.tolist() == pytest.approx(list(fitted.alpha))  # the same run: alpha is its own
