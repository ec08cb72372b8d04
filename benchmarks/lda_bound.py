"""Held-out perplexity of any LDA: the variational bound of each document with the fitted topics held fixed.

The figure is of the same kind as ours (a lower bound on log p(X) of the same words), so tools can be compared.
"""

import numpy as np
import scipy.sparse
from scipy.special import gammaln, psi


def lda_document_bounds(
    counts: scipy.sparse.csr_matrix, topics: np.ndarray, alpha: np.ndarray, tolerance: float = 1e-4, rounds: int = 200
) -> np.ndarray:
    """The bound of every document, run to convergence. `topics` is [K, V], rows summing to one; `alpha` is [K]."""
    bounds = np.empty(counts.shape[0])
    for document in range(counts.shape[0]):
        start, end = counts.indptr[document : document + 2]
        bounds[document] = _bound(
            topics[:, counts.indices[start:end]], counts.data[start:end], alpha, tolerance, rounds
        )
    return bounds


def _bound(topics: np.ndarray, counts: np.ndarray, alpha: np.ndarray, tolerance: float, rounds: int) -> float:
    gamma = alpha + counts.sum() / len(alpha)
    for _ in range(rounds):
        weight = np.exp(psi(gamma) - psi(gamma.sum()))  # [K]
        update = alpha + weight * (topics @ (counts / (weight @ topics)))
        change, gamma = np.abs(update - gamma).mean(), update
        if change < tolerance:
            break
    expected_log = psi(gamma) - psi(gamma.sum())
    words = counts @ np.log(np.exp(expected_log) @ topics)
    # E_q[log p(theta)] - E_q[log q(theta)], both Dirichlet
    prior = gammaln(alpha.sum()) - gammaln(alpha).sum() - gammaln(gamma.sum()) + gammaln(gamma).sum()
    return float(words + prior + (alpha - gamma) @ expected_log)
