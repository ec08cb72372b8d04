"""The contract of a latent-variable model, and the two bounds that follow from it.

    log p(y | x)  >=  importance_weighted_bound  >=  elbo = E_q[log p(y | h)] - KL(q(h | x, y) || p(h | x))

in expectation over samples. Everything is per example: only training and evaluation average over examples.
"""

import math
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from varitext.latent.divergence import Distribution, divergence, draw_from


class LatentModel(Protocol):
    """What a model must give. `encoding` is whatever `encode` returns: usually a NamedTuple of tensors."""

    def encode(self, batch: Any) -> Any:
        """Steps 1 and 2 of the inference network: u = f_x(x), v = f_y(y), pi = g(u, v)."""

    def prior(self, encoding: Any) -> Distribution:
        """p(h | x), or p(h) where h has no parent."""

    def posterior(self, encoding: Any) -> Distribution:
        """q(h | x, y), step 3: mean = l_1(pi), log_std = l_2(pi)."""

    def log_likelihood(self, h: Tensor, encoding: Any) -> Tensor:
        """log p(y | h) for h of shape [S, B, K]; returns [S, B]."""


class Bound(NamedTuple):
    """The evidence lower bound and its two parts, one value per example."""

    log_likelihood: Tensor  # [B]    E_q[log p(y | h)]
    kl_per_dimension: Tensor  # [B, K]

    @property
    def kl(self) -> Tensor:
        return self.kl_per_dimension.sum(-1)  # [B]

    @property
    def elbo(self) -> Tensor:
        return self.log_likelihood - self.kl  # [B]


class Draws(NamedTuple):
    """Samples h of the posterior and what they say; both bounds follow from the same ones."""

    prior: Distribution
    posterior: Distribution
    h: Tensor  # [S, B, K]
    log_likelihood: Tensor  # [S, B]

    def elbo(self) -> Bound:
        return Bound(self.log_likelihood.mean(0), divergence(self.posterior, self.prior, self.h))

    def importance_weighted(self) -> Tensor:
        log_weight = self.log_likelihood + self.prior.log_prob(self.h) - self.posterior.log_prob(self.h)  # [S, B]
        return torch.logsumexp(log_weight, 0) - math.log(len(self.h))  # [B]


def draw(model: LatentModel, batch: Any, samples: int = 1) -> Draws:
    return draw_encoded(model, model.encode(batch), samples)


def draw_encoded(model: LatentModel, encoding: Any, samples: int) -> Draws:
    posterior = model.posterior(encoding)
    h = draw_from(posterior, samples)
    return Draws(model.prior(encoding), posterior, h, model.log_likelihood(h, encoding))


def elbo(model: LatentModel, batch: Any, samples: int = 1) -> Bound:
    """The variational lower bound (paper, equation 1); unbiased for any number of samples.

    The KL is analytic where q and p are of one kind, and taken from the samples otherwise. Its gradient is for a
    Gaussian h; a discrete one is trained by an estimator (`estimators.py`) instead.
    """
    return draw(model, batch, samples).elbo()


def importance_weighted_bound(model: LatentModel, batch: Any, samples: int) -> Tensor:
    """log of the mean importance weight (Burda et al. 2016): tighter than `elbo`, exact as samples grow."""
    return draw(model, batch, samples).importance_weighted()
