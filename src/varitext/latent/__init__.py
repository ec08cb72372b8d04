"""The neural variational framework (paper, section 2): usable by itself, with any `torch.nn.Module`.

A model gives `encode`, `prior`, `posterior` and `log_likelihood` (`LatentModel`); this package gives the rest:
the reparameterised Gaussian, Bernoulli and categorical h with gradient estimators by name, the KL divergence, the
lower bound and the importance-weighted bound.
"""

from varitext.latent.autoregressive import AutoregressiveBernoullis
from varitext.latent.bound import Bound, Draws, LatentModel, draw, elbo, importance_weighted_bound
from varitext.latent.discrete import Bernoullis, Categoricals
from varitext.latent.divergence import Distribution, kl
from varitext.latent.estimators import ESTIMATORS, BaselineInput, choose_estimator, exact_evidence
from varitext.latent.full_gaussian import FullGaussian
from varitext.latent.gaussian import DiagonalGaussian
from varitext.latent.local_expectation import LocalLogOdds
from varitext.latent.score_function import Estimate

__all__ = [
    "ESTIMATORS",
    "AutoregressiveBernoullis",
    "BaselineInput",
    "Bernoullis",
    "Bound",
    "Categoricals",
    "DiagonalGaussian",
    "Distribution",
    "Draws",
    "Estimate",
    "FullGaussian",
    "LatentModel",
    "LocalLogOdds",
    "choose_estimator",
    "draw",
    "elbo",
    "exact_evidence",
    "importance_weighted_bound",
    "kl",
]
