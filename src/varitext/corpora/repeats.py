"""Documents that occur in both parts of a corpus, with the same counts.

A held-out document that was trained on is not held out. Short texts repeat often (three of four newsgroup titles), so
every fit and every evaluation counts them.
"""

import numpy as np
import scipy.sparse

from varitext.corpora.sharded_counts import Counts, blocks_of

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64
SHIFTS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


def count_repeats(counts: Counts, among: Counts) -> int:
    known = row_hashes(among)
    return sum(int(np.isin(row_hashes(block), known).sum()) for block in blocks_of(counts))


def without_repeats(counts: scipy.sparse.csr_matrix, among: Counts) -> scipy.sparse.csr_matrix:
    return counts[np.flatnonzero(~np.isin(row_hashes(counts), row_hashes(among)))]


def row_hashes(counts: Counts) -> np.ndarray:
    """64 bits per document, [D]: the sum over its words of a hash of (word, count), in any order.

    The chance that two of a million different documents share a hash is 3 in 10^8.
    """
    return np.concatenate([_hashes_of_block(block) for block in blocks_of(counts)])


def _hashes_of_block(block: scipy.sparse.csr_matrix) -> np.ndarray:
    words, numbers = block.indices.astype(np.uint64), np.asarray(block.data, np.float64).view(np.uint64)
    hashes = np.where(block.data == 0, np.uint64(0), _mixed(_mixed(words + np.uint64(1)) + numbers))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])  # modulo 2^64
    return np.asarray(sums[block.indptr[1:]] - sums[block.indptr[:-1]])


def _mixed(values: np.ndarray) -> np.ndarray:
    """Splitmix64: every bit of the input changes about half of the bits."""
    values = values * MULTIPLIER
    for shift, multiplier in SHIFTS:
        values = (values ^ (values >> shift)) * multiplier
    return np.asarray(values ^ (values >> np.uint64(31)))
