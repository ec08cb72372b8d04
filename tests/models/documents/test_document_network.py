"""What DocumentModel asks of a model, with two that are nothing like NVDM: one exact, one that learns by itself."""

import itertools
import math
import os
import signal
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import batch_of, scattered_network, topic_documents
from torch import Tensor, nn

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch, CountBatches
from varitext.cli.evaluate import print_record
from varitext.latent import Bound, Estimate, draw, elbo
from varitext.layers.counts import multinomial_log_likelihood
from varitext.models.documents import DOCUMENT_MODELS, DocumentEntry, check_preset, model_class
from varitext.models.documents import bounds as bounds_module
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Recipe,
    procrustes,
    training_schedule,
    varimax,
)
from varitext.models.documents.bounds import (
    DocumentBounds,
    EstimateKind,
    bernoulli_kl_per_dimension,
    direction_information,
    document_bounds,
    exact_bounds,
    gaussian_kl_per_dimension,
    proportion_information,
)
from varitext.report.documents import document_tiles
from varitext.runtime.randomness import seeded
from varitext.training.settings import TrainingSettings

SOME = topic_documents(8, 12, 3, 9)
WITH_EMPTY = scipy.sparse.vstack([SOME, SOME[:1] * 0]).tocsr()
COUNTS = topic_documents(120)
LENGTHS = np.asarray(COUNTS.sum(1)).ravel()
SMALL = {"latent_dim": 2, "threads": 1}


class Mixture(DocumentNetwork):
    """Each document is of one of K kinds: log p(X) = log sum_k pi_k prod_i p(x_i | k), exactly."""

    estimate_kind = EstimateKind("exact", "log p(X), summed over the kinds")
    free_axes = False

    def __init__(self, vocabulary_size: int, latent_dim: int):
        super().__init__(vocabulary_size, latent_dim)
        self.words = nn.Parameter(0.1 * torch.randn(latent_dim, vocabulary_size))  # [K, V]

    def initialize_from_frequencies(self) -> None:
        with torch.no_grad():
            self.words += self.word_log_frequencies

    def log_joint(self, batch: CountBatch) -> Tensor:
        logits = self.words[:, None].expand(-1, len(batch), -1)  # [K, B, V]
        return multinomial_log_likelihood(logits, batch) - math.log(self.latent_dim)  # [K, B]

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        log_probability = torch.logsumexp(self.log_joint(batch), 0)
        return Estimate(log_probability, Bound(log_probability, torch.zeros(len(batch), self.latent_dim)))

    @torch.no_grad()
    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        values = [torch.logsumexp(self.log_joint(batch), 0) for batch in CountBatches(counts).in_order(64)]
        return exact_bounds(torch.cat(values).double().numpy(), counts, self.latent_dim)

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        kinds = torch.softmax(self.log_joint(batch), 0).T  # [B, K]
        return DocumentVectors(kinds, torch.zeros_like(kinds))

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return proportion_information(vectors.mean)

    def word_directions(self) -> Tensor:
        return torch.log_softmax(self.words, 1).T

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        return Recipe({}, TrainingSettings(epochs=15, batch_size=20, learning_rate=0.1), DocumentObjective())


class DirectMixture(Mixture):
    """The same, learned by expectation maximisation."""

    def fit_without_gradients(self, train: scipy.sparse.csr_matrix, settings: TrainingSettings) -> Iterator[float]:
        batch = CountBatch.from_rows(train)
        for done in range(settings.epochs):
            with torch.no_grad():
                kinds = torch.softmax(self.log_joint(batch), 0).T.numpy()  # [D, K]
                self.words.copy_(torch.from_numpy(np.log(kinds.T @ train.toarray() + 0.1)))
            yield (done + 1) / settings.epochs


ENTRIES = {
    "mixture": DocumentEntry("Mixture", f"{__name__}:Mixture"),
    "direct": DocumentEntry("Mixture by EM", f"{__name__}:DirectMixture"),
}


@pytest.fixture(autouse=True, scope="module")
def named():
    with mock.patch.dict(DOCUMENT_MODELS, ENTRIES):
        yield


@pytest.fixture(scope="module")
def fitted(named):
    return {name: DocumentModel(name, **SMALL).fit(COUNTS) for name in ENTRIES}


