"""Gaussian latent variables, with a diagonal or a full covariance, and the closed forms of their KL divergences.

`diagonal_gaussian_kl` is the KL of the paper's NVDM and NASM (appendix B); `bound.py::kl` chooses among closed forms.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from varitext.latent import noise

LOG_STD_RANGE = (-8.0, 3.0)
"""Standard deviations from 0.0003 to 20: wide enough for any posterior seen, too narrow for exp() to overflow."""
MEAN_RANGE = (-10.0, 10.0)
"""No document is ten standard deviations of the prior away; a network that claims so is extrapolating."""


class DiagonalGaussian(NamedTuple):
    """The Gaussian N(mean, diag(exp(log_std)^2)), for priors and posteriors; shapes broadcast.

    Parameters
    ----------
    mean, log_std : Tensor of shape (B, K)
        Means, and logarithms of the standard deviations.

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import DiagonalGaussian, kl
    >>> q = DiagonalGaussian(mean=torch.ones(2, 3), log_std=torch.zeros(2, 3))
    >>> kl(q, DiagonalGaussian.standard(q.mean)).sum(-1)
    tensor([1.5000, 1.5000])
    """

    mean: Tensor  # [B, K]
    log_std: Tensor  # [B, K]

    @classmethod
    def standard(cls, like: Tensor) -> "DiagonalGaussian":
        """N(0, I) with the shape, device and type of `like`."""
        zeros = torch.zeros_like(like)
        return cls(zeros, zeros)

    def within_bounds(self) -> "DiagonalGaussian":
        """Clamp what a network returns to `MEAN_RANGE` and `LOG_STD_RANGE`, so that later formulas stay finite."""
        return DiagonalGaussian(self.mean.clamp(*MEAN_RANGE), self.log_std.clamp(*LOG_STD_RANGE))

    def detach(self) -> "DiagonalGaussian":
        """The same distribution without gradients."""
        return DiagonalGaussian(self.mean.detach(), self.log_std.detach())

    @property
    def std(self) -> Tensor:
        """Standard deviations, [B, K]."""
        return self.log_std.exp()

    def rsample(self, samples: int = 1) -> Tensor:
        """Draw `samples` of h = mean + std * noise, [S, B, K], with gradients (paper, equations 3 and 4)."""
        return self.mean + self.std * noise.normal(samples, self.mean)  # [S, B, K]

    def log_prob(self, h: Tensor) -> Tensor:
        """Log density of `h` [S, B, K], summed over latent dimensions: [S, B]."""
        standardised = (h - self.mean) * (-self.log_std).exp()
        return (-0.5 * standardised.square() - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)  # [S, B]


def diagonal_gaussian_kl(q: DiagonalGaussian, p: DiagonalGaussian) -> Tensor:
    """KL(q || p) of two diagonal Gaussians (paper, appendix B), per latent dimension, as active units are counted."""
    variance_ratio = (2 * (q.log_std - p.log_std)).exp()
    distance = ((q.mean - p.mean) * (-p.log_std).exp()).square()
    return 0.5 * (variance_ratio + distance - 1) - (q.log_std - p.log_std)  # [B, K]


class FullGaussian(NamedTuple):
    """The Gaussian N(mean, S M^T M S): M = `root` is lower triangular with a positive diagonal, S = diag(stretch).

    If only the mean and the stretch need gradients, as when the root comes from a given curvature, no gradient of
    size K x K is computed.

    Parameters
    ----------
    mean, stretch : Tensor of shape (B, K)
    root : Tensor of shape (B, K, K)

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import DiagonalGaussian, FullGaussian, kl
    >>> q = FullGaussian(torch.zeros(2, 3), torch.ones(2, 3), torch.eye(3).expand(2, 3, 3))
    >>> kl(q, DiagonalGaussian.standard(q.mean)).sum(-1)
    tensor([0., 0.])
    """

    mean: Tensor  # [B, K]
    stretch: Tensor  # [B, K]
    root: Tensor  # [B, K, K]

    def detach(self) -> "FullGaussian":
        """The same distribution without gradients."""
        return FullGaussian(self.mean.detach(), self.stretch.detach(), self.root.detach())

    @property
    def covariance(self) -> Tensor:
        """S M^T M S, [B, K, K]."""
        factor = self.stretch[..., None] * self.root.mT
        return factor @ factor.mT

    @property
    def std(self) -> Tensor:
        """Marginal standard deviation of each latent dimension, [B, K]."""
        return self.stretch * self.root.square().sum(1).sqrt()

    def rsample(self, samples: int = 1) -> Tensor:
        """Draw `samples` of h = mean + S M^T noise, [S, B, K], with gradients."""
        drawn = noise.normal(samples, self.mean).transpose(0, 1) @ self.root  # [B, S, K]
        return self.mean + self.stretch * drawn.transpose(0, 1)  # [S, B, K]

    def log_prob(self, h: Tensor) -> Tensor:
        """Log density of `h` [S, B, K]: [S, B]."""
        distance = ((h - self.mean) / self.stretch).permute(1, 2, 0)
        standardised = torch.linalg.solve_triangular(self.root.mT, distance, upper=True)
        log_volume = self._diagonal().log().sum(1) + 0.5 * math.log(2 * math.pi) * h.shape[-1]
        squares: Tensor = standardised.square().sum(1).T  # [S, B]
        return -0.5 * squares - log_volume

    def _diagonal(self) -> Tensor:
        return self.stretch * self.root.diagonal(dim1=1, dim2=2)  # [B, K]   of S M^T


def full_gaussian_kl(q: FullGaussian, p: DiagonalGaussian) -> Tensor:
    """KL(q || p), [B, K]: for dimension k the mean of KL(q(h_k | h_>k) || p(h_k)), so that no part is negative."""
    scale = (-p.log_std).exp()
    variance, distance = (q.std * scale).square(), ((q.mean - p.mean) * scale).square()
    return 0.5 * (variance + distance - 1) - (q._diagonal() * scale).log()
