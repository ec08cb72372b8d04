"""Bernoulli and categorical latent variables (end of paper, section 2), and the closed forms of their KL divergences.

No gradient runs through a draw, so these have `sample` and no `rsample`; `estimators.py` has the gradient estimators.
Values of h are floats, ready for a linear layer: 0 or 1, and one-hot vectors.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from varitext.latent import noise


class Bernoullis(NamedTuple):
    """K independent Bernoulli units with p(h_k = 1) = sigmoid(logits_k); shapes broadcast.

    Parameters
    ----------
    logits : Tensor of shape (B, K)

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import Bernoullis
    >>> Bernoullis(torch.zeros(2, 3)).sample(samples=5).shape
    torch.Size([5, 2, 3])
    """

    logits: Tensor  # [B, K]

    @property
    def probabilities(self) -> Tensor:
        """p(h_k = 1), [B, K]."""
        return torch.sigmoid(self.logits)

    @property
    def entropy(self) -> Tensor:
        """Entropy per latent dimension in nats, [B, K]: softplus(logit) - p logit."""
        return functional.softplus(self.logits) - self.probabilities * self.logits

    @torch.no_grad()
    def sample(self, samples: int = 1) -> Tensor:
        """Draw `samples` of h, [S, B, K]."""
        return (noise.uniform(samples, self.logits) < self.probabilities).to(self.logits.dtype)

    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        """Log probability of each unit of `h`, [S, B, K]: h logit - softplus(logit)."""
        return h * self.logits - functional.softplus(self.logits)

    def log_prob(self, h: Tensor) -> Tensor:
        """Log probability of `h` [S, B, K]: [S, B]."""
        return self.log_prob_per_dimension(h).sum(-1)

    def local_log_odds(self, h: Tensor) -> Tensor:
        """log p(`h` with h_k = 1) - log p(h with h_k = 0), [S, B, K]: the logit, since units are independent."""
        return self.logits.expand_as(h)

    @property
    def number_of_values(self) -> int:
        """2^K, the number of values that h can take."""
        return 1 << self.logits.shape[-1]

    def values(self) -> Tensor:
        """Every value of h, for every example, [N, B, K]."""
        bits = torch.arange(self.logits.shape[-1], device=self.logits.device)
        numbers = torch.arange(self.number_of_values, device=self.logits.device)
        every = (numbers[:, None] >> bits & 1).to(self.logits.dtype)  # [N, K]
        return every[:, None].expand(-1, *self.logits.shape)


def bernoulli_kl(q: Bernoullis, p: Bernoullis) -> Tensor:
    """KL(q || p) per latent dimension: E_q[h] (logit_q - logit_p) - softplus(logit_q) + softplus(logit_p)."""
    difference = functional.softplus(q.logits) - functional.softplus(p.logits)
    return q.probabilities * (q.logits - p.logits) - difference  # [B, K]


class AutoregressiveBernoullis(NamedTuple):
    """p(h) = prod_k Bernoulli(h_k; sigmoid(bias_k + sum_{j<k} between_kj h_j)), the same for every example.

    As a prior it has no closed-form KL: `kl` estimates it from draws of the posterior.

    Parameters
    ----------
    bias : Tensor of shape (K,)
    between : Tensor of shape (K, K)
        Weights between units; only the part below the diagonal is used.

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import AutoregressiveBernoullis
    >>> prior = AutoregressiveBernoullis(torch.zeros(3), torch.zeros(3, 3))
    >>> prior.log_prob(torch.ones(1, 1, 3))  # 3 log(1/2)
    tensor([[-2.0794]])
    """

    bias: Tensor  # [K]
    between: Tensor  # [K, K]

    def conditionals(self, h: Tensor) -> Bernoullis:
        """p(h_k | h_<k) at `h`, for every k at once."""
        return Bernoullis(self.bias + h @ self.between.tril(-1).T)  # [S, B, K]

    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        """log p(h_k | h_<k) at `h`, [S, B, K]."""
        return self.conditionals(h).log_prob_per_dimension(h)

    def log_prob(self, h: Tensor) -> Tensor:
        """Log probability of `h` [S, B, K]: [S, B]."""
        return self.log_prob_per_dimension(h).sum(-1)

    @torch.no_grad()
    def sample(self, samples: int = 1) -> Tensor:
        """Draw `samples` of h unit by unit, [S, K]."""
        h = self.bias.new_zeros(samples, len(self.bias))
        noise = torch.rand_like(h)
        between = self.between.tril(-1)
        for k in range(len(self.bias)):
            h[:, k] = noise[:, k] < torch.sigmoid(self.bias[k] + h @ between[k])
        return h

    def local_log_odds(self, h: Tensor) -> Tensor:
        """log p(`h` with h_k = 1) - log p(h with h_k = 0), [S, B, K]: of h_k and of every unit after it."""
        logits, between = self.conditionals(h).logits, self.between.tril(-1)
        without = logits[..., :, None] - h[..., None, :] * between  # [S, B, j, k]   the logit of j if k is off
        normalisers = functional.softplus(without + between) - functional.softplus(without)
        return logits + h @ between - normalisers.sum(-2)


class Categoricals(NamedTuple):
    """K independent categorical units of C values: p(h_k = c) = softmax(logits_k)_c. A logit of -inf excludes a value.

    With a single unit per example K may be left out: h is then [S, B, C], ready for a decoder of C topics.

    Parameters
    ----------
    logits : Tensor of shape (B, K, C) or (B, C)

    Examples
    --------
    >>> import torch
    >>> from varitext.latent import Categoricals
    >>> Categoricals(torch.zeros(2, 3, 4)).sample(samples=5).sum(-1).unique()  # one-hot vectors
    tensor([1.])
    """

    logits: Tensor  # [B, K, C] or [B, C]

    @property
    def log_probabilities(self) -> Tensor:
        """log p(h_k = c), [B, K, C]."""
        return torch.log_softmax(self.logits, -1)

    @property
    def probabilities(self) -> Tensor:
        """p(h_k = c), [B, K, C]."""
        return torch.softmax(self.logits, -1)

    @property
    def entropy(self) -> Tensor:
        """Entropy per latent dimension in nats, [B, K]: - sum_c p_c log p_c."""
        return -self._expected(self.log_probabilities)

    @torch.no_grad()
    def sample(self, samples: int = 1) -> Tensor:
        """Draw `samples` of h as one-hot vectors, [S, B, K, C]: argmax_c (logit_c - log E_c), E_c ~ Exponential(1)."""
        races = noise.exponential(samples, self.logits)
        return self._one_hot((self.logits - races.log()).argmax(-1))

    def log_prob_per_dimension(self, h: Tensor) -> Tensor:
        """Log probability of each unit of `h`, [S, B, K]."""
        return self._with_dimensions(self.log_probabilities.masked_fill(h == 0, 0.0).sum(-1))

    def log_prob(self, h: Tensor) -> Tensor:
        """Log probability of `h` [S, B, K, C]: [S, B]."""
        return self.log_prob_per_dimension(h).sum(-1)

    @property
    def number_of_values(self) -> int:
        """C^K, the number of values that h can take."""
        return math.prod([self.logits.shape[-1]] * self._choices)

    def values(self) -> Tensor:
        """Every value of h, for every example, [N, B, K, C]."""
        choices = [torch.arange(self.logits.shape[-1], device=self.logits.device)] * self._choices
        combined = torch.cartesian_prod(*choices).view(self.number_of_values, 1, *self.logits.shape[1:-1])
        return self._one_hot(combined).expand(-1, *self.logits.shape)

    @property
    def _choices(self) -> int:
        return self.logits.shape[1] if self.logits.ndim == 3 else 1

    def _one_hot(self, chosen: Tensor) -> Tensor:
        return functional.one_hot(chosen, self.logits.shape[-1]).to(self.logits.dtype)

    def _with_dimensions(self, values: Tensor) -> Tensor:
        return values if self.logits.ndim == 3 else values[..., None]

    def _expected(self, values: Tensor) -> Tensor:
        """sum_c p_c values_c; impossible values contribute nothing, even if infinite."""
        probabilities = self.probabilities
        return self._with_dimensions((probabilities * values.masked_fill(probabilities == 0, 0.0)).sum(-1))


def categorical_kl(q: Categoricals, p: Categoricals) -> Tensor:
    """KL(q || p) per latent dimension: sum_c q_c (log q_c - log p_c)."""
    return q._expected(q.log_probabilities - p.log_probabilities)  # [B, K]
