"""Groups of words that stand in the same documents: the lower urns of the Polya likelihood (`layers/polya.py`)."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from varitext.corpora.sharded_counts import Counts, some_rows

DOCUMENTS = 20_000  # that the groups are found from, at most
DIMENSIONS = 100
FEWEST_WORDS = 5  # per group, on average


def group_words(counts: Counts, groups: int) -> np.ndarray:
    """A number below `groups` for each word, [V]: k-means on the words' directions in the space of documents."""
    rows = some_rows(np.random.default_rng(0), counts.shape[0], DOCUMENTS)
    present = (counts[rows] > 0).astype(np.float64)
    document_counts = np.asarray(present.sum(0)).ravel()
    dimensions = min(DIMENSIONS, min(present.shape) - 1)
    if dimensions < 1:
        return np.zeros(counts.shape[1], np.int64)
    present = present.multiply(1 / np.sqrt(document_counts + 1)).tocsr()
    vectors = normalize(TruncatedSVD(dimensions, random_state=0).fit(present).components_.T)
    distinct = len(np.unique(vectors.round(6), axis=0))
    number = max(1, min(groups, len(vectors) // FEWEST_WORDS, distinct))
    return KMeans(number, n_init=1, random_state=0).fit(vectors).labels_.astype(np.int64)
