"""SWV, semantic word vectors: the unsupervised model of Maas and others (2011), "Learning word vectors for sentiment
analysis".

    p(w | h) = softmax(h R + b)_w,     h ~ N(0, I)

the prior and generative model of NVDM, but learned with one point per document: the h that is most probable given its
words, found by gradient ascent (MAP). Then R and b go uphill on

    sum_d  log p(X_d | h_d) - |h_d|^2 / 2  -  nu |R|^2

with the h_d held. The paper also has a weight lambda of |h|^2; multiplying h by some number and R by its inverse turns
any lambda into 1/2 with another nu, so one of them is enough. Without nu the prior would mean nothing: R would grow,
and h would need to be nowhere else than near 0.

Such a point is not a distribution, and exp of its objective no probability. Perplexity is therefore of a true bound:
that of q = N(h_d, diag) with the curvature at h_d for precision, and its KL by formula: `latent/bound.py::kl`.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import Bound, DiagonalGaussian, Estimate
from varitext.layers.counts import multinomial_log_likelihood
from varitext.models.documents.base import DocumentNetwork, DocumentObjective, Recipe
from varitext.models.documents.bounds import EstimateKind
from varitext.models.documents.log_linear import gradient_ascent, newton_step, precision_at
from varitext.training.settings import TrainingSettings


class Encoding(NamedTuple):
    posterior: DiagonalGaussian  # [B, K]   around the most probable h
    batch: CountBatch


class SWV(DocumentNetwork):
    """Log-linear word vectors with the most probable h of each document."""

    estimate_kind = EstimateKind(
        "bound",
        "variational lower bound on log p(X), KL included, with q a Gaussian at the most probable h: "
        "an upper bound on perplexity",
    )

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        frobenius: float = 1e-3,
        training_steps: int = 8,
        steps: int = 40,
    ):
        """`frobenius` is nu over the number of documents; the steps are those uphill to the most probable h."""
        super().__init__(vocabulary_size, latent_dim)
        self.frobenius, self.training_steps, self.steps = frobenius, training_steps, steps
        self.decoder = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.decoder.weight, std=0.05)

    # The four methods of the framework, for the bound

    def encode(self, batch: CountBatch) -> Encoding:
        start = newton_step(self.decoder, batch).mean
        top = gradient_ascent(self.decoder, start, batch, self.training_steps if self.training else self.steps).h
        return Encoding(DiagonalGaussian(top, -0.5 * precision_at(self.decoder, top, batch).log()), batch)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return DiagonalGaussian.standard(encoding.posterior.mean)

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        return encoding.posterior

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return multinomial_log_likelihood(self.decoder(h), encoding.batch)  # [S, B]

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of every word: for completing documents."""
        return torch.log_softmax(self.decoder(h), -1)  # [S, B, V]

    # Learning

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """log p(X, h) at the most probable h, less the penalty. h moves too when R does, but at the top that changes
        nothing to first order."""
        encoding = self.encode(batch)
        h = encoding.posterior.mean
        bound = Bound(self.log_likelihood(h[None], encoding)[0], 0.5 * h.square())
        return Estimate(bound.elbo - self.frobenius * self.decoder.weight.square().sum(), bound)

    def linear_decoder(self) -> nn.Linear:
        return self.decoder

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        return Recipe(
            architecture={"frobenius": 30 / documents},
            training=TrainingSettings(epochs=30, batch_size=128, learning_rate=5e-3, patience=8, kl_warm_up=0),
            objective=DocumentObjective(length_exponent=0.7),
        )
