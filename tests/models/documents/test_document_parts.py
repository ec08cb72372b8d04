"""Parts of document models by hand: schedules, axes, vectors and their spread, bounds put together from batches."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import topic_documents

from varitext.batches.counts import CountBatch
from varitext.errors import InputError
from varitext.latent import draw, elbo
from varitext.models.documents import bounds as bounds_module
from varitext.models.documents import check_preset, model_class
from varitext.models.documents.base import procrustes, training_schedule, varimax
from varitext.models.documents.bounds import direction_information, document_bounds, exact_bounds
from varitext.runtime.randomness import seeded

COUNTS = topic_documents(10, 12, 3, 9)


def network(name, **sizes):
    with seeded(0):
        made = model_class(name)(12, latent_dim=3, **sizes)
    made.learn_frequencies(torch.from_numpy(np.asarray(COUNTS.sum(0), np.float64).ravel()))
    return made.eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("documents", "epochs", "batch_size", "patience"),
    [(100, 100, 32, 25), (2000, 92, 64, 23), (10_000, 41, 128, 10), (1_000_000, 8, 128, 5)],
)
def test_many_passes_over_few_documents_and_few_over_many(documents, epochs, batch_size, patience):
    found = training_schedule(documents, 0.01, samples=3)
    assert (found.epochs, found.batch_size, found.patience, found.samples) == (epochs, batch_size, patience, 3)
    assert found.learning_rate == pytest.approx(0.01 * math.sqrt(batch_size / 128))
    assert training_schedule(10_000, 0.01, passes=20).epochs == 20


def test_axes_turn_back_what_training_has_turned():
    generator = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(generator.normal(size=(3, 3)))
    seen, frequencies = generator.normal(size=(9, 3)), generator.random(9)
    found = procrustes(seen @ rotation.T, seen, frequencies)
    np.testing.assert_allclose(found, rotation, atol=1e-9)
    # where no rotation fits, that of the frequent words does
    wrong = seen.copy()
    wrong[0] *= -1
    frequencies[0] = 0
    np.testing.assert_allclose(procrustes(wrong @ rotation.T, seen, frequencies), rotation, atol=1e-9)


def test_readable_axes_point_to_the_documents_that_lean_on_them():
    generator = np.random.default_rng(1)
    rotation, _ = np.linalg.qr(generator.normal(size=(3, 3)))
    sparse = (generator.random((3000, 3)) < 0.1) * generator.exponential(2.0, (3000, 3))
    axes = varimax(sparse @ rotation.T + 7.0)  # where the documents lie on the whole does not count
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-9)
    likeness = axes.T @ rotation  # up to the order of the axes, and never turned round
    assert np.sort(likeness.max(0)) == pytest.approx(np.ones(3), abs=0.01)


def test_bounds_are_put_together_from_batches(monkeypatch):
    model = network("nvdm")
    whole = document_bounds(model, COUNTS, 4, seed=1)
    with torch.no_grad():
        expected = model.posterior(model.encode(CountBatch.from_rows(COUNTS)))
    kl = 0.5 * (expected.mean**2 + expected.std**2 - 1) - expected.log_std
    np.testing.assert_allclose(whole.kl, kl.sum(1), rtol=1e-4)
    np.testing.assert_allclose(whole.kl_by_dimension, kl.mean(0), rtol=1e-4)
    np.testing.assert_allclose(whole.elbo, whole.log_likelihood - whole.kl)
    assert (whole.importance_weighted > whole.elbo - 1e-3).mean() > 0.5 and whole.lengths.sum() == COUNTS.sum()
    assert np.array_equal(document_bounds(model, COUNTS, 4, seed=1).elbo, whole.elbo)
    assert not np.array_equal(document_bounds(model, COUNTS, 4, seed=2).elbo, whole.elbo)
    sizes = []
    monkeypatch.setattr(bounds_module, "MAX_LOGITS", 4 * 12 * 3)
    monkeypatch.setattr(
        bounds_module, "elbo", lambda model, batch, n: sizes.append(len(batch)) or elbo(model, batch, n)
    )
    in_parts = document_bounds(model, COUNTS, 4, seed=1)
    assert sizes == [3, 3, 3, 1]
    np.testing.assert_allclose(in_parts.kl_by_dimension, whole.kl_by_dimension, rtol=1e-4)
    np.testing.assert_allclose(in_parts.kl, whole.kl, rtol=1e-4)


def test_an_exact_value_stands_in_all_places():
    values = np.array([-3.0, -4.0])
    found = exact_bounds(values, scipy.sparse.csr_matrix(np.array([[1.0, 2.0], [0.0, 5.0]])), 4)
    assert found.elbo.tolist() == found.importance_weighted.tolist() == [-3, -4] and found.lengths.tolist() == [3, 5]
    assert found.kl_by_dimension.tolist() == [0] * 4 and found.drawn == 0 and not found.kl.any()


@pytest.mark.parametrize("name", ["nvdm", "nvdm_gsm", "nvdm_categorical", "sbn", "fdarn"])
def test_word_probabilities_sum_to_one_and_make_the_likelihood(name):
    model, batch = network(name), CountBatch.from_rows(COUNTS)
    with seeded(1):
        draws = draw(model, batch, 2)
    encoding = model.encode(batch)
    each = model.word_log_probabilities(draws.h)  # [S, B, V]
    torch.testing.assert_close(each.exp().sum(-1), torch.ones(2, 10))
    expected = (each * torch.from_numpy(COUNTS.toarray())).sum(-1)
    torch.testing.assert_close(model.log_likelihood(draws.h, encoding), expected, rtol=1e-4, atol=1e-4)


def test_proportions_spread_as_their_slope_says():
    model, batch = network("nvdm_gsm"), CountBatch.from_rows(COUNTS)
    vectors, q = model.document_vectors(batch), model.posterior(model.encode(batch))
    torch.testing.assert_close(vectors.mean, torch.softmax(model.to_topics(q.mean), -1))
    for row in range(3):
        slope = torch.autograd.functional.jacobian(lambda h: torch.softmax(model.to_topics(h), -1), q.mean[row])
        torch.testing.assert_close(vectors.std[row], (slope.square() @ q.std[row].square()).sqrt())
    assert vectors.mean.std(0).min() > 1e-3  # documents differ from the start


@pytest.mark.parametrize("name", ["nvdm_categorical", "sbn", "fdarn"])
def test_probabilities_of_discrete_vectors_and_their_spread(name):
    model, batch = network(name), CountBatch.from_rows(COUNTS)
    vectors = model.document_vectors(batch)
    assert vectors.mean.shape == (10, model.vector_dim)
    torch.testing.assert_close(vectors.mean, model.posterior(model.encode(batch)).probabilities.flatten(1))
    torch.testing.assert_close(vectors.std, (vectors.mean * (1 - vectors.mean)).sqrt())


@pytest.mark.parametrize("name", ["nvdm", "nvdm_gsm", "nvdm_categorical", "sbn", "fdarn"])
def test_an_untrained_model_says_words_as_often_as_they_come(name):
    """The start is near the unigram model, and what a dimension does to words is near zero."""
    model, frequencies = network(name), np.asarray(COUNTS.sum(0)).ravel() / COUNTS.sum()
    with seeded(1):
        h = draw(model, CountBatch.from_rows(COUNTS), 50).h
    each = model.word_log_probabilities(h).exp().mean((0, 1)).numpy()
    assert np.abs(each - frequencies).sum() < 0.3 and np.corrcoef(each, frequencies)[0, 1] > 0.9
    assert model.word_directions().shape == (12, model.vector_dim)


def test_phi_and_theta_share_nothing():
    for name in ("nvdm", "nvdm_gsm", "nvdm_categorical", "sbn", "fdarn"):
        model = network(name)
        inference = {id(one) for one in model.inference_parameters()}
        names = {name.split(".")[0] for name, one in model.named_parameters() if id(one) not in inference}
        assert names and not names & {"encoder", "head", "estimator"}


def test_directions_by_hand():
    """Half of N, times the variance of h over documents, times that of R over words by frequency."""
    means, directions = torch.tensor([[1.0, 0.0], [3.0, 0.0], [5.0, 0.0]]), torch.tensor([[0.0, 1.0], [4.0, 2.0]])
    found = direction_information(means, directions, torch.tensor([0.25, 0.75]).log(), 10.0)
    assert found.tolist() == pytest.approx([0.5 * 10 * (8 / 3) * (16 * 0.25 * 0.75), 0.0])


def test_names_that_no_registry_has_are_told():
    for wrong in (
        lambda: model_class("oak"),
        lambda: check_preset("oak", "paper"),
        lambda: check_preset("nvdm", "oak"),
    ):
        with pytest.raises(InputError, match="'oak'; there are"):
            wrong()
    check_preset("nvdm", "paper")
