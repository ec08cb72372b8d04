"""The diagonal Gaussian and the only KL formula of the package."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from varitext.latent import noise

LOG_STD_RANGE = (-8.0, 3.0)
"""Standard deviations from 0.0003 to 20: wide enough for any posterior seen, too narrow for exp() to overflow."""


MEAN_RANGE = (-10.0, 10.0)
"""No document is ten standard deviations of the prior away; a network that says so is extrapolating."""


class DiagonalGaussian(NamedTuple):
    """N(h | mean, diag(exp(log_std)^2)); prior and posterior alike. Shapes broadcast."""

    mean: Tensor  # [B, K]
    log_std: Tensor  # [B, K]

    @classmethod
    def standard(cls, like: Tensor) -> "DiagonalGaussian":
        """N(0, I) with the shape, device and type of `like`."""
        zeros = torch.zeros_like(like)
        return cls(zeros, zeros)

    def within_bounds(self) -> "DiagonalGaussian":
        """For what a network says: keeps every later formula finite."""
        return DiagonalGaussian(self.mean.clamp(*MEAN_RANGE), self.log_std.clamp(*LOG_STD_RANGE))

    @property
    def std(self) -> Tensor:
        return self.log_std.exp()

    def rsample(self, samples: int = 1) -> Tensor:
        """h = mean + std * noise: gradients reach mean and log_std (paper, equations 3 and 4)."""
        return self.mean + self.std * noise.normal(samples, self.mean)  # [S, B, K]

    def log_prob(self, h: Tensor) -> Tensor:
        """log density, summed over the latent dimensions."""
        standardised = (h - self.mean) * (-self.log_std).exp()
        return (-0.5 * standardised.square() - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)  # [S, B]


def kl(q: DiagonalGaussian, p: DiagonalGaussian) -> Tensor:
    """KL(q || p) per latent dimension, analytic (paper, appendix B). Sum over the last axis for the divergence.

    Kept per dimension because free bits and the count of active units need it so.
    """
    variance_ratio = (2 * (q.log_std - p.log_std)).exp()
    distance = ((q.mean - p.mean) * (-p.log_std).exp()).square()
    return 0.5 * (variance_ratio + distance - 1) - (q.log_std - p.log_std)  # [B, K]
