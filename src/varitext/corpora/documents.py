"""The record in which every corpus of documents arrives, and the checks that counts must pass."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from varitext.errors import InputError
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from varitext.corpora.sharded_counts import ShardedCounts

LARGEST_COUNT = 1 << 24  # from here on float32 skips whole numbers


@dataclass(frozen=True)
class SourceFile:
    """A file that a corpus was read from; the SHA-256 is of its content, uncompressed."""

    name: str
    sha256: str


@dataclass(frozen=True, eq=False)
class Documents:
    """One part of a corpus: either texts, or counts with their vocabulary."""

    name: str
    part: str
    files: tuple[SourceFile, ...]
    texts: Sequence[str] | None = None
    counts: "sparse.csr_matrix | ShardedCounts | None" = None  # [documents, V]
    vocabulary: Vocabulary | None = None
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if (self.texts is None) == (self.counts is None):
            raise ValueError("documents are either texts or counts")
        if (self.counts is None) != (self.vocabulary is None):
            raise ValueError("counts come with their vocabulary, texts without one")
        if self.labels is not None and len(self.labels) != len(self):
            raise ValueError(f"{len(self)} documents have {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.texts) if self.texts is not None else self.counts.shape[0]

    @property
    def sha256(self) -> str:
        """One fingerprint of all files this part was read from: `corpus_sha256` in results."""
        return combined_sha256(self.files)


@dataclass(frozen=True)
class LocalFile:
    """A source file that is on this machine."""

    path: Path
    name: str


@dataclass(frozen=True)
class CorpusSpec:
    """A corpus that is known by name.

    `load(part, data_dir)` gives the record, `locate(data_dir)` the files it would be read from without any network,
    none if they are not all here, and `fetch(data_dir)` the same after getting what is missing.
    """

    name: str
    description: str
    parts: tuple[str, ...]
    load: Callable[[str, Path | None], Any]
    locate: Callable[[Path | None], list[LocalFile]]
    fetch: Callable[[Path | None], list[LocalFile]]


def combined_sha256(files: Sequence[SourceFile]) -> str:
    lines = sorted(f"{file.name} {file.sha256}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def check_counts(matrix: Any, where: str = "the counts", allow_fractional: bool = False) -> sparse.csr_matrix:
    """`matrix` as float32 CSR with sorted columns and no stored zeros, or an `InputError` that says what is wrong.

    Takes any sparse matrix or two-dimensional array, never makes a sparse one dense, and never changes its argument.
    """
    counts = _as_csr(matrix, where)
    values = counts.data
    _refuse(counts, ~np.isfinite(values), "a count that is not finite", where)
    _refuse(counts, values < 0, "a negative count", where)
    if not allow_fractional:
        _refuse(counts, values != np.floor(values), "a fractional count", where)
    _refuse(counts, values > LARGEST_COUNT, f"a count above {LARGEST_COUNT:,}", where)
    if counts.dtype != np.float32 or not counts.has_canonical_format or not values.all():
        counts = counts.astype(np.float32, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
    return counts


def _as_csr(matrix: Any, where: str) -> sparse.csr_matrix:
    is_sparse = sparse.issparse(matrix)
    matrix = matrix if is_sparse else np.asarray(matrix)
    if matrix.ndim != 2:
        raise InputError(f"{where} must have two dimensions, documents and words, not {matrix.ndim}")
    if matrix.dtype.kind not in "buif":
        raise InputError(f"{where} must be numbers, not {matrix.dtype}")
    if is_sparse and matrix.format in ("csr", "csc"):
        try:
            matrix.check_format(full_check=True)  # ids out of range would crash compiled code, not raise
        except ValueError as error:
            raise InputError(f"{where} are not a valid sparse matrix: {error}") from None
    return sparse.csr_matrix(matrix)


def _refuse(counts: sparse.csr_matrix, wrong: np.ndarray, what: str, where: str) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        document = int(np.searchsorted(counts.indptr, first, side="right"))
        value = counts.data[first]
        raise InputError(f"{where}: document {document}, word {counts.indices[first] + 1} has {what} ({value})")
