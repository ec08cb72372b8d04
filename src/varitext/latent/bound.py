"""The contract of a latent-variable model, its KL divergence, and the two bounds that follow from it.

    log p(y | x)  >=  importance_weighted_bound  >=  elbo = E_q[log p(y | h)] - KL(q(h | x, y) || p(h | x))

in expectation over samples. All values are per example: only training and evaluation average over examples.

Training reaches its KL here: a document network calls its estimator (`estimators.py`), `answers/task.py` calls `elbo`
directly, and `elbo` takes the closed form of `kl`, which is in `gaussian.py` or `discrete.py`, if there is one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from varitext.latent.discrete import Bernoullis, Categoricals, bernoulli_kl, categorical_kl
from varitext.latent.gaussian import DiagonalGaussian, FullGaussian, diagonal_gaussian_kl, full_gaussian_kl


class Distribution(Protocol):
    """What a prior must provide. A posterior also has `rsample` (Gaussian) or `sample` (discrete)."""

    def log_prob(self, h: Tensor) -> Tensor:
        """Log probability or density of `h` [S, B, ...]: [S, B]."""


@runtime_checkable
class Reparameterisable(Distribution, Protocol):
    def rsample(self, samples: int) -> Tensor:
        """Draws [S, B, ...] that gradients run through."""


@runtime_checkable
class Discrete(Distribution, Protocol):
    def sample(self, samples: int) -> Tensor:
        """Draws [S, B, ...] that no gradient runs through."""


@runtime_checkable
class Factorised(Distribution, Protocol):
    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        """log p(h_k | h_<k) at `h`, [S, B, K]."""


class LatentModel(Protocol):
    """What a latent-variable model must provide: four methods, from which both bounds follow; no inheritance needed.

    `encoding` is whatever `encode` returns, usually a NamedTuple of tensors.

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import DiagonalGaussian, elbo
    >>> class UnitGaussians:  # h ~ N(0, 1), y | h ~ N(h, 1)
    ...     def encode(self, y): return y
    ...     def prior(self, y): return DiagonalGaussian.standard(y)
    ...     def posterior(self, y): return DiagonalGaussian(y / 2, torch.full_like(y, -0.3466))
    ...     def log_likelihood(self, h, y): return DiagonalGaussian(h, torch.zeros_like(h)).log_prob(y)
    >>> elbo(UnitGaussians(), torch.zeros(4, 1), samples=10).elbo.shape
    torch.Size([4])
    """

    def encode(self, batch: Any) -> Any:
        """Steps 1 and 2 of the inference network on a `batch`: u = f_x(x), v = f_y(y), pi = g(u, v)."""

    def prior(self, encoding: Any) -> Distribution:
        """p(h | x) given the `encoding`, or p(h) if h has no parent."""

    def posterior(self, encoding: Any) -> Distribution:
        """q(h | x, y) given the `encoding`, step 3: mean = l_1(pi), log_std = l_2(pi)."""

    def log_likelihood(self, h: Tensor, encoding: Any) -> Tensor:
        """log p(y | h), [S, B].

        Parameters
        ----------
        h : Tensor of shape (S, B, K)
        encoding : object
            What `encode` returned.

        Returns
        -------
        Tensor of shape (S, B)
        """


# The KL divergence

CLOSED_FORMS: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {
    (DiagonalGaussian, DiagonalGaussian): diagonal_gaussian_kl,
    (FullGaussian, DiagonalGaussian): full_gaussian_kl,
    (Bernoullis, Bernoullis): bernoulli_kl,
    (Categoricals, Categoricals): categorical_kl,
}


def kl(q: Distribution, p: Distribution, h: Tensor | None = None) -> Tensor:
    """KL(q || p) per latent dimension: the closed form if there is one, otherwise a Monte Carlo estimate from `h`.

    Parameters
    ----------
    q, p : Distribution
        Posterior and prior.
    h : Tensor of shape (S, B, K), default=None
        Draws of q, for a pair of distributions without a closed form.

    Returns
    -------
    Tensor of shape (B, K)
        One value per latent dimension; the sum over the last axis is the divergence.

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import Bernoullis, kl
    >>> kl(Bernoullis(torch.ones(1, 1)), Bernoullis(torch.zeros(1, 1)))
    tensor([[0.1109]])
    """
    if (type(q), type(p)) in CLOSED_FORMS:
        return CLOSED_FORMS[type(q), type(p)](q, p)
    if h is None:
        raise TypeError(f"KL({type(q).__name__} || {type(p).__name__}) has no closed form: pass draws h of q")
    return monte_carlo_kl(q, p, h)


def monte_carlo_kl(q: Distribution, p: Distribution, h: Tensor) -> Tensor:
    """(1/S) sum_s log q(h_s) - log p(h_s), h_s ~ q: unbiased but noisy. An autoregressive prior needs it.

    [B, K] if both are `Factorised`; otherwise a single sum, [B, 1].
    """
    if isinstance(q, Factorised) and isinstance(p, Factorised):
        return (q.log_prob_per_dimension(h) - p.log_prob_per_dimension(h)).mean(0)  # [B, K]
    return (q.log_prob(h) - p.log_prob(h)).mean(0)[:, None]  # [B, 1]


# The bounds


@dataclass(frozen=True)
class Bound:
    """The evidence lower bound and its two parts, one value per example.

    Parameters
    ----------
    log_likelihood : Tensor of shape (B,)
    kl_per_dimension : Tensor of shape (B, K)

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import Bound
    >>> Bound(torch.tensor([-3.0]), torch.tensor([[0.5, 0.25]])).elbo
    tensor([-3.7500])
    """

    log_likelihood: Tensor  # [B]
    kl_per_dimension: Tensor  # [B, K]

    @property
    def kl(self) -> Tensor:
        """KL(q || p), [B]."""
        return self.kl_per_dimension.sum(-1)

    @property
    def elbo(self) -> Tensor:
        """E_q[log p(y | h)] - KL(q || p), [B]."""
        return self.log_likelihood - self.kl

    def weighted(self, kl_weight: float) -> Tensor:
        """E_q[log p(y | h)] - `kl_weight` KL(q || p), [B]."""
        return self.log_likelihood - kl_weight * self.kl

    def detach(self) -> "Bound":
        """The same values without gradients."""
        return Bound(self.log_likelihood.detach(), self.kl_per_dimension.detach())


class Draws(NamedTuple):
    """Samples h of the posterior and the model's values there, as returned by `draw` and in `elbo(...).draws`.

    Parameters
    ----------
    encoding : object
    prior, posterior : Distribution
    h : Tensor of shape (S, B, K)
    log_likelihood : Tensor of shape (S, B)
    """

    encoding: Any
    prior: Distribution
    posterior: Distribution
    h: Tensor  # [S, B, K]
    log_likelihood: Tensor  # [S, B]

    def importance_weighted(self) -> Tensor:
        """The importance-weighted bound from these samples, [B]."""
        log_weight = self.log_likelihood + self.prior.log_prob(self.h) - self.posterior.log_prob(self.h)  # [S, B]
        return torch.logsumexp(log_weight, 0) - math.log(len(self.h))  # [B]


@dataclass(frozen=True)
class SampledBound(Bound):
    """What `elbo` returns: a bound with the draws that it was estimated from.

    Parameters
    ----------
    log_likelihood : Tensor of shape (B,)
    kl_per_dimension : Tensor of shape (B, K)
    draws : Draws
    """

    draws: Draws


def draw(model: LatentModel, batch: Any, samples: int = 1) -> Draws:
    """Draw h from the posterior and evaluate the likelihood there.

    Parameters
    ----------
    model, batch, samples
        As in `elbo`, which calls this.

    Returns
    -------
    Draws
    """
    encoding = model.encode(batch)
    posterior = model.posterior(encoding)
    h = draw_from(posterior, samples)
    return Draws(encoding, model.prior(encoding), posterior, h, model.log_likelihood(h, encoding))


def draw_from(distribution: Distribution, samples: int) -> Tensor:
    """Draws [S, B, ...], with gradients if the distribution is reparameterisable."""
    if isinstance(distribution, Reparameterisable):
        return distribution.rsample(samples)
    if isinstance(distribution, Discrete):
        return distribution.sample(samples)
    raise TypeError(f"a posterior needs rsample or sample: {type(distribution).__name__} has neither")


def elbo(model: LatentModel, batch: Any, samples: int = 1) -> SampledBound:
    """The evidence lower bound (paper, equation 1): unbiased for any number of samples.

    Its gradient is right for a Gaussian h. A discrete h needs an estimator of `ESTIMATORS`, each of which calls `elbo`.

    Parameters
    ----------
    model : LatentModel
    batch : object
        What the model's `encode` takes.
    samples : int, default=1
        Draws of h per example.

    Returns
    -------
    SampledBound
        `elbo`, `log_likelihood` and `kl` of shape (B,), `kl_per_dimension` of shape (B, K), and the `draws`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from varitext.batches.counts import CountBatch
    >>> from varitext.latent import elbo
    >>> from varitext.models.documents.nvdm import NVDM
    >>> batch = CountBatch.from_rows(csr_matrix([[2, 0, 1], [0, 3, 0]]))
    >>> bound = elbo(NVDM(vocabulary_size=3, latent_dim=2), batch)
    >>> bound.elbo.shape, bound.kl_per_dimension.shape
    (torch.Size([2]), torch.Size([2, 2]))
    """
    draws = draw(model, batch, samples)
    return SampledBound(draws.log_likelihood.mean(0), kl(draws.posterior, draws.prior, draws.h), draws)


def importance_weighted_bound(model: LatentModel, batch: Any, samples: int) -> Tensor:
    """The log of the mean importance weight (Burda et al. 2016): tighter than `elbo`, exact as samples grow.

    Parameters
    ----------
    model, batch, samples
        As in `elbo`, whose `draws.importance_weighted()` gives this bound from the same samples.

    Returns
    -------
    Tensor of shape (B,)
    """
    return draw(model, batch, samples).importance_weighted()
