"""Bernoulli and categorical latent variables; the end of paper, section 2.

Both are factorial. Gradients do not run through a draw, so there is `sample` and no `rsample`: what makes up for it
is in `estimators.py`. Values of h are floats, ready for a linear layer: 0 or 1, and one-hot vectors.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from varitext.latent import noise


class Bernoullis(NamedTuple):
    """K independent Bernoulli units: p(h_k = 1) = sigmoid(logits_k). Shapes broadcast."""

    logits: Tensor  # [B, K]

    @classmethod
    def uniform(cls, like: Tensor) -> "Bernoullis":
        """Fair coins with the shape, device and type of `like`."""
        return cls(torch.zeros_like(like))

    @property
    def probabilities(self) -> Tensor:
        return torch.sigmoid(self.logits)  # [B, K]

    @property
    def entropy(self) -> Tensor:
        """In nats, per latent dimension: softplus(logit) - p logit."""
        return functional.softplus(self.logits) - self.probabilities * self.logits  # [B, K]

    @torch.no_grad()
    def sample(self, samples: int = 1) -> Tensor:
        return (noise.uniform(samples, self.logits) < self.probabilities).to(self.logits.dtype)  # [S, B, K]

    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        """h logit - softplus(logit)."""
        return h * self.logits - functional.softplus(self.logits)  # [S, B, K]

    def log_prob(self, h: Tensor) -> Tensor:
        return self.log_prob_per_dimension(h).sum(-1)  # [S, B]

    def local_log_odds(self, h: Tensor) -> Tensor:
        """log p(h with h_k = 1) - log p(h with h_k = 0): for independent units the logit, whatever h is."""
        return self.logits.expand_as(h)  # [S, B, K]

    @property
    def number_of_values(self) -> int:
        return 1 << self.logits.shape[-1]

    def values(self) -> Tensor:
        """Every h there is, for every example."""
        bits = torch.arange(self.logits.shape[-1], device=self.logits.device)
        numbers = torch.arange(self.number_of_values, device=self.logits.device)
        every = (numbers[:, None] >> bits & 1).to(self.logits.dtype)  # [N, K]
        return every[:, None].expand(-1, *self.logits.shape)  # [N, B, K]


class Categoricals(NamedTuple):
    """K independent categorical units of C values: p(h_k = c) = softmax(logits_k)_c. A logit of -inf rules a value out.

    A single unit per example may leave out K: then h is [S, B, C], ready for a decoder of C topics.
    """

    logits: Tensor  # [B, K, C] or [B, C]

    @classmethod
    def uniform(cls, like: Tensor) -> "Categoricals":
        """All values alike, with the shape, device and type of `like`."""
        return cls(torch.zeros_like(like))

    @property
    def log_probabilities(self) -> Tensor:
        return torch.log_softmax(self.logits, -1)  # [B, K, C]

    @property
    def probabilities(self) -> Tensor:
        return torch.softmax(self.logits, -1)  # [B, K, C]

    @property
    def entropy(self) -> Tensor:
        """In nats, per latent dimension: - sum_c p_c log p_c."""
        return -self._expected(self.log_probabilities)  # [B, K]

    @torch.no_grad()
    def sample(self, samples: int = 1) -> Tensor:
        """The value that wins argmax_c (logit_c - log E_c), E_c ~ Exponential(1), as a one-hot vector."""
        races = noise.exponential(samples, self.logits)
        return self._one_hot((self.logits - races.log()).argmax(-1))  # [S, B, K, C]

    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        """log p of what was chosen."""
        return self._with_dimensions(self.log_probabilities.masked_fill(h == 0, 0.0).sum(-1))  # [S, B, K]

    def log_prob(self, h: Tensor) -> Tensor:
        return self.log_prob_per_dimension(h).sum(-1)  # [S, B]

    @property
    def number_of_values(self) -> int:
        return math.prod([self.logits.shape[-1]] * self._choices)

    def values(self) -> Tensor:
        """Every h there is, for every example."""
        choices = [torch.arange(self.logits.shape[-1], device=self.logits.device)] * self._choices
        combined = torch.cartesian_prod(*choices).view(self.number_of_values, 1, *self.logits.shape[1:-1])
        return self._one_hot(combined).expand(-1, *self.logits.shape)  # [N, B, K, C]

    @property
    def _choices(self) -> int:
        return self.logits.shape[1] if self.logits.ndim == 3 else 1

    def _one_hot(self, chosen: Tensor) -> Tensor:
        return functional.one_hot(chosen, self.logits.shape[-1]).to(self.logits.dtype)

    def _with_dimensions(self, values: Tensor) -> Tensor:
        return values if self.logits.ndim == 3 else values[..., None]

    def _expected(self, values: Tensor) -> Tensor:
        """sum_c p_c values_c, where what cannot happen counts for nothing, be it infinite."""
        probabilities = self.probabilities
        return self._with_dimensions((probabilities * values.masked_fill(probabilities == 0, 0.0)).sum(-1))


def bernoulli_kl(q: Bernoullis, p: Bernoullis) -> Tensor:
    """KL(q || p) per latent dimension: E_q[h] (logit_q - logit_p) - softplus(logit_q) + softplus(logit_p)."""
    difference = functional.softplus(q.logits) - functional.softplus(p.logits)
    return q.probabilities * (q.logits - p.logits) - difference  # [B, K]


def categorical_kl(q: Categoricals, p: Categoricals) -> Tensor:
    """KL(q || p) per latent dimension: sum_c q_c (log q_c - log p_c)."""
    return q._expected(q.log_probabilities - p.log_probabilities)  # [B, K]
