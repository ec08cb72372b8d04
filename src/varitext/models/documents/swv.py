"""SWV, semantic word vectors: the unsupervised model of Maas et al. (2011), "Learning word vectors for sentiment
analysis".

    prior               p(h) = N(0, I)
    posterior           in training a point, the most probable h (MAP); in evaluation q(h | X) = N(h_d, diag), with the
                        curvature at h_d as its precision
    likelihood          p(X | h) = prod_i softmax(h R + b)_{x_i}, as in NVDM
    KL                  in evaluation KL(q || N(0, I)), closed form: `latent/gaussian.py::diagonal_gaussian_kl`

h_d is found by gradient ascent. Then, with the h_d held fixed, R and b maximise

    sum_d  log p(X_d | h_d) - |h_d|^2 / 2  -  nu |R|^2

The paper also has a weight lambda of |h|^2; scaling h by a factor and R by its inverse turns any lambda into 1/2 with
another nu, so one of them is enough. Without nu the prior would have no effect: R would grow and h shrink.

A point is not a distribution, so its objective is not a log probability: perplexity uses the bound with q instead.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import Bound, DiagonalGaussian, Estimate
from varitext.layers.counts import multinomial_log_likelihood
from varitext.models.documents.base import DocumentNetwork, DocumentObjective, Recipe, check_steps
from varitext.models.documents.bounds import EstimateKind
from varitext.models.documents.log_linear import gradient_ascent, newton_step, precision_at
from varitext.training.settings import TrainingSettings


class Encoding(NamedTuple):
    posterior: DiagonalGaussian  # [B, K]   around the most probable h
    batch: CountBatch


class SWV(DocumentNetwork):
    """Log-linear word vectors with a MAP estimate of h for each document."""

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
        """`frobenius` is nu divided by the number of documents; the steps are those of gradient ascent to h_d."""
        super().__init__(vocabulary_size, latent_dim)
        self.frobenius, self.training_steps, self.steps = frobenius, training_steps, check_steps("steps", steps)
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
        return torch.log_softmax(self.decoder(h), -1)  # [S, B, V]

    # Training

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """log p(X, h) at the most probable h, minus the penalty; there, a change of h has no first-order effect."""
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
