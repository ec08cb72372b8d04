"""How the gradient of the bound is estimated, by name: a model picks one with `choose_estimator`.

    reparameterised   Gaussian h: the gradient runs through h
    leave_one_out     discrete h: the baseline of one draw is the mean of the others
    nvil              discrete h: the baseline is learned (Mnih and Gregor 2014)
    local_expectation Bernoulli h of a model with `local_log_odds`: `local_expectation.py`
    exact             discrete h of few values: the sum over all of them

An estimator is a module, for its state to be in the model's checkpoints, and is called with the model:
`estimator(model, batch, samples, kl_weight)`. `score_function.py` has the formula.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from varitext.errors import InputError
from varitext.latent.bound import Bound, Draws, LatentModel, draw
from varitext.latent.divergence import Discrete, Reparameterisable, has_formula, kl
from varitext.latent.local_expectation import LocalExpectation
from varitext.latent.score_function import (
    Estimate,
    LogProbabilities,
    discrete_draws,
    gradient_only,
    score_function,
    weighted,
)
from varitext.runtime.processes import mean_over_batch, variance_over_batch

MAX_SPACE = 4096  # values of h; the decoder runs on each of them for every example


class Reparameterised(nn.Module):
    """Gradients through h = mean + std * noise (paper, equations 3 and 4), and through the analytic KL."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        draws = draw(model, batch, samples)
        if not isinstance(draws.posterior, Reparameterisable):
            raise InputError("reparameterised is for a Gaussian h; for a discrete one: leave_one_out, nvil or exact")
        bound = draws.elbo()
        return Estimate(weighted(bound, kl_weight), bound)


class LeaveOneOut(nn.Module):
    """b of a draw is the mean of f over the other draws: unbiased, and nothing to learn (Kool et al. 2019)."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 4, kl_weight: float = 1.0) -> Estimate:
        if samples < 2:
            raise InputError("leave_one_out compares draws with each other: it needs 2 samples or more, better 4")
        draws = discrete_draws(model, model.encode(batch), samples)
        parts = LogProbabilities.of(draws)
        return score_function(draws, parts, leave_one_out_advantage(parts.signal(kl_weight)), kl_weight)


def leave_one_out_advantage(signal: Tensor) -> Tensor:
    """f_s - (1/(S-1)) sum_{t != s} f_t  =  (f_s - mean f) S / (S-1)."""
    samples = len(signal)
    return (signal - signal.mean(0)) * (samples / (samples - 1))  # [S, B]


class BaselineInput(NamedTuple):
    """What a model's `baseline_input(encoding)` tells `nvil`."""

    features: Tensor | None = None  # [B, D]   what C(x) reads
    scale: Tensor | float = 1.0  # [B]   how f grows with x: with a document's length, b is learned per word


@runtime_checkable
class HasBaselineInput(Protocol):
    def baseline_input(self, encoding: Any) -> BaselineInput: ...


class NVIL(nn.Module):
    """Neural variational inference and learning (Mnih and Gregor 2014, algorithm 1).

        advantage = (f(h) - C(x) - c) / max(1, sqrt(v))

    c and v are moving averages of the mean and variance of f - C; C is a network of one hidden layer, trained by least
    squares. C and c are learned per unit of `BaselineInput.scale`. Dividing makes q's steps independent of how large f
    is: its mean gradient is the true one divided by max(1, sqrt(v)). Unlike in algorithm 1, c and v are those of the
    batches before: this batch's own draws in them would bias the estimate. (The first batch has to take its own.)
    """

    centre: Tensor  # c
    variance: Tensor  # v
    started: Tensor

    def __init__(self, baseline_dim: int = 0, hidden_dim: int = 100, decay: float = 0.8):
        """`baseline_dim` is the width D of the features of the model's `baseline_input`; 0 is C(x) = 0."""
        super().__init__()
        self.decay = decay
        self.baseline = _baseline(baseline_dim, hidden_dim) if baseline_dim else None
        self.register_buffer("centre", torch.zeros(()))
        self.register_buffer("variance", torch.zeros(()))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        encoding = model.encode(batch)
        draws = discrete_draws(model, encoding, samples)
        parts = LogProbabilities.of(draws)
        read = model.baseline_input(encoding) if isinstance(model, HasBaselineInput) else BaselineInput()
        predicted = torch.zeros_like(parts.prior[0])  # [B]
        if self.baseline is not None:
            if read.features is None:
                raise TypeError("a baseline of some width needs the features of the model's baseline_input")
            predicted = self.baseline(read.features.detach())
        advantage = self.advantage((parts.signal(kl_weight) / read.scale - predicted).detach(), read.scale)
        estimate = score_function(draws, parts, advantage, kl_weight)
        # the gradient of half the squared error (f - C - c)^2, in the units of C
        least_squares = gradient_only((advantage / read.scale).mean(0) * predicted)
        return estimate._replace(surrogate=estimate.surrogate + least_squares)

    def advantage(self, unexplained: Tensor, scale: Tensor | float) -> Tensor:
        """From f / scale - C, [S, B]; in training the moving averages move on."""
        if self.training and not self.started:
            self._move(unexplained, scale, decay=0.0)
        advantage = (unexplained - self.centre) * scale / self.variance.sqrt().clamp(min=1)
        if self.training:
            self._move(unexplained, scale, self.decay)
        return advantage  # [S, B]

    def _move(self, unexplained: Tensor, scale: Tensor | float, decay: float) -> None:
        self.centre.lerp_(mean_over_batch(unexplained).to(self.centre), 1 - decay)
        variance = variance_over_batch((unexplained - self.centre) * scale)
        self.variance.lerp_(variance.to(self.variance), 1 - decay)
        self.started.fill_(True)


