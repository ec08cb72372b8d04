"""A Gaussian with any covariance: a posterior whose dimensions are correlated, within one document."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from varitext.latent import noise
from varitext.latent.gaussian import DiagonalGaussian

JITTER = 1e-6  # of the trace, onto the diagonal: the rounding of very long documents
LEAF = 16  # rows of a matrix that LAPACK takes whole


def inverse_cholesky(curvature: Tensor) -> Tensor:
    """The inverse M of the lower Cholesky factor of I + curvature, [B, K, K], which is overwritten: M^T M is the
    covariance. NaN where there is none, since training that has diverged sees that in its loss."""
    diagonal = curvature.diagonal(dim1=1, dim2=2)
    diagonal += 1 + JITTER * diagonal.sum(1, keepdim=True)
    inverse = torch.zeros_like(curvature)
    fault = _invert_into(inverse, curvature)
    return inverse.masked_fill_(fault[:, None, None], math.nan) if fault.any() else inverse


def _invert_into(inverse: Tensor, matrix: Tensor) -> Tensor:
    """The inverse of the lower Cholesky factor, and where there is none, [B].

    By halves: LAPACK takes one small matrix at a time, while a product of small matrices is one for the whole batch.
    Twice as fast at K = 50 as the factor and then its inverse.
    """
    size = matrix.shape[-1]
    if size <= LEAF:
        factor, fault = torch.linalg.cholesky_ex(matrix)
        identity = torch.eye(size).to(matrix).expand_as(matrix)
        torch.linalg.solve_triangular(factor, identity, upper=False, left=False, out=inverse)
        return torch.as_tensor(fault, dtype=torch.bool)
    half = size // 2
    first, below, second = inverse[:, :half, :half], inverse[:, half:, :half], inverse[:, half:, half:]
    fault = _invert_into(first, matrix[:, :half, :half])
    lower = matrix[:, half:, :half] @ first.mT
    rest = torch.baddbmm(matrix[:, half:, half:], lower, lower.mT, alpha=-1)
    fault |= _invert_into(second, rest)
    below.copy_(second @ (lower @ first)).neg_()
    return fault


class FullGaussian(NamedTuple):
    """N(h | mean, S M^T M S): M = root is lower triangular with a positive diagonal, S = diag(stretch).

    Gradients that reach the mean and the stretch alone, as where the root is that of a given curvature, touch nothing
    that is K x K.
    """

    mean: Tensor  # [B, K]
    stretch: Tensor  # [B, K]
    root: Tensor  # [B, K, K]

    @property
    def factor(self) -> Tensor:
        """S M^T: the covariance is factor factor^T."""
        return self.stretch[..., None] * self.root.mT  # [B, K, K]

    @property
    def std(self) -> Tensor:
        """Of each dimension by itself."""
        return self.stretch * self.root.square().sum(1).sqrt()  # [B, K]

    def rsample(self, samples: int = 1) -> Tensor:
        """h = mean + factor noise: gradients reach all three."""
        drawn = noise.normal(samples, self.mean).transpose(0, 1) @ self.root  # [B, S, K]
        return self.mean + self.stretch * drawn.transpose(0, 1)  # [S, B, K]

    def log_prob(self, h: Tensor) -> Tensor:
        """log density."""
        distance = ((h - self.mean) / self.stretch).permute(1, 2, 0)
        standardised = torch.linalg.solve_triangular(self.root.mT, distance, upper=True)
        log_volume = self._diagonal().log().sum(1) + 0.5 * math.log(2 * math.pi) * h.shape[-1]
        squares: Tensor = standardised.square().sum(1).T  # [S, B]
        return -0.5 * squares - log_volume

    def _diagonal(self) -> Tensor:
        return self.stretch * self.root.diagonal(dim1=1, dim2=2)  # [B, K]   of the factor


def full_kl(q: FullGaussian, p: DiagonalGaussian) -> Tensor:
    """KL(q || p), analytic, [B, K]: for dimension k the mean of KL(q(h_k | h_>k) || p(h_k)), so none is below zero."""
    scale = (-p.log_std).exp()
    variance, distance = (q.std * scale).square(), ((q.mean - p.mean) * scale).square()
    return 0.5 * (variance + distance - 1) - (q._diagonal() * scale).log()
