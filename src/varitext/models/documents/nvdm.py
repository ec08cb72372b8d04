"""NVDM, the neural variational document model (paper, section 3 and appendix B.1).

    prior               p(h) = N(0, I)
    posterior           q(h | X) = N(mean(X), diag(std(X)^2)), the inference network
    likelihood          p(X | h) = prod_i softmax(h^T R + b)_{x_i}
    KL                  KL(q(h | X) || N(0, I)): training calls `latent/bound.py::elbo`, which takes the closed form
                        `latent/gaussian.py::diagonal_gaussian_kl`

There are three inference networks. `counts` is the paper's, an MLP on the counts of all words. `words` is the same on
log counts that are scaled to the same norm for every document. `statistics` uses what the generative model implies
about the posterior:

    log p(h | X) = h^T (R X) - N log sum_w exp(h^T R_w + b_w) - |h|^2 / 2 + constant

The formula depends on a document only through R X and its length N: they are sufficient statistics. So the network
reads K + 1 numbers instead of V counts: one Newton step on this formula, which it learns to correct, and the log of the
length. It has no weights of its own for single words, so it cannot memorise rare ones.

In prediction the mean may be refined by a few steps of gradient ascent on the same formula, which is concave in h; each
step is kept only if it goes up. This closes most of the remaining amortisation gap; the bound holds for any q. With a
refined mean, evaluation uses the full covariance of a Laplace approximation there (`log_linear.py`).

With a large vocabulary, most of the work is the softmax. Training may then estimate its normaliser from a sample of the
words (`layers/counts.py`); evaluation always uses the exact one.
"""

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
from varitext.models.documents.base import DocumentNetwork, DocumentObjective, Recipe, check_steps
from varitext.models.documents.bounds import DocumentBounds, document_bounds
from varitext.models.documents.log_linear import gradient_ascent, laplace_posterior, newton_step
from varitext.training.settings import TrainingSettings

SAMPLED_ABOVE = 30_000  # words; sampling makes a fit faster from 20,000 on


class Encoding(NamedTuple):
    hidden: Tensor  # [B, H]   pi of the paper
    start: DiagonalGaussian  # [B, K]   corrected by the inference network; the prior for `counts` and `words`
    batch: CountBatch


class NVDM(DocumentNetwork):
    """A variational autoencoder of bags of words."""

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
        estimator: str = "reparameterised",
    ):
        """`softmax` in training is "full", "sampled", or None to choose by vocabulary size."""
        super().__init__(vocabulary_size, latent_dim, estimator)
        if inference not in ("counts", "words", "statistics"):
            raise InputError(f"inference is 'counts', 'words' or 'statistics', not {inference!r}")
        if softmax not in ("full", "sampled", None):
            raise InputError(f"softmax is 'full', 'sampled' or None, not {softmax!r}")
        self.softmax = softmax or ("sampled" if vocabulary_size > SAMPLED_ABOVE else "full")
        self.inference = inference
        self.refinement_steps = check_steps("refinement_steps", refinement_steps)
        self.decoder = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.decoder.weight, std=0.05)
        self.encoder: CountEncoder | MLP
        if inference == "statistics":
            self.encoder = MLP(latent_dim + 1, hidden_dim, hidden_layers, activation)
        else:
            raw = inference == "counts"
            self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation, raw)
        self.head = GaussianHead(hidden_dim, latent_dim)

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        if self.inference != "statistics":
            hidden = self.encoder(batch)
            return Encoding(hidden, self._standard(hidden), batch)
        # no gradient runs through this step: R is learned from the likelihood alone, and the bound holds for any q
        start = newton_step(self.decoder, batch)
        return Encoding(self.encoder(torch.cat([start.mean, centred_log_length(batch)[:, None]], 1)), start, batch)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return self._standard(encoding.hidden)

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        correction, start = self.head(encoding.hidden), encoding.start
        posterior = DiagonalGaussian(start.mean + correction.mean, start.log_std + correction.log_std).within_bounds()
        if self.training or not self.refinement_steps:
            return posterior
        refined = gradient_ascent(self.decoder, posterior.mean, encoding.batch, self.refinement_steps)
        return posterior._replace(mean=refined.h)

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        if self.training and self.softmax == "sampled":
            return sampled_log_likelihood(self.decoder, h, encoding.batch, sample_words(self.word_log_frequencies))
        return multinomial_log_likelihood(self.decoder(h), encoding.batch)  # [S, B]

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        model = _WithFullCovariance(self) if self.refinement_steps else self
        return document_bounds(model, counts, samples, seed, self.device)

    def evaluate_round(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        return document_bounds(self, counts, samples, seed, self.device)

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        return torch.log_softmax(self.decoder(h), -1)  # [S, B, V]

    def _standard(self, like: Tensor) -> DiagonalGaussian:
        return DiagonalGaussian.standard(like.new_empty(len(like), self.latent_dim))

    # Vectors and training

    def linear_decoder(self) -> nn.Linear:
        return self.decoder

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """How to fit a corpus of this size; the documentation of NVDM measures the choices."""
        if preset == "recommended":
            return _recommended_recipe(documents, words_per_document)
        if preset == "paper":
            return _paper_recipe(documents)
        # "paper-network": our objective, with documents weighted by length, word dropout and joint updates
        architecture = {"inference": "words", "activation": "relu", "softmax": None}
        training = TrainingSettings(epochs=60, batch_size=64, learning_rate=1e-3, patience=15)
        return Recipe(architecture, training, DocumentObjective(length_exponent=0.7, word_dropout=0.7))


class _WithFullCovariance:
    """The same model with a Laplace approximation at the refined mean as q(h | X)."""

    def __init__(self, network: NVDM):
        self.network = network
        self.encode, self.prior, self.log_likelihood = network.encode, network.prior, network.log_likelihood

    def posterior(self, encoding: Encoding) -> FullGaussian:
        return laplace_posterior(self.network.decoder, self.network.posterior(encoding).mean, encoding.batch)


def _paper_recipe(documents: int) -> Recipe:
    """The paper's objective with the settings of its authors' code, except for a larger learning rate.

    Theirs, 5e-5, needs many more passes.
    """
    batch_size, passes = 64, round(min(800, max(20, 9e6 / documents)))  # 800 over 20 Newsgroups
    return Recipe(
        architecture={"inference": "counts", "hidden_layers": 1, "activation": "tanh", "softmax": None},
        training=TrainingSettings(
            epochs=passes,
            batch_size=batch_size,
            learning_rate=3e-4,
            learning_rate_schedule="constant",
            learning_rate_warm_up=0.0,
            kl_warm_up=0.0,
            updates="alternating",
            alternate_every=10 * math.ceil(documents / batch_size),  # ten passes each
            patience=100,
        ),
        objective=DocumentObjective(),
    )


def _recommended_recipe(documents: int, words_per_document: float) -> Recipe:
    """More passes over fewer documents; early stopping may end training sooner."""
    epochs = round(min(100, max(8, 5000 / math.sqrt(documents))))
    batch_size = min(256, max(32, 2 ** round(math.log2(documents / 32))))
    # a few thousand articles would be memorised without dropout; titles are too short for it
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
