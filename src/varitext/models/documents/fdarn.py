"""fDARN, a deep autoregressive network of documents (Gregor et al. 2014; Mnih and Gregor 2014): binary h that know of
each other, and a factorial inference network.

    prior               p(h) = prod_k Bernoulli(sigmoid(c_k + sum_{j<k} W_kj h_j))

The rest is in `binary.py`. The KL against this prior has no formula: it comes from draws of q
(`latent/bound.py::monte_carlo_kl`).
"""

import torch
from torch import Tensor, nn

from varitext.latent.discrete import AutoregressiveBernoullis
from varitext.models.documents.binary import BernoulliNetwork, Encoding
from varitext.runtime.randomness import seeded, stream

PRIOR_DRAWS = 2000


class FDARN(BernoulliNetwork):
    """K Bernoulli units, each of which depends on those before it."""

    def add_prior(self, latent_dim: int) -> None:
        self.prior_bias = nn.Parameter(torch.zeros(latent_dim))  # c
        self.prior_weights = nn.Parameter(torch.zeros(latent_dim, latent_dim))  # W; what is not below the diagonal is 0

    def prior(self, encoding: Encoding) -> AutoregressiveBernoullis:
        return AutoregressiveBernoullis(self.prior_bias, self.prior_weights)

    def prior_probabilities(self) -> Tensor:
        """From draws, always the same ones: there is no formula for these either."""
        with seeded(stream(0, "evaluation noise"), self.prior_bias.device):
            draws = AutoregressiveBernoullis(self.prior_bias, self.prior_weights).sample(PRIOR_DRAWS)
        return draws.mean(0)
