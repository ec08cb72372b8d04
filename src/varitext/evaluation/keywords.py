"""Keywords: the words that set a document apart from its corpus, or the documents of one class from all others.

Of a document: the words with the largest n log(p(word | document) / p(word)).

Of a class (or month, or any other value): for each word, a of the n documents of the class contain it, and b of the m
other documents:

    log odds ratio   log (a + s p) / (n - a + s (1 - p))  -  log (b + s p) / (m - b + s (1 - p))
    its variance     1 / (a + s p) + 1 / (b + s p)
    z                the ratio divided by its standard deviation

p is the share of all documents that contain the word, and s the number of documents that this prior counts as: log odds
with an informative prior (Monroe, Colaresi and Quinn 2008). Documents are counted, not words, because words are bursty.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import ndtri

from varitext.errors import InputError

MAX_KEYWORDS = 6


def document_keywords(
    counts: scipy.sparse.csr_matrix, log_frequencies: np.ndarray, names: Sequence[str], most: int = MAX_KEYWORDS
) -> tuple[tuple[str, ...], ...]:
    """For each document its keywords, best first."""
    columns = keyword_columns(counts, log_frequencies)
    return tuple(tuple(names[column] for column in document[:most]) for document in columns)


def keyword_columns(counts: scipy.sparse.csr_matrix, log_frequencies: np.ndarray) -> Iterator[np.ndarray]:
    """For each document the columns of its words, strongest keyword first; `log_frequencies` is log p(word), [V]."""
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        columns, values = counts.indices[start:end], counts.data[start:end]
        information = values * (np.log(values / values.sum()) - log_frequencies[columns])
        yield columns[np.argsort(-information, kind="stable")]


# Of a class


PRIOR = 10.0  # documents
ERROR = 0.05  # chance that a class like all others shows any word: Bonferroni's correction over the words


class DistinctWords(NamedTuple):
    value: str
    documents: int
    words: tuple[str, ...]  # the clearest first; none for a class like all others
    z: tuple[float, ...]


def distinct_words(
    counts: scipy.sparse.csr_matrix, values: Sequence[str], vocabulary: Sequence[str], most: int
) -> list[DistinctWords]:
    """The distinct words of each value, in alphabetical order of the values."""
    if counts.shape[0] != len(values):
        raise InputError(f"{counts.shape[0]} documents have {len(values)} values")
    names, rows = np.unique(np.asarray(values, object).astype(str), return_inverse=True)
    member = scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, np.arange(len(rows)))), (len(names), len(rows)))
    having = np.asarray((member @ (counts > 0)).todense(), np.float64)  # [values, V]
    sizes = np.bincount(rows, minlength=len(names)).astype(np.float64)
    z = _z(having, sizes[:, None])
    least = float(-ndtri(ERROR / max(1, z.shape[1])))
    found = []
    for row, name in enumerate(names):
        order = np.argsort(-z[row], kind="stable")[:most]
        clear = [int(column) for column in order if z[row, column] >= least]
        shown = tuple(vocabulary[column] for column in clear)
        found.append(DistinctWords(str(name), int(sizes[row]), shown, tuple(float(z[row, one]) for one in clear)))
    return found


def _z(having: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    every, total = having.sum(0), sizes.sum()
    share = every / max(total, 1.0)
    here, there = having + PRIOR * share, every - having + PRIOR * share
    without_here = sizes + PRIOR - here
    without_there = total - sizes + PRIOR - there
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(here / without_here) - np.log(there / without_there)
        z = ratio / np.sqrt(1 / here + 1 / there)
    return np.where(np.isfinite(z), z, -np.inf)
