"""KL(q || p), whatever q and p are: by formula where there is one, from draws of q otherwise."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from varitext.latent import gaussian
from varitext.latent.discrete import Bernoullis, Categoricals, bernoulli_kl, categorical_kl
from varitext.latent.full_gaussian import FullGaussian, full_kl
from varitext.latent.gaussian import DiagonalGaussian


class Distribution(Protocol):
    """What a prior must give. A posterior is `Reparameterisable` besides, or `Discrete`."""

    def log_prob(self, h: Tensor) -> Tensor:
        """For h of shape [S, B, ...]; returns [S, B]."""


@runtime_checkable
class Reparameterisable(Distribution, Protocol):
    def rsample(self, samples: int) -> Tensor:
        """Draws that gradients run through, [S, B, ...]."""


@runtime_checkable
class Discrete(Distribution, Protocol):
    def sample(self, samples: int) -> Tensor:
        """Draws that no gradient runs through, [S, B, ...]."""


@runtime_checkable
class Factorised(Distribution, Protocol):
    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        """log p(h_k | h_<k), [S, B, K]."""


def draw_from(distribution: Distribution, samples: int) -> Tensor:
    """With gradients where the distribution has them; a discrete h is trained by one of `estimators.py`."""
    if isinstance(distribution, Reparameterisable):
        return distribution.rsample(samples)
    if isinstance(distribution, Discrete):
        return distribution.sample(samples)
    raise TypeError(f"a posterior needs rsample or sample: {type(distribution).__name__} has neither")


FORMULAS: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {
    (DiagonalGaussian, DiagonalGaussian): gaussian.kl,
    (FullGaussian, DiagonalGaussian): full_kl,
    (Bernoullis, Bernoullis): bernoulli_kl,
    (Categoricals, Categoricals): categorical_kl,
}


def has_formula(q: Distribution, p: Distribution) -> bool:
    return (type(q), type(p)) in FORMULAS


def kl(q: Distribution, p: Distribution) -> Tensor:
    """KL(q || p) per latent dimension, analytic. Sum over the last axis for the divergence."""
    if not has_formula(q, p):
        raise TypeError(f"no formula for KL({type(q).__name__} || {type(p).__name__}): see kl_from_draws")
    return FORMULAS[type(q), type(p)](q, p)  # [B, K]


def kl_from_draws(q: Distribution, p: Distribution, h: Tensor) -> Tensor:
    """(1/S) sum_s log q(h_s) - log p(h_s), h_s ~ q: unbiased, and noisy. What an autoregressive prior needs.

    Per latent dimension where both are `Factorised`; in one sum otherwise.
    """
    if isinstance(q, Factorised) and isinstance(p, Factorised):
        return (q.log_prob_per_dimension(h) - p.log_prob_per_dimension(h)).mean(0)  # [B, K]
    return (q.log_prob(h) - p.log_prob(h)).mean(0)[:, None]  # [B, 1]


def divergence(q: Distribution, p: Distribution, h: Tensor) -> Tensor:
    """The formula where there is one; else the estimate from draws h of q."""
    return kl(q, p) if has_formula(q, p) else kl_from_draws(q, p, h)
