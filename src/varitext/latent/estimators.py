"""Estimators of the bound's gradient, by name: a model picks one with `choose_estimator`.

    reparameterised      Gaussian h: the gradient runs through h
    leave_one_out        discrete h: the baseline of one draw is the mean of the others
    nvil                 discrete h: the baseline is learned (Mnih and Gregor 2014)
    local_expectation    Bernoulli h of a model with `local_log_odds`: each unit is summed out in turn
    exact                discrete h with few values: the sum over all of them
    importance_weighted  Gaussian h: the importance-weighted bound in place of the ELBO (Burda et al. 2016)
    dreg                 Gaussian h: the same bound, doubly reparameterised gradient of q (Tucker et al. 2019)
    vimco                discrete h: the same bound, leave-one-out baselines (Mnih and Rezende 2016)

An estimator is a module, so that its state is part of the model's checkpoints: `estimator(model, batch, samples,
kl_weight)` returns an `Estimate`. All but `exact`, which draws nothing, take the bound from `bound.py::elbo`.

Where h is discrete, with w the weight of the KL, training maximises

    E_q[ f(h) ],   f(h) = log p(y | h) + w (log p(h | x) - log q(h | x, y)),   the learning signal.

No gradient runs through h, but (paper, end of section 2: policy gradient)

    gradient of E_q[f]  =  E_q[ (f(h) - b) gradient of log q(h) + gradient of (log p(y | h) + w log p(h)) ]

for any baseline b that does not depend on h. f contains log p(h) - log q(h) even if the KL has a closed form: it then
holds for any prior, and if q is the true posterior f is a constant, which a baseline removes entirely.
"""

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from varitext.errors import InputError
from varitext.latent.bound import (
    CLOSED_FORMS,
    Bound,
    Discrete,
    Distribution,
    Draws,
    LatentModel,
    Reparameterisable,
    SampledBound,
    elbo,
    kl,
)
from varitext.latent.discrete import Bernoullis
from varitext.runtime.processes import mean_over_batch, variance_over_batch

MAX_SPACE = 4096  # values of h; the decoder runs on each of them for every example


class Estimate(NamedTuple):
    """What an estimator returns, per example.

    Parameters
    ----------
    surrogate : Tensor of shape (B,)
        Its value is the bound at the given KL weight; its gradient is the estimate of that bound's gradient.
    bound : Bound
        The bound with the KL at full weight, for reports.
    """

    surrogate: Tensor  # [B]
    bound: Bound


class Reparameterised(nn.Module):
    """Gradients through h = mean + std * noise (paper, equations 3 and 4), and through the analytic KL."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        bound = _gaussian_elbo(model, batch, samples)
        return Estimate(bound.weighted(kl_weight), bound)


# Score-function estimators


class LogProbabilities(NamedTuple):
    """The three parts of the learning signal at some values of h."""

    likelihood: Tensor  # [S, B]
    prior: Tensor  # [S, B]
    posterior: Tensor  # [S, B]

    @classmethod
    def of(cls, draws: Draws) -> "LogProbabilities":
        return cls(draws.log_likelihood, draws.prior.log_prob(draws.h), draws.posterior.log_prob(draws.h))

    def signal(self, kl_weight: float) -> Tensor:
        """f(h) = log p(y | h) + w (log p(h) - log q(h)), [S, B]."""
        return self.likelihood + kl_weight * (self.prior - self.posterior)

    def surrogate(self, advantage: Tensor, kl_weight: float) -> Tensor:
        """(1/S) sum_s (f_s - b_s) log q(h_s) + log p(y | h_s) + w log p(h_s), to be differentiated: [B]."""
        return (advantage.detach() * self.posterior + self.likelihood + kl_weight * self.prior).mean(0)


def score_function(bound: SampledBound, parts: LogProbabilities, advantage: Tensor, kl_weight: float) -> Estimate:
    """The estimate that follows from advantage = f(h) - b, [S, B]."""
    return _estimate(bound, parts.surrogate(advantage, kl_weight), kl_weight)


class LeaveOneOut(nn.Module):
    """The baseline of a draw is the mean of f over the other draws: unbiased, nothing to learn (Kool et al. 2019)."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 4, kl_weight: float = 1.0) -> Estimate:
        check_samples("leave_one_out", samples)
        bound = _discrete_elbo(model, batch, samples)
        parts = LogProbabilities.of(bound.draws)
        signal = parts.signal(kl_weight)
        # f_s - (1/(S-1)) sum_{t != s} f_t  =  (f_s - mean f) S / (S-1), [S, B]
        return score_function(bound, parts, (signal - signal.mean(0)) * (samples / (samples - 1)), kl_weight)


