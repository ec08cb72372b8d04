"""Matrices of word counts: the checks they must pass, and the files they are read from (.feat and .npz)."""

import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varitext.errors import InputError, first_line
from varitext.files import read_text
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MAX_COUNT = 1 << 24  # from here on float32 skips whole numbers


def check_counts(matrix: Any, where: str = "the counts", allow_fractional: bool = False) -> "csr_matrix":
    """`matrix` as float32 CSR with sorted columns and no stored zeros, or an `InputError`.

    Takes any sparse matrix or two-dimensional array, and neither changes it nor makes a sparse one dense.
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


def _as_csr(matrix: Any, where: str) -> "csr_matrix":
    from scipy.sparse import csr_matrix, issparse  # slow to import, and a ranking needs none

    is_sparse = issparse(matrix)
    matrix = matrix if is_sparse else np.asarray(matrix)
    if matrix.ndim != 2:
        raise InputError(f"{where} must have two dimensions, documents and words, not {matrix.ndim}")
    if matrix.dtype.kind not in "buif":
        raise InputError(f"{where} must be numbers, not {matrix.dtype}")
    if is_sparse and matrix.format in ("csr", "csc"):
        try:
            matrix.check_format(full_check=True)  # out-of-range ids would crash compiled code
        except ValueError as error:
            raise InputError(f"{where} are not a valid sparse matrix: {error}") from None
    return csr_matrix(matrix)


def _refuse(counts: "csr_matrix", wrong: np.ndarray, what: str, where: str) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        document = int(np.searchsorted(counts.indptr, first, side="right"))
        value = counts.data[first]
        raise InputError(f"{where}: document {document}, word {counts.indices[first] + 1} has {what} ({value})")


MAX_VOCABULARY = 10_000_000
_ENTRIES = re.compile(rb"(?:[0-9]{1,9}:[0-9]{1,9}(?:\s+|$))*")
_ENTRY = re.compile(r"[0-9]{1,9}:[0-9]{1,9}")


class LabelledCounts(NamedTuple):
    counts: "csr_matrix"
    labels: tuple[str, ...]


def parse_feat(content: bytes, where: str, words: int | None, first_line: int = 1) -> LabelledCounts:
    """Lines `label id:count id:count ...`; ids go from 1 to `words`, or to the largest id."""
    from scipy.sparse import csr_matrix  # slow to import, and a ranking needs none

    labels, entries, places = [], [], []
    for number, line in enumerate(content.splitlines(), start=first_line):
        label, rest = (*line.split(maxsplit=1), b"", b"")[:2]
        if b":" in label or not _ENTRIES.fullmatch(rest):
            raise InputError(f"{where}, line {number}: {_what_is_wrong(line)}")
        if label:  # an empty line is not a document
            places.append(number)
            labels.append(label.decode("utf-8", "replace"))
            entries.append(rest)
    lengths = [entry.count(b":") for entry in entries]
    numbers = np.fromstring(b" ".join(entries).replace(b":", b" ").decode("ascii"), np.int64, sep=" ").reshape(-1, 2)
    columns = numbers[:, 0] - 1
    largest = words or MAX_VOCABULARY
    wrong = (columns < 0) | (columns >= largest)
    if wrong.any():
        first = int(np.argmax(wrong))
        place = f"{where}, line {np.repeat(places, lengths)[first]}"
        raise InputError(f"{place}: word id {columns[first] + 1} is not between 1 and {largest:,}")
    width = words or int(columns.max(initial=-1)) + 1
    rows = (numbers[:, 1], columns, np.cumsum([0, *lengths]))
    return LabelledCounts(check_counts(csr_matrix(rows, (len(labels), width)), where), tuple(labels))


def _what_is_wrong(line: bytes) -> str:
    """The first entry of a .feat line that is not `id:count`."""
    first, *others = line.decode("utf-8", "replace").split()
    if ":" in first:
        return f"a line must start with a label, not with {first[:40]!r}"
    wrong = next(entry for entry in others if not _ENTRY.fullmatch(entry))
    return f"{wrong[:40]!r} is not word id:count, two whole numbers from 0 to 999,999,999"


def read_npz(path: Path) -> "csr_matrix":
    """Sparse counts; a file that holds Python objects is refused, because reading those would run code."""
    from scipy.sparse import load_npz  # slow to import, and a ranking needs none

    try:
        content = io.BytesIO(path.read_bytes())
        if not zipfile.is_zipfile(content) or "format.npy" not in zipfile.ZipFile(content).namelist():
            raise InputError(f"{path} is truncated, or was not written by scipy.sparse.save_npz")
        return check_counts(load_npz(content), str(path))
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise InputError(f"{path} is not a readable sparse matrix ({first_line(error)})") from None


def vocabulary_beside(path: Path, words: int | None) -> Vocabulary | None:
    """The words of a file of counts: NAME.vocabulary.txt, vocabulary.txt or the authors' vocab.new in its folder."""
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    for name in (f"{stem}.vocabulary.txt", "vocabulary.txt", "vocab.new"):
        if not (file := path.parent / name).is_file():
            continue
        if name == "vocab.new":  # "word count" on each line
            found = Vocabulary(tuple((*line.split(), "")[0] for line in read_text(file).splitlines()))
        else:
            found = Vocabulary.load(file)
        if words is not None and len(found) != words:
            raise InputError(f"{file} has {len(found)} words, but the counts have {words} columns")
        return found
    return None


def numbered_words(words: int) -> Vocabulary:
    if words > MAX_VOCABULARY:
        raise InputError(f"the counts have {words:,} columns, more than {MAX_VOCABULARY:,}")
    return Vocabulary(tuple(f"word{number}" for number in range(1, words + 1)))