@pytest.mark.parametrize("name", ["mixture", "direct"])
def test_an_exact_model_has_the_same_record(fitted, name):
    model = fitted[name]
    record = model.perplexity_record(COUNTS)
    assert (record.kind, record.description) == ("exact", "log p(X), summed over the kinds")
    assert record.kl_per_document == record.n_samples == 0
    assert (
        record.per_document_perplexity == record.iwae_per_document_perplexity < record.unigram_per_document_perplexity
    )
    words = torch.log_softmax(model.fitted_.network.words.double(), 1).numpy()
    by_hand = np.logaddexp.reduce(COUNTS.toarray().astype(np.float64) @ words.T - math.log(2), axis=1)
    assert record.per_document_perplexity == pytest.approx(np.exp(-(by_hand / LENGTHS).mean()), rel=1e-5)
    assert model.perplexity(COUNTS) == pytest.approx(record.per_document_perplexity)


@pytest.mark.parametrize("name", ["mixture", "direct"])
def test_its_vectors_are_its_own_and_it_can_be_saved(fitted, name, tmp_path):
    model = fitted[name]
    posterior = model.posterior(COUNTS)
    np.testing.assert_allclose(posterior.mean.sum(1), 1, rtol=1e-5)
    assert not posterior.std.any() and (model.fitted_.kl_per_dimension > 0.05).all()
    assert [topic.kl for topic in model.latent_dimensions()] == sorted(model.fitted_.kl_per_dimension, reverse=True)
    assert "dev_kl" not in model.fitted_.history[-1]
    model.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert np.array_equal(again.transform(COUNTS), posterior.mean) and again.topics() == model.topics()


def test_the_command_line_and_the_report_show_no_bound_where_there_is_none(fitted, capsys):
    record = fitted["mixture"].perplexity_record(COUNTS)
    print_record(record, "documents")
    for shown in (capsys.readouterr().out, str(document_tiles(fitted["mixture"], record, None))):
        assert record.description in shown and "importance-weighted" not in shown and "KL" not in shown


class Watcher:
    def __init__(self, interrupt_at: float = 2.0):
        self.shares, self.records, self.notes, self.interrupt_at = [], [], [], interrupt_at

    def step(self, share_done: float, elbo: float, kl: float) -> None:
        self.shares.append(share_done)
        if share_done >= self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)

    def round(self, record: dict) -> None:
        self.records.append(record)

    def note(self, message: str) -> None:
        self.notes.append(message)


def test_a_direct_fit_is_recorded_like_any_other():
    watcher = Watcher()
    model = DocumentModel("direct", **SMALL, epochs=4).fit(COUNTS, progress=watcher, resume=True)
    assert watcher.shares == [0.25, 0.5, 0.75, 1.0] and watcher.records == model.fitted_.history
    assert "starting from the beginning" in watcher.notes[0]
    assert model.fitted_.stopped == "finished" and model.fitted_.fit_seconds > 0
    assert model.fitted_.dev_perplexity == min(record["dev_perplexity"] for record in model.fitted_.history)
    with pytest.raises(InputError, match="all documents at once"):
        model.partial_fit(COUNTS)


def test_a_direct_fit_can_be_interrupted_and_limited_in_time():
    model = DocumentModel("direct", **SMALL, epochs=10)
    with pytest.raises(KeyboardInterrupt):
        model.fit(COUNTS, progress=Watcher(interrupt_at=0.3))
    assert model.fitted_.stopped == "interrupted" and len(model.fitted_.history) == 3
    assert math.isfinite(model.perplexity(COUNTS))
    assert DocumentModel("direct", **SMALL, epochs=10, time_limit=1e-9).fit(COUNTS).fitted_.stopped == "time"


def test_an_estimator_can_be_chosen_only_where_there_is_a_choice():
    with pytest.raises(InputError, match="docnade has no choice of estimator"):
        DocumentModel("docnade", **SMALL, estimator="nvil").fit(COUNTS)
    with pytest.raises(InputError, match="this estimator is for a discrete h; for a Gaussian one: reparameterised"):
        DocumentModel(**SMALL, estimator="nvil").fit(COUNTS)


# What dimensions carry


def test_a_dimension_that_never_moves_carries_nothing():
    still = torch.full((5, 3), 1 / 3)
    frequencies = torch.log(torch.tensor([0.2, 0.3, 0.5]))
    assert gaussian_kl_per_dimension(torch.zeros(5, 3), torch.ones(5, 3)).abs().max() == 0
    for information in (
        bernoulli_kl_per_dimension(still),
        proportion_information(still),
        direction_information(still, torch.eye(3), frequencies, 9.0),
    ):
        np.testing.assert_allclose(information, 0, atol=1e-12)


