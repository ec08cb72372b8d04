"""Words that tell the documents of one class, or of one time, from all others.

For each word, the documents of the class that have it, a of n, beside those of all other documents, b of m:

    log odds ratio   log (a + s p) / (n - a + s (1 - p))  -  log (b + s p) / (m - b + s (1 - p))
    its variance     1 / (a + s p) + 1 / (b + s p)
    z                the ratio by its standard deviation

p is the share of all documents that have the word, and s the documents that this prior counts as: log odds with an
informative prior (Monroe, Colaresi and Quinn 2008). Documents are counted and not words, because words come in bursts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import ndtri

from varitext.errors import InputError

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
    """By value in alphabetical order."""
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
