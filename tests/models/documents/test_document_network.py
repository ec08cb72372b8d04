"""What DocumentModel asks of a model, with two that are nothing like NVDM: one exact, one that learns by itself."""

import math
import os
import signal
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import topic_documents
from torch import Tensor, nn

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch, CountBatches
from varitext.cli.evaluate import print_record
from varitext.latent import Bound, Estimate
from varitext.layers.counts import multinomial_log_likelihood
from varitext.models.documents import DOCUMENT_MODELS, DocumentEntry
from varitext.models.documents.base import DocumentNetwork, DocumentObjective, DocumentVectors, Recipe
from varitext.models.documents.bounds import (
    DocumentBounds,
    EstimateKind,
    bernoulli_kl_per_dimension,
    direction_information,
    exact_bounds,
    gaussian_kl_per_dimension,
    proportion_information,
)
from varitext.report.documents import document_tiles
from varitext.training.settings import TrainingSettings

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
    assert (record.kind, record.figure) == ("exact", "log p(X), summed over the kinds")
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
        assert record.figure in shown and "importance-weighted" not in shown and "KL" not in shown


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
    with pytest.raises(InputError, match="nvdm_dcm has no choice of estimator"):
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


def test_a_unit_that_tells_two_halves_apart_has_log_2_nats():
    halves = torch.tensor([[0.0], [1.0]]).repeat(10, 1)
    assert bernoulli_kl_per_dimension(halves).item() == pytest.approx(math.log(2), abs=1e-4)
    shares = torch.cat([halves, 1 - halves], 1)
    assert proportion_information(shares).sum().item() == pytest.approx(math.log(2))


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
