"""Groups of words that stand in the same documents: the lower urns of the DCM likelihood (`layers/dcm.py`)."""

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from varitext.corpora.sharded_counts import Counts, some_rows

DOCUMENTS = 20_000  # that the groups are found from, at most
MIN_DIMENSIONS, MAX_DIMENSIONS = 5, 100
WORDS_PER_DIMENSION = 20  # with as many dimensions as words, all words would be at right angles
MIN_WORDS = 5  # per group, on average


def group_words(counts: Counts, groups: int) -> np.ndarray:
    """A number below `groups` for each word, [V]: k-means on the words' directions in the space of documents."""
    rows = some_rows(np.random.default_rng(0), counts.shape[0], DOCUMENTS)
    present = (counts[rows] > 0).astype(np.float64)
    document_counts = np.asarray(present.sum(0)).ravel()
    scaled = scipy.sparse.csr_matrix(present @ scipy.sparse.diags(1 / np.sqrt(document_counts + 1)))
    dimensions = min(MAX_DIMENSIONS, max(MIN_DIMENSIONS, scaled.shape[1] // WORDS_PER_DIMENSION), *scaled.shape)
    vectors = normalize(randomized_svd(scaled, dimensions, random_state=0)[2].T)  # [V, dimensions]
    distinct = len(np.unique(vectors.round(6), axis=0))
    number = max(1, min(groups, len(vectors) // MIN_WORDS, distinct))
    return np.asarray(KMeans(number, n_init=1, random_state=0).fit_predict(vectors), np.int64)