class BaselineInput(NamedTuple):
    """What a model's `baseline_input(encoding)` gives the baseline of `nvil`.

    Parameters
    ----------
    features : Tensor of shape (B, D), default=None
        What the baseline network C(x) reads.
    scale : Tensor of shape (B,) or float, default=1.0
        How f grows with x: with document lengths here, the baseline is learned per word.
    """

    features: Tensor | None = None  # [B, D]
    scale: Tensor | float = 1.0  # [B]


@runtime_checkable
class HasBaselineInput(Protocol):
    def baseline_input(self, encoding: Any) -> BaselineInput: ...


class NVIL(nn.Module):
    """Neural variational inference and learning (Mnih and Gregor 2014, algorithm 1).

        advantage = (f(h) - C(x) - c) / max(1, sqrt(v))

    c and v are moving averages of the mean and variance of f - C; C is a network with one hidden layer, trained by
    least squares. C and c are learned per unit of `BaselineInput.scale`. The division makes q's steps independent of
    the size of f: q's mean gradient is the true one divided by max(1, sqrt(v)). Unlike in algorithm 1, c and v come
    from earlier batches, because the draws of this batch would bias the estimate. (The first batch has to use its own.)
    """

    centre: Tensor  # c
    variance: Tensor  # v
    started: Tensor

    def __init__(self, baseline_dim: int = 0, hidden_dim: int = 100, decay: float = 0.8):
        """`baseline_dim` is the width D of the features of the model's `baseline_input`; 0 means C(x) = 0."""
        super().__init__()
        self.decay = decay
        self.baseline: nn.Module | None = None  # C(x): [B, D] to [B]
        if baseline_dim:
            first, second = nn.Linear(baseline_dim, hidden_dim), nn.Linear(hidden_dim, 1)
            self.baseline = nn.Sequential(first, nn.Tanh(), second, nn.Flatten(0))
        self.register_buffer("centre", torch.zeros(()))
        self.register_buffer("variance", torch.zeros(()))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        bound = _discrete_elbo(model, batch, samples)
        parts = LogProbabilities.of(bound.draws)
        read = BaselineInput()
        if isinstance(model, HasBaselineInput):
            read = model.baseline_input(bound.draws.encoding)
        predicted = torch.zeros_like(parts.prior[0])  # [B]
        if self.baseline is not None:
            if read.features is None:
                raise TypeError("a baseline of some width needs the features of the model's baseline_input")
            predicted = self.baseline(read.features.detach())
        advantage = self.advantage((parts.signal(kl_weight) / read.scale - predicted).detach(), read.scale)
        estimate = score_function(bound, parts, advantage, kl_weight)
        # the gradient of half the squared error (f - C - c)^2, in the units of C
        least_squares = _gradient_only((advantage / read.scale).mean(0) * predicted)
        return estimate._replace(surrogate=estimate.surrogate + least_squares)

    def advantage(self, unexplained: Tensor, scale: Tensor | float) -> Tensor:
        """From f / scale - C, [S, B]; in training this updates the moving averages."""
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


# Local expectation gradients


class LocalLogOdds(NamedTuple):
    """log p with h_k = 1 minus log p with h_k = 0, the other units as in h; no gradient runs through it.

    Parameters
    ----------
    likelihood, prior : Tensor of shape (S, B, K)
        Of log p(y | h) and of log p(h | x).
    """

    likelihood: Tensor  # [S, B, K]
    prior: Tensor  # [S, B, K]


@runtime_checkable
class HasLocalLogOdds(Protocol):
    def local_log_odds(self, h: Tensor, encoding: Any) -> LocalLogOdds:
        """For every unit at every draw."""


class LocalExpectation(nn.Module):
    """Local expectation gradients for Bernoulli latents (Titsias and Lazaro-Gredilla 2015).

        d/da_k E_q[g(h)]  =  sigmoid'(a_k) E_q[ g(h with h_k = 1) - g(h with h_k = 0) ]

    with a_k the logit of q(h_k = 1) and g = log p(y | h) + w log p(h): h_k is summed over, the other units are drawn,
    and the entropy of q has a closed form. Unbiased, nothing to learn, and with one draw far less noisy than four draws
    with a baseline, because every unit learns from its own difference. In return the model must provide all K
    differences at a draw at once: `local_log_odds(h, encoding)`.
    """

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        bound = _discrete_elbo(model, batch, samples)
        q, draws = bound.draws.posterior, bound.draws
        if not (isinstance(q, Bernoullis) and isinstance(model, HasLocalLogOdds)):
            raise InputError(
                "local_expectation is for Bernoulli latents of a model with local_log_odds; or use leave_one_out"
            )
        gains = model.local_log_odds(draws.h, draws.encoding)
        worth = (gains.likelihood + kl_weight * gains.prior).mean(0).detach()  # [B, K]
        of_q = (q.probabilities * worth + kl_weight * q.entropy).sum(-1)
        of_p = (draws.log_likelihood + kl_weight * draws.prior.log_prob(draws.h)).mean(0)
        return _estimate(bound, of_q + of_p, kl_weight)


