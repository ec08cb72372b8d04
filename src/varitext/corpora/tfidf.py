"""Word counts from tf-idf weights: the inverse of the cosine-normalised weights in which RCV1-v2 is published.

    w = (1 + ln tf) idf / norm,     in logs     log w = log(1 + ln tf) + log idf[word] - log norm[document]

Most counts are 1, for which the first term is 0; for a count of 2 it is already .53. So the offset of a word or of a
document is the lowest dense cluster of its logs, once the offsets of the others are taken off. Words and documents take
turns, starting from document frequencies; nothing but the weights is needed. A word or document may have no count of 1:
then its lowest cluster is of the count, up to 3, that makes most of its counts whole. Last, tf = exp(w norm / idf - 1).

What cannot be known: a document whose words all occur equally often has the weights of one whose words all occur once,
and is returned as such.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varitext.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LEAST_DOCUMENTS = 11  # with a word: fewer do not show its idf
WIDTHS = np.geomspace(0.2, 0.001, 12)  # of a cluster, round by round
DENSE = 0.2  # of the number of logs in the densest cluster
LOWEST_COUNTS = np.log1p(np.log([1.0, 2.0, 3.0]))  # what the lowest cluster may be of, as logs
COUNT_ERROR = 0.02  # largest distance of a count from a whole number
NORM_ERROR = 1e-3
APART = 64.0  # more than the distance between the logs of any two weights


class RecoveredCounts(NamedTuple):
    counts: "csr_matrix"  # [documents, V]   a document that fails a check has none
    passed: np.ndarray  # [documents]   whether all its counts are whole, and make up its norm


def recover_counts(weights: "csr_matrix", offsets: np.ndarray | None = None) -> RecoveredCounts:
    """The counts of every word with an offset (default: those of `word_offsets`), and which documents pass."""
    from scipy.sparse import csr_matrix  # slow to import, and a ranking needs none

    offsets = word_offsets(weights) if offsets is None else offsets
    every = _entries(weights)
    known = np.isfinite(offsets[every.words])
    rows, words, logs = (values[known] for values in every)
    documents = weights.shape[0]
    left = logs - offsets[words]
    left -= _settled(left, rows, lowest_clusters(left, rows, documents, WIDTHS[-1]))[rows]  # log(1 + ln tf)
    counts = np.maximum(np.rint(_counts(left)), 1)
    squares = (np.exp(logs - left) * (1 + np.log(counts))) ** 2  # of the weights that these counts have
    others = np.bincount(every.rows[~known], np.exp(2 * every.logs[~known]), documents)
    passed = abs(np.bincount(rows, squares, documents) + others - 1) < NORM_ERROR
    passed &= np.bincount(rows, ~_is_whole(left), documents) == 0
    passed &= np.bincount(rows, minlength=documents) > 0
    kept = passed[rows]
    found = (counts[kept].astype(np.float32), (rows[kept], words[kept]))
    return RecoveredCounts(csr_matrix(found, weights.shape), passed)


def word_offsets(weights: "csr_matrix") -> np.ndarray:
    """log idf of each word, up to a constant; NaN for a word of fewer than `LEAST_DOCUMENTS` documents.  [V]"""
    rows, words, logs = _entries(weights)
    documents, size = weights.shape
    frequencies = np.bincount(words, minlength=size)
    offsets = np.log(np.log((documents + 1) / np.maximum(frequencies, 1)))
    for width in WIDTHS:
        norms = lowest_clusters(logs - offsets[words], rows, documents, width)
        offsets = lowest_clusters(logs - norms[rows], words, size, width)
    offsets = _settled(logs - norms[rows], words, offsets)
    return np.where(frequencies >= LEAST_DOCUMENTS, offsets, np.nan)


class _Entries(NamedTuple):
    """The weights as columns."""

    rows: np.ndarray
    words: np.ndarray
    logs: np.ndarray


def _entries(weights: "csr_matrix") -> _Entries:
    if not (weights.data > 0).all():
        raise InputError("tf-idf weights must be above zero")
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    return _Entries(rows, weights.indices, np.log(weights.data.astype(np.float64)))


def lowest_clusters(logs: np.ndarray, owners: np.ndarray, number: int, width: float) -> np.ndarray:
    """For each owner the median of its lowest dense cluster of logs; NaN for an owner without any.  [number]"""
    spaced = np.sort(logs + APART * owners)  # the logs of owner i lie around APART i: one sort serves all
    owners, places = np.rint(spaced / APART).astype(np.int64), np.arange(len(spaced))
    near = np.searchsorted(spaced, spaced + width, side="right") - places  # from this one to `width` above it
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    densest = np.repeat(np.maximum.reduceat(near, starts), np.diff(starts, append=len(spaced)))
    first = np.minimum.reduceat(np.where(near >= DENSE * densest, places, len(spaced)), starts)
    centres = np.full(number, np.nan)
    centres[owners[starts]] = spaced[first + (near[first] - 1) // 2] - APART * owners[starts]
    return centres


def _settled(logs: np.ndarray, owners: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The offset of each owner: its lowest cluster may be of 1, 2 or 3, whichever makes most of its counts whole."""
    above = logs - centres[owners]
    whole = [np.bincount(owners, _is_whole(above + lowest), len(centres)) for lowest in LOWEST_COUNTS]
    return np.asarray(centres - LOWEST_COUNTS[np.argmax(whole, axis=0)])


def _counts(logs: np.ndarray) -> np.ndarray:
    """The tf of log(1 + ln tf)."""
    return np.asarray(np.exp(np.exp(np.minimum(logs, 3.0)) - 1))  # 3 is for a count of 2e8


def _is_whole(logs: np.ndarray) -> np.ndarray:
    counts = _counts(logs)
    return np.asarray(abs(counts - np.rint(np.maximum(counts, 1))) <= COUNT_ERROR)
