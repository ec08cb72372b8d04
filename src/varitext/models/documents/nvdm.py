"""NVDM, the neural variational document model (paper, section 3 and appendix B.1).

    inference network   q(h | X) = N(mean(X), diag(std(X)^2))
    prior               p(h) = N(0, I)
    generative model    p(X | h) = prod_i softmax(h^T R + b)_{x_i}
    KL                  KL(q(h | X) || N(0, I)): training calls `latent/bound.py::elbo`, which takes the closed form
                        `latent/gaussian.py::diagonal_gaussian_kl`

Two inference networks share the generative model. `words` is the paper's, an MLP on the counts of all words.
`statistics` uses what the generative model itself says about the posterior:

    log p(h | X) = h^T (R X) - N log sum_w exp(h^T R_w + b_w) - |h|^2 / 2 + constant

A document enters only through R X and its length N: they are sufficient statistics. So the network reads K + 1
numbers made of those instead of V counts: one Newton step on this formula, which it learns to correct, and the log of
the length. It has no weight of its own for any word, hence cannot learn rare words' quirks by heart.

In prediction the mean may be refined: a few steps of gradient ascent on the same formula, which is concave in h, each
kept only where it goes up. That closes most of what is left of the amortisation gap; the bound is a bound for any q.
Where the mean is refined, evaluation gives q the whole covariance of a Laplace approximation there (`log_linear.py`).

With many words most of the work is the softmax over all of them. Training may then estimate its normaliser from some
(`sampled_softmax.py`); evaluation always has the exact one.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

import scipy.sparse
import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.errors import InputError
from varitext.latent import DiagonalGaussian, FullGaussian
from varitext.layers.counts import (
    CountEncoder,
    centred_log_length,
    multinomial_log_likelihood,
    sample_words,
    sampled_log_likelihood,
)
from varitext.layers.dense import MLP, GaussianHead
from varitext.models.documents.base import DocumentNetwork, DocumentObjective, Recipe
from varitext.models.documents.bounds import DocumentBounds, document_bounds
from varitext.models.documents.log_linear import gradient_ascent, laplace_posterior, newton_step
from varitext.training.settings import TrainingSettings

SAMPLED_ABOVE = 30_000  # words: from 20,000 on a whole fit gains by sampling, as measured in docs/benchmark.md


class Encoding(NamedTuple):
    hidden: Tensor  # [B, H]   pi of the paper
    start: DiagonalGaussian  # [B, K]   what the inference network corrects; the prior for `words`
    batch: CountBatch


class NVDM(DocumentNetwork):
    """A variational auto-encoder of bags of words; each latent dimension is a topic."""

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        inference: str = "words",
        hidden_dim: int = 500,
        hidden_layers: int = 2,
        activation: str = "relu",
        refinement_steps: int = 0,
        softmax: str | None = None,
    ):
        """`softmax` in training: full, sampled, or None to choose by the size of the vocabulary."""
        super().__init__(vocabulary_size, latent_dim)
        if inference not in ("words", "statistics"):
            raise InputError(f"inference is 'words' or 'statistics', not {inference!r}")
        if softmax not in ("full", "sampled", None):
            raise InputError(f"softmax is 'full', 'sampled' or None, not {softmax!r}")
        self.softmax = softmax or ("sampled" if vocabulary_size > SAMPLED_ABOVE else "full")
        self.inference = inference
        self.refinement_steps = refinement_steps
        self.decoder = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.decoder.weight, std=0.05)
        self.encoder: CountEncoder | MLP
        if inference == "words":
            self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation)
        else:
            self.encoder = MLP(latent_dim + 1, hidden_dim, hidden_layers, activation)
        self.head = GaussianHead(hidden_dim, latent_dim)

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        if self.inference == "words":
            hidden = self.encoder(batch)
            return Encoding(hidden, self._standard(hidden), batch)
        start = self.newton_step(batch)
        return Encoding(self.encoder(torch.cat([start.mean, centred_log_length(batch)[:, None]], 1)), start, batch)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return self._standard(encoding.hidden)

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        correction, start = self.head(encoding.hidden), encoding.start
        posterior = DiagonalGaussian(start.mean + correction.mean, start.log_std + correction.log_std).within_bounds()
        if self.training or not self.refinement_steps:
            return posterior
        return posterior._replace(mean=self.refine(posterior.mean, encoding.batch))

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        if self.training and self.softmax == "sampled":
            return sampled_log_likelihood(self.decoder, h, encoding.batch, sample_words(self.word_log_frequencies))
        return multinomial_log_likelihood(self.decoder(h), encoding.batch)  # [S, B]

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        model = _WithWholeCovariance(self) if self.refinement_steps else self
        return document_bounds(model, counts, samples, seed, self.device)

    def evaluate_round(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        return document_bounds(self, counts, samples, seed, self.device)

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of every word: for completing documents."""
        return torch.log_softmax(self.decoder(h), -1)  # [S, B, V]

    def newton_step(self, batch: CountBatch) -> DiagonalGaussian:
        """One step from h = 0 on log p(h | X), and the spread there.

        No gradient runs through this: R is learned from the words it has to explain, and the bound stays a bound
        whatever the inference network does.
        """
        return newton_step(self.decoder, batch)

    def refine(self, mean: Tensor, batch: CountBatch) -> Tensor:
        """Move the mean uphill on log p(h, X)."""
        return gradient_ascent(self.decoder, mean, batch, self.refinement_steps).h

    def _standard(self, like: Tensor) -> DiagonalGaussian:
        return DiagonalGaussian.standard(like.new_empty(len(like), self.latent_dim))

    # What users and training look at

    def linear_decoder(self) -> nn.Linear:
        return self.decoder

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """How to fit a corpus of this size; docs/nvdm.md says what each choice is worth."""
        if preset == "recommended":
            return _recommended_recipe(documents, words_per_document)
        return _paper_recipe() if preset == "paper" else _paper_network_recipe()