def _baseline(input_dim: int, hidden_dim: int) -> nn.Module:
    """C(x): [B, D] to [B]."""
    return nn.Sequential(nn.Linear(input_dim, hidden_dim), nn.Tanh(), nn.Linear(hidden_dim, 1), nn.Flatten(0))


class Exact(nn.Module):
    """E_q[f] as the sum over every h: no noise. `samples` is not used."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        draws = every_value(model, batch)
        parts = LogProbabilities.of(draws)
        probabilities = parts.posterior.exp()  # [N, B]
        if has_formula(draws.posterior, draws.prior):
            divergence = kl(draws.posterior, draws.prior)
        else:
            divergence = _expectation(probabilities, parts.posterior - parts.prior)[:, None]
        bound = Bound(_expectation(probabilities, parts.likelihood), divergence)
        return Estimate(weighted(bound, kl_weight), bound)


def exact_evidence(model: LatentModel, batch: Any) -> Tensor:
    """log p(y | x) = log sum_h p(y | h) p(h | x): what the bounds are bounds of."""
    draws = every_value(model, batch)
    return torch.logsumexp(draws.log_likelihood + draws.prior.log_prob(draws.h), 0)  # [B]


@runtime_checkable
class Enumerable(Discrete, Protocol):
    @property
    def number_of_values(self) -> int: ...

    def values(self) -> Tensor:
        """Every h there is, for every example, [N, B, ...]."""


def every_value(model: LatentModel, batch: Any) -> Draws:
    """Every value of h once, [N, B, K], in place of draws."""
    encoding = model.encode(batch)
    posterior = model.posterior(encoding)
    if not isinstance(posterior, Enumerable):
        raise InputError(f"exact sums over every value of h: {type(posterior).__name__} cannot list them")
    size = posterior.number_of_values
    if size > MAX_SPACE:
        many = f"{float(size):.2g}" if size > 10**6 else f"{size}"
        raise InputError(
            f"exact sums over every value of h: {many} here, at most {MAX_SPACE}; use leave_one_out or nvil instead"
        )
    h = posterior.values()
    return Draws(model.prior(encoding), posterior, h, model.log_likelihood(h, encoding))


def _expectation(probabilities: Tensor, values: Tensor) -> Tensor:
    """sum_h q(h) values(h), where what cannot happen counts for nothing, be it infinite."""
    return (probabilities * values.masked_fill(probabilities == 0, 0.0)).sum(0)  # [B]


ESTIMATORS = {
    "reparameterised": Reparameterised,
    "leave_one_out": LeaveOneOut,
    "nvil": NVIL,
    "local_expectation": LocalExpectation,
    "exact": Exact,
}


def choose_estimator(name: str, baseline_dim: int = 0) -> nn.Module:
    """By name; `baseline_dim` is the width of what the model's `baseline_input` gives, for `nvil`."""
    if name not in ESTIMATORS:
        raise InputError(f"no estimator is called {name!r}; there are: {', '.join(ESTIMATORS)}")
    return NVIL(baseline_dim) if name == "nvil" else ESTIMATORS[name]()
