"""The neural variational framework (paper, section 2), usable with any `torch.nn.Module`.

A model provides `encode`, `prior`, `posterior` and `log_likelihood` (`LatentModel`). This package provides the rest:
reparameterised Gaussian, Bernoulli and categorical h, gradient estimators by name, the KL divergence, the evidence
lower bound and the importance-weighted bound.
"""

from varitext.latent.bound import (
    Bound,
    Distribution,
    Draws,
    LatentModel,
    SampledBound,
    draw,
    elbo,
    importance_weighted_bound,
    kl,
)
from varitext.latent.discrete import AutoregressiveBernoullis, Bernoullis, Categoricals
from varitext.latent.estimators import (
    ESTIMATORS,
    BaselineInput,
    Estimate,
    LocalLogOdds,
    choose_estimator,
    exact_evidence,
)
from varitext.latent.gaussian import DiagonalGaussian, FullGaussian

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
    "SampledBound",
    "choose_estimator",
    "draw",
    "elbo",
    "exact_evidence",
    "importance_weighted_bound",
    "kl",
]
