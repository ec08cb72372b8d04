"""How surprising a document is: nats per word beyond what documents of its length take.

expected(n)  =  intercept + slope log n         least squares on documents that the model was not trained on
surprise     =  -log p(X) / n  -  expected(n)   by the bound, or whatever estimate the model has of log p(X)
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from varitext.corpora.sharded_counts import Counts
from varitext.models.documents.base import DocumentNetwork

FITTED_ON = 500  # documents
SAMPLES = 5  # of h, for each document


class LengthLine(NamedTuple):
    intercept: float
    slope: float

    def expected(self, lengths: np.ndarray) -> np.ndarray:
        return np.asarray(self.intercept + self.slope * np.log(np.maximum(lengths, 1)))


def fit_length_line(network: DocumentNetwork, held_out: Counts, seed: int) -> LengthLine | None:
    """None if there is no document to fit it on."""
    counts = held_out[:FITTED_ON]
    counts = counts[np.flatnonzero(counts.getnnz(1))]
    if not counts.shape[0]:
        return None
    nats, lengths = nats_per_word(network, counts, seed)
    x = np.log(np.maximum(lengths, 1))
    spread = float(x.var())
    slope = float(((x - x.mean()) * (nats - nats.mean())).mean() / spread) if spread > 1e-9 else 0.0
    return LengthLine(float(nats.mean() - slope * x.mean()), slope)


def nats_per_word(
    network: DocumentNetwork, counts: scipy.sparse.csr_matrix, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of documents that have words; and their lengths."""
    bounds = network.evaluate(counts, SAMPLES, seed)
    return -bounds.elbo / bounds.lengths, bounds.lengths


def surprises(network: DocumentNetwork, counts: scipy.sparse.csr_matrix, line: LengthLine, seed: int) -> np.ndarray:
    """NaN for a document without a known word.  [D]"""
    found = np.full(counts.shape[0], np.nan)
    known = np.flatnonzero(counts.getnnz(1))
    if len(known):
        nats, lengths = nats_per_word(network, counts[known], seed)
        found[known] = nats - line.expected(lengths)
    return found
