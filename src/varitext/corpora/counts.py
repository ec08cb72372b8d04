"""The checks that counts of words must pass before a model sees them."""

from typing import Any

import numpy as np
from scipy import sparse

from varitext.errors import InputError

MAX_COUNT = 1 << 24  # from here on float32 skips whole numbers


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
    _refuse(counts, values > MAX_COUNT, f"a count above {MAX_COUNT:,}", where)
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
