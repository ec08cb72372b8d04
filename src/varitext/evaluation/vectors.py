"""What document vectors and their labels must be."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError


def checked_vectors(vectors: ArrayLike, name: str) -> np.ndarray:
    """Two-dimensional, finite, at least one row."""
    try:
        vectors = np.asarray(vectors, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not numbers ({error})") from None
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(f"{name} are one row per document, not of shape {list(vectors.shape)}")
    if not np.isfinite(vectors).all():
        wrong = np.flatnonzero(~np.isfinite(vectors).all(1))
        raise InputError(f"{len(wrong)} of {len(vectors)} {name} are not finite, the first in row {wrong[0]}")
    return vectors


def checked_labels(labels: Sequence[str | int] | None, vectors: np.ndarray, name: str) -> np.ndarray:
    """One label per row, as text, so that both parts of a corpus compare alike."""
    if labels is None:
        raise InputError(f"the {name} have no labels: this measure compares them")
    texts = np.array([str(label) for label in labels])
    if len(texts) != len(vectors):
        raise InputError(f"{len(vectors)} {name} have {len(texts)} labels")
    return texts


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Each row at length 1, so that products are cosines; a row of zeros stays, and is unlike everything alike."""
    largest = np.abs(vectors).max(1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)  # so that no square overflows or vanishes
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1)