def _discrete_elbo(model: LatentModel, batch: Any, samples: int) -> SampledBound:
    bound = elbo(model, batch, samples)
    if isinstance(bound.draws.posterior, Reparameterisable):
        raise InputError(
            "this estimator is for a discrete h; for a Gaussian one: reparameterised, dreg or importance_weighted"
        )
    return bound


def _gaussian_elbo(model: LatentModel, batch: Any, samples: int) -> SampledBound:
    bound = elbo(model, batch, samples)
    if not isinstance(bound.draws.posterior, Reparameterisable):
        raise InputError("this estimator is for a Gaussian h; for a discrete one: leave_one_out, nvil, vimco or exact")
    return bound


def _estimate(bound: Bound, surrogate: Tensor, kl_weight: float) -> Estimate:
    """The value of the bound with the gradient of `surrogate`."""
    bound = bound.detach()
    return Estimate(bound.weighted(kl_weight) + _gradient_only(surrogate), bound)


def _gradient_only(surrogate: Tensor) -> Tensor:
    """Zero, with the gradient of `surrogate`."""
    return surrogate - surrogate.detach()


# The importance-weighted bound, with weights w_s = exp f(h_s) of S draws and their shares v_s = w_s / sum_t w_t
#
#     L  =  log (1/S) sum_s w_s,     gradient of L  =  sum_s v_s gradient of f(h_s)


