"""The gradient of the bound where h is discrete. With w the weight of the KL, what goes up is

    E_q[ f(h) ],   f(h) = log p(y | h) + w (log p(h | x) - log q(h | x, y)),   the learning signal.

No gradient runs through h, but (paper, end of section 2: policy gradient)

    gradient of E_q[f]  =  E_q[ (f(h) - b) gradient of log q(h) + gradient of (log p(y | h) + w log p(h)) ]

for any baseline b that does not depend on h. f keeps log p(h) - log q(h) inside even where the KL has a formula: any
prior will do, and where q is the true posterior f is a constant, which a baseline takes away whole.
"""

from typing import Any, NamedTuple

from torch import Tensor

from varitext.errors import InputError
from varitext.latent.bound import Bound, Draws, LatentModel, draw_encoded
from varitext.latent.divergence import Reparameterisable


class Estimate(NamedTuple):
    """What an estimator gives, per example."""

    surrogate: Tensor  # [B]   its value is the weighted bound, its gradient the estimate of that bound's gradient
    bound: Bound  # the KL at its full weight, for reports


class LogProbabilities(NamedTuple):
    """The three parts of the learning signal at some values of h."""

    likelihood: Tensor  # [S, B]
    prior: Tensor  # [S, B]
    posterior: Tensor  # [S, B]

    @classmethod
    def of(cls, draws: Draws) -> "LogProbabilities":
        return cls(draws.log_likelihood, draws.prior.log_prob(draws.h), draws.posterior.log_prob(draws.h))

    def signal(self, kl_weight: float) -> Tensor:
        """f(h) = log p(y | h) + w (log p(h) - log q(h))."""
        return self.likelihood + kl_weight * (self.prior - self.posterior)  # [S, B]

    def surrogate(self, advantage: Tensor, kl_weight: float) -> Tensor:
        """(1/S) sum_s (f_s - b_s) log q(h_s) + log p(y | h_s) + w log p(h_s), to be differentiated."""
        return (advantage.detach() * self.posterior + self.likelihood + kl_weight * self.prior).mean(0)  # [B]


def discrete_draws(model: LatentModel, encoding: Any, samples: int) -> Draws:
    draws = draw_encoded(model, encoding, samples)
    if isinstance(draws.posterior, Reparameterisable):
        raise InputError("this estimator is for a discrete h; a Gaussian one has better: reparameterised")
    return draws


def score_function(draws: Draws, parts: LogProbabilities, advantage: Tensor, kl_weight: float) -> Estimate:
    """The estimate that follows from advantage = f(h) - b, [S, B]."""
    bound = Bound(*(part.detach() for part in draws.elbo()))
    return Estimate(weighted(bound, kl_weight) + gradient_only(parts.surrogate(advantage, kl_weight)), bound)


def weighted(bound: Bound, kl_weight: float) -> Tensor:
    return bound.log_likelihood - kl_weight * bound.kl  # [B]


def gradient_only(surrogate: Tensor) -> Tensor:
    """Zero, with the gradient of `surrogate`."""
    return surrogate - surrogate.detach()
