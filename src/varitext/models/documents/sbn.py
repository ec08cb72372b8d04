"""SBN, a sigmoid belief network of documents: one layer of binary h (Mnih and Gregor 2014).

    prior               p(h) = prod_k Bernoulli(sigmoid(c_k)), c learned

The rest is in `binary.py`. The KL has a formula: `latent/bound.py::kl`.
"""

import torch
from torch import Tensor, nn

from varitext.latent import Bernoullis
from varitext.models.documents.binary import BernoulliNetwork, Encoding


class SBN(BernoulliNetwork):
    """K independent Bernoulli units."""

    def add_prior(self, latent_dim: int) -> None:
        self.prior_logits = nn.Parameter(torch.zeros(latent_dim))  # c

    def prior(self, encoding: Encoding) -> Bernoullis:
        return Bernoullis(self.prior_logits.expand(len(encoding.batch), -1))

    def prior_probabilities(self) -> Tensor:
        return torch.sigmoid(self.prior_logits)
