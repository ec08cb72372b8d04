"""Sentence vectors of documents: the user's own matrix, one row per document, beside the counts of their words.

Counts with vectors are counts: selecting rows selects both, and code that only knows counts ignores the vectors.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from varitext.errors import InputError
from varitext.records import DictRecord

CHECKED_AT_ONCE = 20_000  # rows of a file on disk that are in memory at a time


@dataclass(frozen=True)
class VectorOrigin(DictRecord):
    """Where the sentence vectors of a model come from."""

    origin: str  # "minilm", or "given" by the user
    dimension: int
    sha256: str | None = None  # of MiniLM's weights


class CountsWithVectors(csr_matrix):
    """Counts, [D, V], and `vectors`, [D, E]: a row of NaN is a document without one."""

    vectors: np.ndarray | None = None  # None in the result of arithmetic

    @classmethod
    def of(cls, counts: csr_matrix, vectors: np.ndarray) -> "CountsWithVectors":
        found = cls(counts)
        found.vectors = vectors
        return found

    def __getitem__(self, key: Any) -> Any:
        chosen = super().__getitem__(key)
        if self.vectors is not None and isinstance(chosen, CountsWithVectors) and not isinstance(key, tuple):
            chosen.vectors = np.asarray(self.vectors[key]).reshape(chosen.shape[0], -1)
        return chosen


def vectors_of(counts: Any) -> np.ndarray | None:
    return counts.vectors if isinstance(counts, CountsWithVectors) else None


def is_known(counts: csr_matrix) -> np.ndarray:
    """Whether a document has a word or a vector, [D]."""
    words = counts.getnnz(1) > 0
    return words if (vectors := vectors_of(counts)) is None else words | ~np.isnan(vectors[:, 0])


def read_vectors(vectors: Any, documents: int) -> np.ndarray:
    """A matrix with a row for each document, or the .npy file of one, which stays on disk."""
    where = f"vectors {vectors}" if isinstance(vectors, (str, Path)) else "vectors"
    matrix = map_vectors(Path(vectors)) if isinstance(vectors, (str, Path)) else np.asarray(vectors)
    if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind != "f":
        raise InputError(f"{where}: needs a matrix of floats, one row per document, not {_described(matrix)}")
    if len(matrix) != documents:
        raise InputError(f"{where}: {len(matrix)} rows for {documents} documents; each document needs one")
    for start in range(0, documents, CHECKED_AT_ONCE):
        finite = np.isfinite(matrix[start : start + CHECKED_AT_ONCE]).all(1)
        if not finite.all():
            raise InputError(f"{where}: row {start + int(finite.argmin())} has a value that is not finite")
    return matrix


def _described(matrix: np.ndarray) -> str:
    return f"an array of shape {matrix.shape} and type {matrix.dtype}"


def map_vectors(path: Path) -> np.ndarray:
    """The matrix in a .npy file, which stays on disk."""
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InputError(f"vectors {path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, EOFError):
        raise InputError(f"vectors {path}: not a .npy file of a matrix, as numpy.save writes it") from None
    if not isinstance(loaded, np.ndarray):
        loaded.close()
        raise InputError(f"vectors {path}: holds several arrays; save one matrix with numpy.save")
    return loaded
