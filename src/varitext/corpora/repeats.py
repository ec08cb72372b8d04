"""Documents that occur in both parts of a corpus, with the same counts.

A held-out document that was trained on is not held out. Short texts repeat often (three of four newsgroup titles), so
every fit and every evaluation counts them.
"""

import numpy as np
import scipy.sparse

from varitext.corpora.sharded_counts import Counts, blocks_of
from varitext.text.spans import mixed

ROWS_AT_ONCE = 2048  # documents, so that intermediate results do not fill memory


def count_repeats(counts: Counts, among: Counts) -> int:
    known = row_hashes(among)
    return sum(int(np.isin(row_hashes(block), known).sum()) for block in blocks_of(counts))


def without_repeats(counts: scipy.sparse.csr_matrix, among: Counts) -> scipy.sparse.csr_matrix:
    return counts[np.flatnonzero(~np.isin(row_hashes(counts), row_hashes(among)))]


def row_hashes(counts: Counts) -> np.ndarray:
    """64 bits per document, [D]: the sum over its words of a hash of (word, count), in any order.

    The chance that two of a million different documents share a hash is 3 in 10^8.
    """
    parts = (
        block[start : start + ROWS_AT_ONCE]
        for block in blocks_of(counts)
        for start in range(0, max(1, block.shape[0]), ROWS_AT_ONCE)
    )
    return np.concatenate([_hashes_of_block(part) for part in parts])


def _hashes_of_block(block: scipy.sparse.csr_matrix) -> np.ndarray:
    words, numbers = block.indices.astype(np.uint64), np.asarray(block.data, np.float64).view(np.uint64)
    hashes = np.where(block.data == 0, np.uint64(0), mixed(mixed(words + np.uint64(1)) + numbers))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])  # modulo 2^64
    return np.asarray(sums[block.indptr[1:]] - sums[block.indptr[:-1]])
