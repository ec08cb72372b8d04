"""tf-idf weights as in RCV1-v2."""

import numpy as np
from scipy.sparse import csr_matrix


def tf_idf(counts: csr_matrix, frequencies: np.ndarray | None = None, documents: int | None = None) -> csr_matrix:
    """(1 + ln tf) ln(N / df) / norm; df and N are of these counts, or given."""
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1]) if frequencies is None else frequencies
    idf = np.log((documents or counts.shape[0]) / np.maximum(frequencies, 1))
    weights = counts.astype(np.float64)
    weights.data = (1 + np.log(weights.data)) * idf[weights.indices]
    norms = np.sqrt(np.asarray(weights.multiply(weights).sum(1)).ravel())
    weights.data /= np.repeat(norms, np.diff(weights.indptr))
    return weights
