"""SBN, a sigmoid belief network of documents: one layer of binary h (Mnih and Gregor 2014).

    prior               p(h) = prod_k Bernoulli(sigmoid(c_k)), c learned

The rest is in `switch_network.py`.
"""

import torch
from torch import Tensor, nn

from varitext.latent import Bernoullis
from varitext.models.switch_network import Encoding, SwitchNetwork


class SBN(SwitchNetwork):
    """K independent switches."""

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        estimator: str = "local_expectation",
        hidden_dim: int = 256,
        hidden_layers: int = 2,
        activation: str = "silu",
        refinement_steps: int = 0,
    ):
        super().__init__(
            vocabulary_size, latent_dim, estimator, hidden_dim, hidden_layers, activation, refinement_steps
        )
        self.prior_logits = nn.Parameter(torch.zeros(latent_dim))  # c

    def prior(self, encoding: Encoding) -> Bernoullis:
        return Bernoullis(self.prior_logits.expand(len(encoding.batch), -1))

    def prior_probabilities(self) -> Tensor:
        return torch.sigmoid(self.prior_logits)