def test_directions_carry_what_a_small_step_changes():
    """N words from softmax(h R + b): the mean KL from the mean h, for vectors that move little."""
    generator = torch.Generator().manual_seed(0)
    bias, directions = torch.randn(6, generator=generator).double(), torch.randn(6, 1, generator=generator).double()
    vectors = 0.01 * torch.randn(400, 1, generator=generator).double()
    centre = torch.log_softmax(vectors.mean(0) @ directions.T + bias, 0)
    moved = torch.log_softmax(vectors @ directions.T + bias, 1)
    divergence = (moved.exp() * (moved - centre)).sum(1).mean()
    assert direction_information(vectors, directions, centre, 50.0).item() == pytest.approx(
        50 * divergence.item(), rel=0.02
    )


# Schedules and names


def plain_network(name, **sizes):
    with seeded(0):
        made = model_class(name)(12, latent_dim=3, **sizes)
    made.learn_frequencies(torch.from_numpy(np.asarray(SOME.sum(0), np.float64).ravel()))
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


def test_names_that_no_registry_has_are_told():
    for wrong in (
        lambda: model_class("oak"),
        lambda: check_preset("oak", "paper"),
        lambda: check_preset("nvdm", "oak"),
    ):
        with pytest.raises(InputError, match="'oak'; there are"):
            wrong()
    check_preset("nvdm", "paper")


# Bounds and probabilities


def test_bounds_are_put_together_from_batches(monkeypatch):
    model = plain_network("nvdm")
    whole = document_bounds(model, SOME, 4, seed=1)
    with torch.no_grad():
        expected = model.posterior(model.encode(batch_of(SOME, torch.float32)))
    kl = 0.5 * (expected.mean**2 + expected.std**2 - 1) - expected.log_std
    np.testing.assert_allclose(whole.kl, kl.sum(1), rtol=1e-4)
    np.testing.assert_allclose(whole.kl_by_dimension, kl.mean(0), rtol=1e-4)
    np.testing.assert_allclose(whole.elbo, whole.log_likelihood - whole.kl)
    many = document_bounds(model, SOME, 400, seed=1)
    assert many.importance_weighted.mean() > many.elbo.mean() and whole.lengths.sum() == SOME.sum()
    assert np.array_equal(document_bounds(model, SOME, 4, seed=1).elbo, whole.elbo)
    assert not np.array_equal(document_bounds(model, SOME, 4, seed=2).elbo, whole.elbo)
    sizes = []
    monkeypatch.setattr(bounds_module, "MAX_LOGITS", 4 * 12 * 3)
    monkeypatch.setattr(
        bounds_module, "elbo", lambda model, batch, n: sizes.append(len(batch)) or elbo(model, batch, n)
    )
    in_parts = document_bounds(model, SOME, 4, seed=1)
    assert sizes == [3, 3, 2]
    np.testing.assert_allclose(in_parts.kl_by_dimension, whole.kl_by_dimension, rtol=1e-4)
    np.testing.assert_allclose(in_parts.kl, whole.kl, rtol=1e-4)


def test_an_exact_value_stands_in_all_places():
    values = np.array([-3.0, -4.0])
    found = exact_bounds(values, scipy.sparse.csr_matrix(np.array([[1.0, 2.0], [0.0, 5.0]])), 4)
    assert found.elbo.tolist() == found.importance_weighted.tolist() == [-3, -4] and found.lengths.tolist() == [3, 5]
    assert found.kl_by_dimension.tolist() == [0] * 4 and found.drawn == 0 and not found.kl.any()


@pytest.mark.parametrize("name", ["nvdm", "nvdm_gsm", "nvdm_categorical", "sbn", "fdarn"])
def test_word_probabilities_sum_to_one_and_make_the_likelihood(name):
    model, batch = plain_network(name), batch_of(SOME, torch.float32)
    with seeded(1):
        draws = draw(model, batch, 2)
    encoding = model.encode(batch)
    each = model.word_log_probabilities(draws.h)  # [S, B, V]
    torch.testing.assert_close(each.exp().sum(-1), torch.ones(2, 8))
    expected = (each * torch.from_numpy(SOME.toarray())).sum(-1)
    torch.testing.assert_close(model.log_likelihood(draws.h, encoding), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["nvdm", "nvdm_gsm", "nvdm_categorical", "sbn", "fdarn"])
