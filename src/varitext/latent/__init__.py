"""The neural variational framework (paper, section 2): usable by itself, with any `torch.nn.Module`.

A model gives `encode`, `prior`, `posterior` and `log_likelihood` (`LatentModel`); this package gives the rest:
the reparameterised Gaussian, the KL divergence, the lower bound and the importance-weighted bound.
"""

from varitext.latent.bound import Bound, Draws, LatentModel, draw, elbo, importance_weighted_bound
from varitext.latent.gaussian import DiagonalGaussian, kl

__all__ = [
    "Bound",
    "DiagonalGaussian",
    "Draws",
    "LatentModel",
    "draw",
    "elbo",
    "importance_weighted_bound",
    "kl",
]