class ImportanceWeighted(nn.Module):
    """The gradient of L through h. With more draws L is tighter, but its gradient for q is lost in noise."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 8, kl_weight: float = 1.0) -> Estimate:
        check_samples("importance_weighted", samples)
        bound = _gaussian_elbo(model, batch, samples)
        return Estimate(_log_mean(LogProbabilities.of(bound.draws).signal(kl_weight)), bound.detach())


@runtime_checkable
class Detachable(Reparameterisable, Protocol):
    def detach(self) -> Distribution:
        """The same distribution without gradients."""


class DReG(nn.Module):
    """The same, without the noise of q's score: doubly reparameterised gradients.

    f depends on q through h and through log q(h) itself. The second path is a score-function gradient, and the identity
    E_q[g(h) gradient of log q(h)] = E_q[dg/dh gradient of h] turns it into one through h. What is left is

        gradient for q  =  sum_s v_s (1 - w + w v_s) df/dh_s gradient of h_s,     w the weight of the KL

    which is zero for every draw if q is the true posterior. The generative model's gradient is as before.
    """

    def forward(self, model: LatentModel, batch: Any, samples: int = 8, kl_weight: float = 1.0) -> Estimate:
        check_samples("dreg", samples)
        bound = _gaussian_elbo(model, batch, samples)
        draws, q, h = bound.draws, bound.draws.posterior, bound.draws.h
        if not isinstance(q, Detachable):
            raise InputError(f"dreg needs a posterior with detach(): {type(q).__name__} has none")
        signal = LogProbabilities.of(draws._replace(posterior=q.detach())).signal(kl_weight)
        shares = torch.softmax(signal.detach(), 0)  # [S, B]
        if h.requires_grad:
            through_h = (1 - kl_weight + kl_weight * shares).view(*shares.shape, *[1] * (h.ndim - 2))
            h.register_hook(lambda gradient: gradient * through_h)  # type: ignore[no-untyped-call]
        surrogate = _gradient_only((shares * signal).sum(0))
        return Estimate(_log_mean(signal.detach()) + surrogate, bound.detach())


class VIMCO(nn.Module):
    """The gradient of L for a discrete h: the baseline of a draw is L with its weight replaced.

        gradient of L  =  E_q[ sum_s (L - L_s) gradient of log q(h_s) + v_s gradient of f(h_s) ]

    L_s has the geometric mean of the other weights in place of w_s: unbiased, and nothing to learn.
    """

    def forward(self, model: LatentModel, batch: Any, samples: int = 4, kl_weight: float = 1.0) -> Estimate:
        check_samples("vimco", samples)
        bound = _discrete_elbo(model, batch, samples)
        parts = LogProbabilities.of(bound.draws)
        signal = parts.signal(kl_weight)
        known = signal.detach()
        others = (known.sum(0) - known) / (samples - 1)  # [S, B]   log of the geometric mean
        own = torch.eye(samples, dtype=torch.bool, device=known.device)[:, :, None]
        without = _log_mean(torch.where(own, others, known[:, None]))  # [S, B]   L_s: in column s, w_s is replaced
        value = _log_mean(known)
        surrogate = ((value - without) * parts.posterior + torch.softmax(known, 0) * signal).sum(0)
        return Estimate(value + _gradient_only(surrogate), bound.detach())


def _log_mean(log_weights: Tensor) -> Tensor:
    """log of the mean weight over the first axis."""
    return torch.logsumexp(log_weights, 0) - math.log(len(log_weights))


# Sums over every value of h


class Exact(nn.Module):
    """E_q[f] as the sum over every h: no noise. `samples` is not used."""

    def forward(self, model: LatentModel, batch: Any, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        draws = every_value(model, batch)
        parts = LogProbabilities.of(draws)
        probabilities = parts.posterior.exp()  # [N, B]
        if (type(draws.posterior), type(draws.prior)) in CLOSED_FORMS:
            divergence = kl(draws.posterior, draws.prior)
        else:
            divergence = _expectation(probabilities, parts.posterior - parts.prior)[:, None]
        bound = Bound(_expectation(probabilities, parts.likelihood), divergence)
        return Estimate(bound.weighted(kl_weight), bound)


def exact_evidence(model: LatentModel, batch: Any) -> Tensor:
    """log p(y | x) = log sum_h p(y | h) p(h | x), the value that both bounds approach.

    Parameters
    ----------
    model : LatentModel
        With a discrete h of at most 4,096 values.
    batch : object
        What the model's `encode` takes.

    Returns
    -------
    Tensor of shape (B,)

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from varitext.batches.counts import CountBatch
    >>> from varitext.latent import exact_evidence
    >>> from varitext.models.documents import model_class
    >>> batch = CountBatch.from_rows(csr_matrix([[2, 0, 1], [0, 3, 0]]))
    >>> exact_evidence(model_class("sbn")(vocabulary_size=3, latent_dim=4), batch).shape
    torch.Size([2])
    """
    draws = every_value(model, batch)
    return torch.logsumexp(draws.log_likelihood + draws.prior.log_prob(draws.h), 0)  # [B]


@runtime_checkable
class Enumerable(Discrete, Protocol):
    @property
    def number_of_values(self) -> int: ...

    def values(self) -> Tensor:
        """Every value of h, for every example, [N, B, ...]."""


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
    return Draws(encoding, model.prior(encoding), posterior, h, model.log_likelihood(h, encoding))


def _expectation(probabilities: Tensor, values: Tensor) -> Tensor:
    """sum_h q(h) values(h), [B]; impossible values contribute nothing, even if infinite."""
    return (probabilities * values.masked_fill(probabilities == 0, 0.0)).sum(0)


ESTIMATORS = {
    "reparameterised": Reparameterised,
    "leave_one_out": LeaveOneOut,
    "nvil": NVIL,
    "local_expectation": LocalExpectation,
    "exact": Exact,
    "importance_weighted": ImportanceWeighted,
    "dreg": DReG,
    "vimco": VIMCO,
}


WITH_SEVERAL_SAMPLES = ("leave_one_out", "importance_weighted", "dreg", "vimco")


def check_samples(estimator: str, samples: int) -> None:
    """Refuse one sample where the estimator compares several."""
    if samples < 2 and estimator in WITH_SEVERAL_SAMPLES:
        raise InputError(f"{estimator} compares samples of h: set samples to 2 or more, for example 4 (--samples 4)")


def choose_estimator(name: str, baseline_dim: int = 0) -> nn.Module:
    """Make a gradient estimator by name.

    Parameters
    ----------
    name : str
        A key of `ESTIMATORS`.
    baseline_dim : int, default=0
        Width of the features of the model's `baseline_input`; used by `nvil` only.

    Returns
    -------
    torch.nn.Module
        Called as `estimator(model, batch, samples, kl_weight)`, it returns an `Estimate`.

    Examples
    --------
    >>> from varitext.latent import choose_estimator
    >>> choose_estimator("leave_one_out")
    LeaveOneOut()
    """
    if name not in ESTIMATORS:
        raise InputError(f"no estimator is called {name!r}; there are: {', '.join(ESTIMATORS)}")
    return NVIL(baseline_dim) if name == "nvil" else ESTIMATORS[name]()
