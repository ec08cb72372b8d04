"""The multimodal NVDM: gradient, curvature and evidence of the vector's term by hand, and documents without vectors."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import batch_of, topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch, CountBatches, drop_words
from varitext.corpora.document_vectors import CountsWithVectors, vectors_of
from varitext.latent import elbo, importance_weighted_bound
from varitext.models.documents.nvdm_vectors import NVDMVectors

COUNTS = topic_documents(documents=40, words=20)
DIM, WIDTH = 3, 6


def gaussian_vectors(documents: int = 40, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    h, weights = generator.normal(size=(documents, DIM)), generator.normal(size=(DIM, WIDTH))
    return (h @ weights + 0.4 * generator.normal(size=(documents, WIDTH)) + 1).astype(np.float32)


VECTORS = gaussian_vectors()
HALF = np.where(np.arange(40)[:, None] % 2 == 0, VECTORS, np.nan)  # every other document has one


def network(weight: float = 0.5, refinement_steps: int = 60) -> NVDMVectors:
    torch.manual_seed(0)
    sizes = {"groups": 4, "hidden_dim": 8, "refinement_steps": refinement_steps}
    model = NVDMVectors(20, DIM, sentence_dim=WIDTH, vector_weight=weight, **sizes).double()
    torch.nn.init.normal_(model.decoder.linear.weight, std=0.4)
    model.learn_frequencies(torch.from_numpy(np.asarray(COUNTS.sum(0)).ravel()))
    model.decoder.of_vectors.start_from(VECTORS)
    return model.eval()


def with_vectors(counts: scipy.sparse.csr_matrix, vectors: np.ndarray) -> CountBatch:
    return dataclasses.replace(batch_of(counts), vectors=torch.from_numpy(vectors).double())


def vector_log_density(model: NVDMVectors, h: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    decoder = model.decoder.of_vectors
    normal = torch.distributions.Normal(h @ decoder.loadings.T + decoder.centre, decoder.log_std.exp())
    return decoder.weight * normal.log_prob(vectors).sum(-1)


def test_value_and_gradient_are_those_of_words_and_vector():
    model, batch = network(), with_vectors(COUNTS, HALF)
    counts, words = model.decoder.count(batch), model.decoder.count(batch_of(COUNTS))
    h = torch.randn(40, DIM, dtype=torch.double, requires_grad=True)
    expected = vector_log_density(model, h, torch.from_numpy(VECTORS).double())
    (gradient,) = torch.autograd.grad(expected.sum(), h)
    of_vectors, both = model.decoder.log_joint(h.detach(), words), model.decoder.log_joint(h.detach(), counts)
    has = batch.with_vectors
    assert has.sum() == 20
    torch.testing.assert_close(both.value - of_vectors.value, torch.where(has, expected.detach(), 0.0))
    torch.testing.assert_close(both.gradient - of_vectors.gradient, torch.where(has[:, None], gradient, 0.0))
    height = model.decoder.height(h.detach(), counts, model.decoder.weights())
    torch.testing.assert_close(height, both.value)


def test_the_vector_adds_its_curvature_to_that_of_the_words():
    model, batch = network(), with_vectors(COUNTS, HALF)
    counts = model.decoder.count(batch)
    moments, weights = model.decoder.moments(counts.layout), torch.rand(40, 4, dtype=torch.double)
    roots = [model.decoder.covariance_root(weights, moments, one) for one in (batch, batch_of(COUNTS))]
    with_vector, alone = (torch.linalg.inv(root.mT @ root) for root in roots)
    decoder = model.decoder.of_vectors
    added = decoder.weight * decoder.loadings.T @ decoder.loadings / decoder.log_std.exp() ** 2
    expected = torch.where(batch.with_vectors[:, None, None], added.detach(), 0.0)
    torch.testing.assert_close(with_vector - alone, expected, rtol=1e-4, atol=1e-4)


def test_the_first_step_solves_both_curvatures_at_once():
    model, batch = network(), with_vectors(COUNTS, VECTORS)
    counts, zero = model.decoder.count(batch), torch.zeros(40, DIM, dtype=torch.double)
    moments = model.decoder.moments(counts.layout)
    total = moments.group_masses.sum()
    worth = total * (torch.digamma(total + batch.lengths) - torch.digamma(total))
    covariance = moments.directions * moments.variances @ moments.directions.T
    added = torch.eye(DIM, dtype=torch.double) + model.decoder.of_vectors.curvature().detach()
    curvature = added + worth[:, None, None] * covariance
    step = model.decoder.newton_step_from_zero(counts, moments)
    gradient = model.decoder.log_joint(zero, counts).gradient
    torch.testing.assert_close((curvature @ step[..., None])[..., 0], gradient)


def test_without_words_posterior_and_evidence_are_those_of_a_linear_gaussian_model():
    """e ~ N(c, W W^T + s^2 I); with the exact posterior all importance weights are equal."""
    model, batch = network(weight=1.0), with_vectors(COUNTS * 0, VECTORS)
    decoder = model.decoder.of_vectors
    weights, centre, noise = decoder.loadings, decoder.centre, decoder.log_std.exp() ** 2
    covariance = weights @ weights.T + noise * torch.eye(WIDTH, dtype=torch.double)
    evidence = torch.distributions.MultivariateNormal(centre, covariance).log_prob(batch.vectors)
    precision = torch.eye(DIM, dtype=torch.double) + weights.T @ weights / noise
    mean = torch.linalg.solve(precision, ((batch.vectors - centre) @ weights / noise).T).T
    with torch.no_grad():
        q = model.posterior(model.encode(batch))
        torch.testing.assert_close(q.mean, mean, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(q.covariance[0], torch.linalg.inv(precision), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(importance_weighted_bound(model, batch, 3), evidence, rtol=1e-4, atol=1e-4)
        bound = elbo(model, batch, 4000)
    torch.testing.assert_close(bound.elbo.mean(), evidence.mean(), rtol=0, atol=0.02)
    found = model.document_vectors(batch)
    torch.testing.assert_close(found.mean, mean.detach(), rtol=1e-4, atol=1e-5)  # not the prior's


def test_bounds_with_a_vector_lie_below_the_evidence():
    """One latent dimension: the evidence by brute-force integration."""
    torch.manual_seed(0)
    model = NVDMVectors(20, 1, groups=4, hidden_dim=8, sentence_dim=WIDTH, vector_weight=1.0).double().eval()
    torch.nn.init.normal_(model.decoder.linear.weight)
    model.decoder.of_vectors.start_from(VECTORS)
    batch = with_vectors(COUNTS[:4], VECTORS[:4])
    grid = torch.linspace(-8, 8, 4001, dtype=torch.double)
    with torch.no_grad():
        log_joint = model.log_likelihood(grid[:, None, None].expand(-1, 4, 1), model.encode(batch))
        prior = -0.5 * grid.square() - 0.5 * math.log(2 * math.pi)
        evidence = torch.logsumexp(log_joint + prior[:, None], 0) + math.log(16 / 4000)
        bound = elbo(model, batch, 4000)
    assert (bound.elbo < evidence + 0.02).all() and (bound.elbo > evidence - 0.5).all()


def test_a_missing_vector_is_the_same_as_no_vectors_at_all():
    model = network(refinement_steps=2)
    nothing = with_vectors(COUNTS, np.full((40, WIDTH), np.nan, np.float32))
    for one, other in zip(model.document_vectors(nothing), model.document_vectors(batch_of(COUNTS)), strict=True):
        torch.testing.assert_close(one, other)


def test_the_vector_decoder_starts_at_probabilistic_pca():
    decoder = network(weight=1.0).decoder.of_vectors
    found = np.linalg.eigvalsh(np.cov(VECTORS.T, ddof=0))[::-1]
    weights, noise = decoder.loadings.detach().numpy(), decoder.log_std.exp().item() ** 2
    ours = np.linalg.eigvalsh(weights @ weights.T + noise * np.eye(WIDTH))[::-1]
    np.testing.assert_allclose(ours[:DIM], found[:DIM], rtol=1e-4)
    np.testing.assert_allclose(ours[DIM:], found[DIM:].mean(), rtol=1e-4)
    np.testing.assert_allclose(decoder.centre.detach().numpy(), VECTORS.mean(0), rtol=1e-5)


def test_a_wide_vector_counts_as_forty_numbers():
    weights = [NVDMVectors(20, sentence_dim=width).decoder.of_vectors.weight for width in (5, 40, 400)]
    assert weights == [1, 1, 0.1]


def test_a_weight_must_be_positive():
    with pytest.raises(InputError, match="vector_weight must be above 0, not 0"):
        NVDMVectors(20, sentence_dim=WIDTH, vector_weight=0)


# Fits


def fitted(**settings) -> DocumentModel:
    return DocumentModel(latent_dim=DIM, epochs=4, threads=1, n_topics=2, **settings).fit(COUNTS, vectors=VECTORS)


def test_poisoned_vectors_do_not_move_perplexity():
    model = fitted()
    clean = model.perplexity_record(COUNTS)
    poisoned = CountsWithVectors.of(COUNTS, np.full((40, WIDTH), 1e6, np.float32))
    assert model.perplexity_record(poisoned) == clean and model.perplexity(poisoned) == model.perplexity(COUNTS)
    network = model.fitted_.network
    assert np.array_equal(network.evaluate(poisoned, 5, 0).elbo, network.evaluate(COUNTS, 5, 0).elbo)
    assert np.array_equal(network.evaluate_round(poisoned, 5, 0).elbo, network.evaluate_round(COUNTS, 5, 0).elbo)
    assert np.abs(model.transform(poisoned) - model.transform(COUNTS)).max() > 0.1


def test_a_document_with_a_vector_does_not_depend_on_its_company():
    model, order = fitted(), np.random.default_rng(0).permutation(40)
    counts = CountsWithVectors.of(COUNTS, HALF.astype(np.float32))
    posterior_of = model._posterior_of
    together = posterior_of(counts)
    assert together.mean.dtype == np.float32 and np.isfinite(together.mean).all()
    for found in (posterior_of(counts[order]), posterior_of(counts[order], block=7)):
        np.testing.assert_allclose(found.mean, together.mean[order], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.std, together.std[order], rtol=1e-4, atol=1e-5)
    apart = model.posterior(COUNTS)
    np.testing.assert_allclose(together.mean[1::2], apart.mean[1::2], rtol=1e-4, atol=1e-5)
    assert together.std[::2].mean() < apart.std[::2].mean()  # a vector tells something


def test_topics_are_found_by_what_the_vectors_say():
    """Every document has words of every kind; only the vectors come in two groups."""
    generator = np.random.default_rng(0)
    counts = scipy.sparse.csr_matrix(generator.poisson(0.4, (300, 30)).astype(np.float32))
    counts = counts[np.flatnonzero(counts.getnnz(1))]
    group = generator.integers(2, size=counts.shape[0])
    vectors = np.where(group[:, None], 1.0, -1.0) * np.ones(WIDTH) + 0.3 * generator.normal(size=(len(group), WIDTH))
    model = DocumentModel(latent_dim=DIM, epochs=8, threads=1, n_topics=2).fit(counts, vectors=vectors)
    topic = model.topic_memberships(counts, vectors).argmax(1)
    assert max((topic == group).mean(), (topic != group).mean()) > 0.95


def test_batches_keep_words_and_vectors_together():
    """Shuffled, in equal blocks, with words dropped and with vectors dropped."""
    number = np.arange(40, dtype=np.float32)[:, None]
    counts = CountsWithVectors.of(scipy.sparse.csr_matrix(np.repeat(number + 1, 3, 1)), number)
    for batch in CountBatches(counts).shuffled(7, (0, 1), word_dropout=0.5):
        assert (batch.vectors[:, 0] >= batch.lengths / 3 - 1).all()
        assert ((batch.lengths / 3 - 1 - batch.vectors[:, 0]).abs() < 0.75 * (batch.vectors[:, 0] + 1)).all()
    for batch in CountBatches(counts).shuffled(7, (0, 1)):
        assert torch.equal(batch.vectors[:, 0], batch.lengths / 3 - 1)
    for batch, real in CountBatches(counts).in_equal_blocks(16):
        assert torch.equal(batch.vectors[:real, 0], batch.lengths[:real] / 3 - 1)
        assert not batch.with_vectors[real:].any()
    kept = torch.cat([batch.with_vectors for batch in CountBatches(counts).shuffled(8, (0, 1), vector_dropout=0.5)])
    assert 8 < kept.sum() < 32
    assert vectors_of(drop_words(counts, 0.5, np.random.default_rng(0))) is counts.vectors
