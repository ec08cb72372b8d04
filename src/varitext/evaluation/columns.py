"""What columns of scores, labels and question ids must be, one row per candidate."""

from collections.abc import Sized

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError


def numbers(values: ArrayLike, name: str) -> np.ndarray:
    """One-dimensional and without NaN; infinities have a place in a ranking."""
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
