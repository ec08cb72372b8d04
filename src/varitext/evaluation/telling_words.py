"""The words that set a document apart from its corpus: those with the largest n log(p(word | document) / p(word))."""

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse

TELLING_WORDS = 6


def telling_words(
    counts: scipy.sparse.csr_matrix, log_frequencies: np.ndarray, names: Sequence[str], most: int = TELLING_WORDS
) -> tuple[tuple[str, ...], ...]:
    """For each document its most telling words, best first."""
    columns = telling_columns(counts, log_frequencies)
    return tuple(tuple(names[column] for column in document[:most]) for document in columns)


def telling_columns(counts: scipy.sparse.csr_matrix, log_frequencies: np.ndarray) -> Iterator[np.ndarray]:
    """For each document the columns of all its words, the most telling first; `log_frequencies` is log p(word), [V]."""
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        columns, values = counts.indices[start:end], counts.data[start:end]
        information = values * (np.log(values / values.sum()) - log_frequencies[columns])
        yield columns[np.argsort(-information, kind="stable")]
