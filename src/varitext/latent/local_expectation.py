"""Local expectation gradients for Bernoulli latents (Titsias and Lazaro-Gredilla 2015).

The bound's gradient for the logit a_k of q(h_k = 1) needs no score function if both values of h_k are looked at:

    d/da_k E_q[g(h)]  =  sigmoid'(a_k) E_q[ g(h with h_k = 1) - g(h with h_k = 0) ],   g = log p(y | h) + w log p(h)

The other units are drawn, h_k is summed over; the entropy of q has a formula. Unbiased, nothing to learn, and with one
draw far less noisy than a baseline makes four: every unit learns from its own difference, not from the sum of all.
The price is that a model must know all K differences at a draw at once: `local_log_odds(h, encoding)`.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from varitext.errors import InputError
from varitext.latent.bound import Bound, LatentModel
from varitext.latent.discrete import Bernoullis
from varitext.latent.score_function import Estimate, discrete_draws, gradient_only, weighted


class LocalLogOdds(NamedTuple):
    """log p with h_k = 1 less log p with h_k = 0, the other units as they are in h; no gradient runs through it."""

    likelihood: Tensor  # [S, B, K]   of log p(y | h)
    prior: Tensor  # [S, B, K]   of log p(h | x)


@runtime_checkable
class HasLocalLogOdds(Protocol):
    def local_log_odds(self, h: Tensor, encoding: Any) -> LocalLogOdds:
        """Of every unit at every draw."""


class LocalExpectation(nn.Module):
    """For `Bernoullis` and a model with `local_log_odds`."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        encoding = model.encode(batch)
        draws = discrete_draws(model, encoding, samples)
        if not (isinstance(draws.posterior, Bernoullis) and isinstance(model, HasLocalLogOdds)):
            raise InputError(
                "local_expectation is for Bernoulli latents of a model with local_log_odds; or use leave_one_out"
            )
        q, gains = draws.posterior, model.local_log_odds(draws.h, encoding)
        worth = (gains.likelihood + kl_weight * gains.prior).mean(0).detach()  # [B, K]
        of_q = (q.probabilities * worth + kl_weight * q.entropy).sum(-1)
        of_p = (draws.log_likelihood + kl_weight * draws.prior.log_prob(draws.h)).mean(0)
        bound = Bound(*(part.detach() for part in draws.elbo()))
        return Estimate(weighted(bound, kl_weight) + gradient_only(of_q + of_p), bound)  # [B]
