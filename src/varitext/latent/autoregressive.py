"""Autoregressive Bernoulli latents: each unit depends on those before it."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from varitext.latent.discrete import Bernoullis


class AutoregressiveBernoullis(NamedTuple):
    """p(h) = prod_k Bernoulli(h_k; sigmoid(bias_k + sum_{j<k} between_kj h_j)), the same for every example."""

    bias: Tensor  # [K]
    between: Tensor  # [K, K]   only what lies below the diagonal is read

    def conditionals(self, h: Tensor) -> Bernoullis:
        """p(h_k | h_<k) for every k at once."""
        return Bernoullis(self.bias + h @ self.between.tril(-1).T)  # [S, B, K]

    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        return self.conditionals(h).log_prob_per_dimension(h)  # [S, B, K]

    def log_prob(self, h: Tensor) -> Tensor:
        return self.log_prob_per_dimension(h).sum(-1)  # [S, B]

    @torch.no_grad()
    def sample(self, samples: int = 1) -> Tensor:
        """One unit after the other."""
        h = self.bias.new_zeros(samples, len(self.bias))
        noise = torch.rand_like(h)
        between = self.between.tril(-1)
        for k in range(len(self.bias)):
            h[:, k] = noise[:, k] < torch.sigmoid(self.bias[k] + h @ between[k])
        return h  # [S, K]

    def local_log_odds(self, h: Tensor) -> Tensor:
        """log p(h with h_k = 1) - log p(h with h_k = 0): of h_k itself, and of every unit after it."""
        logits, between = self.conditionals(h).logits, self.between.tril(-1)
        without = logits[..., :, None] - h[..., None, :] * between  # [S, B, j, k]   the logit of j if k is off
        normalisers = functional.softplus(without + between) - functional.softplus(without)
        return logits + h @ between - normalisers.sum(-2)  # [S, B, K]
