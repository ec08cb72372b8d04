"""The lower bound of a model whose latent is Gaussian and whose decoder is a network, from draws of its posterior."""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.distributions import Normal, kl_divergence

DRAWS = 20  # ours too
BLOCK = 256


@torch.no_grad()
def drawn_bounds(
    posterior: Callable[[Tensor], Normal], prior: Normal, log_words: Callable[[Tensor], Tensor], counts: csr_matrix
) -> np.ndarray:
    """E_q[log p(X | h)] - KL(q || p) of each document: of its words in one order, without the multinomial coefficient.

    `posterior` reads dense counts [B, V] and gives q of h [B, K]; `log_words` gives log p(word | h), [B, V].
    """
    torch.manual_seed(0)
    found = []
    for start in range(0, counts.shape[0], BLOCK):
        documents = torch.from_numpy(counts[start : start + BLOCK].toarray()).float()
        q = posterior(documents)
        draws = [(log_words(torch.normal(q.loc, q.scale)) * documents).sum(1) for _ in range(DRAWS)]
        likelihood = torch.stack(draws).mean(0)
        found.append(likelihood - kl_divergence(q, prior).sum(1))
    return torch.cat(found).double().numpy()