def test_an_untrained_model_says_words_as_often_as_they_come(name):
    """The start is near the unigram model, and what a dimension does to words is near zero."""
    model, frequencies = plain_network(name), np.asarray(SOME.sum(0)).ravel() / SOME.sum()
    with seeded(1):
        h = draw(model, batch_of(SOME, torch.float32), 50).h
    each = model.word_log_probabilities(h).exp().mean((0, 1)).numpy()
    assert np.abs(each - frequencies).sum() < 0.3 and np.corrcoef(each, frequencies)[0, 1] > 0.9
    assert model.word_directions().shape == (12, model.vector_dim)


def test_unigram_frequencies_are_add_one():
    model = model_class("nvdm")(4, 2)
    model.learn_frequencies(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    torch.testing.assert_close(model.word_log_frequencies.exp(), torch.tensor([0.1, 0.2, 0.3, 0.4]))
    torch.testing.assert_close(model.decoder.bias, model.word_log_frequencies)


@pytest.mark.parametrize("name", ["nvdm", "nvdm_dcm", "swv"])
def test_documents_of_no_words_lie_at_the_prior_and_others_where_q_says(name):
    model, batch = scattered_network(name, SOME, spread=0.2), batch_of(WITH_EMPTY)
    model.axes = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).double())[0]
    vectors, q = model.document_vectors(batch), model.posterior(model.encode(batch))
    covariance = q.covariance if name == "nvdm_dcm" else torch.diag_embed(q.std.square())
    covariance = model.axes.T @ covariance @ model.axes
    torch.testing.assert_close(vectors.mean[:-1], (q.mean @ model.axes)[:-1])
    torch.testing.assert_close(vectors.std[:-1].square(), covariance.diagonal(dim1=1, dim2=2)[:-1])
    assert vectors.mean[-1].tolist() == [0.0] * 3 and vectors.std[-1].tolist() == [1.0] * 3


# Readable axes


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


def test_no_small_turn_makes_readable_axes_more_readable():
    """Varimax: the variance of squared coordinates, summed over axes, is at a maximum over all rotations."""
    generator = np.random.default_rng(0)
    means = generator.normal(size=(60, 5)) ** 3 @ generator.normal(size=(5, 5))
    axes, centred = varimax(means, rounds=2000, tolerance=1e-12), means - means.mean(0)

    def criterion(turned):
        return (turned**2).var(0).sum()

    best = criterion(centred @ axes)
    for first, second in itertools.combinations(range(5), 2):
        for angle in (-1e-2, 1e-2):
            turn = np.eye(5)
            turn[np.ix_([first, second], [first, second])] = [
                [math.cos(angle), -math.sin(angle)],
                [math.sin(angle), math.cos(angle)],
            ]
            assert criterion(centred @ axes @ turn) < best
    assert (((centred @ axes) ** 3).sum(0) > 0).all()


# Information per latent dimension


def test_information_against_torch_distributions_and_sums():
    generator = torch.Generator().manual_seed(0)
    mean, std = torch.randn(7, 3, generator=generator), torch.rand(7, 3, generator=generator) + 0.2
    normals = torch.distributions.Normal(mean, std), torch.distributions.Normal(0.0, 1.0)
    torch.testing.assert_close(
        gaussian_kl_per_dimension(mean, std), torch.distributions.kl_divergence(*normals).mean(0)
    )
    p = torch.rand(7, 3, generator=generator).double()
    units = torch.distributions.Bernoulli(p), torch.distributions.Bernoulli(p.mean(0).expand(7, 3))
    torch.testing.assert_close(bernoulli_kl_per_dimension(p), torch.distributions.kl_divergence(*units).mean(0))
    shares = torch.softmax(torch.randn(7, 3, generator=generator), 1).double()
    topics = torch.distributions.Categorical(shares), torch.distributions.Categorical(shares.mean(0).expand(7, 3))
    found = proportion_information(shares)
    torch.testing.assert_close(found.sum(), torch.distributions.kl_divergence(*topics).mean())
    torch.testing.assert_close(found, (shares * (shares / shares.mean(0)).log()).mean(0))
    assert bernoulli_kl_per_dimension(torch.tensor([[0.0], [1.0]])).item() == pytest.approx(math.log(2), abs=1e-4)
    same = direction_information(mean, torch.ones(4, 3), torch.full((4,), 0.25, dtype=torch.double).log(), 9.0)
    torch.testing.assert_close(same, torch.zeros(3).double(), atol=1e-12, rtol=0)  # words that all go the same way
