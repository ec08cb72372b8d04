"""Files of counts: `.feat` as the authors of the paper write them, and `.npz` as `scipy.sparse.save_npz` does."""

import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from varitext.corpora.counts import check_counts
from varitext.errors import InputError
from varitext.files import read_text
from varitext.text import Vocabulary

MAX_VOCABULARY = 10_000_000
_ENTRIES = re.compile(rb"(?:[0-9]{1,9}:[0-9]{1,9}(?:\s+|$))*")
_ENTRY = re.compile(r"[0-9]{1,9}:[0-9]{1,9}")


class LabelledCounts(NamedTuple):
    counts: sparse.csr_matrix
    labels: tuple[str, ...]


def parse_feat(content: bytes, where: str, words: int | None, first_line: int = 1) -> LabelledCounts:
    """Lines `label id:count id:count ...`; ids run from 1 to `words`, or to the largest there is."""
    labels, entries = [], []
    for number, line in enumerate(content.splitlines(), start=first_line):
        label, rest = (*line.split(maxsplit=1), b"", b"")[:2]
        if b":" in label or not _ENTRIES.fullmatch(rest):
            raise InputError(f"{where}, line {number}: {_what_is_wrong(line)}")
        if label:  # a line with nothing on it is no document
            labels.append(label.decode("utf-8", "replace"))
            entries.append(rest)
    lengths = [entry.count(b":") for entry in entries]
    numbers = np.fromstring(b" ".join(entries).replace(b":", b" ").decode("ascii"), np.int64, sep=" ").reshape(-1, 2)
    columns = numbers[:, 0] - 1
    _check_ids(columns, lengths, where, words)
    width = words or int(columns.max(initial=-1)) + 1
    rows = (numbers[:, 1], columns, np.cumsum([0, *lengths]))
    return LabelledCounts(check_counts(sparse.csr_matrix(rows, (len(labels), width)), where), tuple(labels))


def _what_is_wrong(line: bytes) -> str:
    """The first entry of a .feat line that is no `id:count`."""
    first, *others = line.decode("utf-8", "replace").split()
    if ":" in first:
        return f"a line starts with a label, not with {first[:40]!r}"
    wrong = next(entry for entry in others if not _ENTRY.fullmatch(entry))
    return f"{wrong[:40]!r} is not word id:count, two whole numbers from 0 to 999,999,999"


def _check_ids(columns: np.ndarray, lengths: list[int], where: str, words: int | None) -> None:
    largest = words or MAX_VOCABULARY
    wrong = (columns < 0) | (columns >= largest)
    if wrong.any():
        first = int(np.argmax(wrong))
        document = int(np.searchsorted(np.cumsum(lengths), first, side="right")) + 1
        raise InputError(f"{where}, document {document}: word id {columns[first] + 1} is not between 1 and {largest:,}")


def read_npz(path: Path) -> sparse.csr_matrix:
    """Sparse counts; a file that holds Python objects is refused, since reading those would run code."""
    try:
        content = io.BytesIO(path.read_bytes())
        if not zipfile.is_zipfile(content) or "format.npy" not in zipfile.ZipFile(content).namelist():
            raise InputError(f"{path} is cut short, or not a sparse matrix that scipy.sparse.save_npz wrote")
        return check_counts(sparse.load_npz(content), str(path))
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise InputError(f"{path} is not a sparse matrix that can be read ({_one_line(error)})") from None


def _one_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def vocabulary_beside(path: Path, words: int | None) -> Vocabulary | None:
    """The words of a file of counts: NAME.vocabulary.txt, vocabulary.txt or the authors' vocab.new in its folder."""
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    for name in (f"{stem}.vocabulary.txt", "vocabulary.txt"):
        if (path.parent / name).is_file():
            return _of_length(Vocabulary.load(path.parent / name), path.parent / name, words)
    listing = path.parent / "vocab.new"
    if listing.is_file():  # "word count" a line
        lines = [line.split() for line in read_text(listing).splitlines()]
        return _of_length(Vocabulary(tuple(line[0] if line else "" for line in lines)), listing, words)
    return None


def _of_length(vocabulary: Vocabulary, path: Path, words: int | None) -> Vocabulary:
    if words is not None and len(vocabulary) != words:
        raise InputError(f"{path} has {len(vocabulary)} words for {words} columns of counts")
    return vocabulary


def numbered_words(words: int) -> Vocabulary:
    if words > MAX_VOCABULARY:
        raise InputError(f"{words:,} columns of counts are more than {MAX_VOCABULARY:,}")
    return Vocabulary(tuple(f"word{number}" for number in range(1, words + 1)))