class _WithWholeCovariance:
    """The same model, whose q(h | X) is a Laplace approximation at the refined mean."""

    def __init__(self, network: NVDM):
        self.network = network
        self.encode, self.prior, self.log_likelihood = network.encode, network.prior, network.log_likelihood

    def posterior(self, encoding: Encoding) -> FullGaussian:
        return laplace_posterior(self.network.decoder, self.network.posterior(encoding).mean, encoding.batch)


def _paper_recipe() -> Recipe:
    """The paper's networks and objective, one sample, Adam, alternating updates. What it does not state is ours."""
    return Recipe(
        architecture={"inference": "words", "activation": "relu", "softmax": None},
        training=TrainingSettings(epochs=60, batch_size=64, learning_rate=1e-3, patience=15, updates="alternating"),
        objective=DocumentObjective(),
    )


def _paper_network_recipe() -> Recipe:
    """The paper's networks with our objective: documents weighted by length, word dropout, joint updates."""
    paper = _paper_recipe()
    training = dataclasses.replace(paper.training, updates="joint")
    return Recipe(paper.architecture, training, DocumentObjective(length_exponent=0.7, word_dropout=0.7))


def _recommended_recipe(documents: int, words_per_document: float) -> Recipe:
    """Many passes over few documents, few over many; early stopping cuts what is too long."""
    epochs = round(min(100, max(8, 5000 / math.sqrt(documents))))
    batch_size = min(256, max(32, 2 ** round(math.log2(documents / 32))))
    # a few thousand articles are learned by heart unless they change; a title of three words has none to spare
    word_dropout = 0.7 if documents < 5000 and words_per_document >= 20 else 0.0
    return Recipe(
        architecture={
            "inference": "statistics",
            "hidden_dim": 256,
            "activation": "silu",
            "refinement_steps": 4,
            "softmax": None,
        },
        training=TrainingSettings(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=5e-3 * math.sqrt(batch_size / 256),
            patience=max(5, epochs // 4),
        ),
        objective=DocumentObjective(length_exponent=0.7, word_dropout=word_dropout),
    )
