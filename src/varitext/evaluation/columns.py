"""Columns of scores, labels and question ids, one row per candidate: what they must be, and when two scores tie.

The last digits of a matrix product depend on the CPU, on its library and on what else is in the batch, so they say
nothing about a candidate. Take the scores of one question in order: two neighbours tie if they are no further apart
than `TOLERANCE` times the larger of them (in magnitude), and ties chain, up to `WIDEST` times that in all. Tied scores
become one number, the highest of them.

Moving the last bits of every matrix product on purpose moved the probabilities of networks fitted on WikiQA by at most
4e-6 of their size, and almost no two candidates of its dev questions were closer than 1e-5 (`python -m lab rounding`).
"""

from collections.abc import Sized
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError


def numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Values as a one-dimensional array without NaN; infinities have a place in a ranking."""
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not numbers ({error})") from None
    if values.ndim != 1 or values.size == 0:
        raise InputError(f"{name} are one list of at least one number, not of shape {list(values.shape)}")
    if np.isnan(values).any():
        where = np.flatnonzero(np.isnan(values))
        raise InputError(f"{len(where)} of {len(values)} {name} are NaN, the first in row {where[0]}")
    return values


def binary_labels(labels: ArrayLike) -> np.ndarray:
    labels = numbers(labels, "labels")
    wrong = np.flatnonzero((labels != 0) & (labels != 1))
    if len(wrong):
        raise InputError(f"labels are 0 or 1; row {wrong[0]} has {labels[wrong[0]]:g}")
    return labels.astype(int)


def question_index(question_ids: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The ids, each once and sorted, and every row's place among them."""
    question_ids = np.asarray(question_ids)
    if question_ids.ndim != 1:
        raise InputError(f"question ids are one list, not of shape {list(question_ids.shape)}")
    try:
        return np.unique(question_ids, return_inverse=True)
    except TypeError:
        raise InputError("question ids are of several types: make them all text or all numbers") from None


def same_length(**columns: Sized) -> None:
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise InputError(f"one row per candidate, but there are {lengths}")


# Ties


class SharedRanks(NamedTuple):
    """The first and the last of the ranks that equal scores share, [P]; 1 is the rank of the highest score."""

    best: np.ndarray
    worst: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray) -> "SharedRanks":
        rising = np.sort(-scores)
        return cls(np.searchsorted(rising, -scores) + 1, np.searchsorted(rising, -scores, "right"))


TOLERANCE = 1e-5  # relative
WIDEST = 10  # tolerances: a long list of close scores is not one tie


def merge_ties(scores: np.ndarray, question_of: np.ndarray | None = None) -> np.ndarray:
    """The scores with ties made equal; [P], or [S, P] where every row is a ranking of its own.

    `question_of` numbers the question of every score, [P]; without it, all belong to one.
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim == 2:
        return np.stack([merge_ties(row, question_of) for row in scores]) if len(scores) else scores
    question = np.zeros(len(scores), np.int64) if question_of is None else np.asarray(question_of)
    order = np.lexsort((-scores, question))
    merged = np.empty_like(scores)
    merged[order] = _merged_in_order(scores[order], question[order])
    return merged


def _merged_in_order(falling: np.ndarray, question: np.ndarray) -> np.ndarray:
    """The merged scores, from scores that descend within each question."""
    if not len(falling):
        return falling
    starts = np.ones(len(falling), bool)
    starts[1:] = (np.diff(question) != 0) | ~_close(falling[:-1], falling[1:])
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(falling)) - 1
    wide = (last > first) & ~_close(falling[first], falling[last], WIDEST)
    for begin, end in zip(first[wide].tolist(), last[wide].tolist(), strict=True):
        _cut_wide(falling, starts, begin, end)
    merged: np.ndarray = falling[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    return merged


def _close(larger: np.ndarray, smaller: np.ndarray, times: float = 1.0) -> np.ndarray:
    """Whether scores tie. Equal infinities do; a score and an infinity do not, nor do two whose distance overflows."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = larger - smaller
        near = apart <= times * TOLERANCE * np.maximum(np.abs(larger), np.abs(smaller))
    close: np.ndarray = (larger == smaller) | (near & np.isfinite(apart))
    return close


def _cut_wide(falling: np.ndarray, starts: np.ndarray, begin: int, end: int) -> None:
    """Split a chain that is too wide for one tie wherever it is `WIDEST` tolerances away from where it began."""
    while not _close(falling[begin], falling[end], WIDEST):
        inside = _close(np.full(end - begin, falling[begin]), falling[begin + 1 : end + 1], WIDEST)
        begin += 1 + int(np.argmin(inside))
        starts[begin] = True
