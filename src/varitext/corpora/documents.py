"""Documents: the record of every corpus of documents, and which columns of a table hold text, ids, labels and dates."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from varitext.corpora.dates import parse_dates
from varitext.corpora.sharded_counts import Counts
from varitext.corpora.sources import SourceFile, combined_sha256
from varitext.corpora.tables import listed
from varitext.errors import InputError
from varitext.text import Vocabulary

DEFAULT_COLUMN = "text"
LABEL_COLUMN = "label"

Column = Sequence[Any]


@dataclass(frozen=True)
class Columns:
    """Which column of a table holds what, and the encoding of the file; the parameters of `load_documents`."""

    text_column: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    date_column: str | None = None
    encoding: str | None = None

    def as_dict(self) -> dict[str, str]:
        """The columns that were named, for the model folder."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def recorded(cls, corpus: Mapping[str, Any]) -> "Columns":
        """The columns that a model folder has recorded of its corpus."""
        return cls(**{name: corpus.get(name) for name in asdict(cls())})


ANY_COLUMNS = Columns()


@dataclass(frozen=True, eq=False)
class Documents:
    """One part of a corpus: either texts, or counts with their vocabulary.

    Parameters
    ----------
    name : str
        Name of the corpus, or path of the file.
    part : str
        "train", "test", or "all" for files that are not divided into parts.
    files : tuple of SourceFile
        The files it was read from, with their SHA-256.
    texts : sequence of str, optional
        The documents, if they are texts.
    counts : csr_matrix or ShardedCounts of shape (n_documents, n_words), optional
        The documents, if they are counts.
    vocabulary : Vocabulary, optional
        The columns of `counts`.
    labels : sequence of str, optional
        One label per document.
    ids : sequence of str, optional
        One id per document.
    dates : sequence of datetime or None, optional
        One date per document; None if it could not be read.
    columns : mapping of str to sequence, optional
        All other columns of the table, by name.
    path : Path, optional
        Where the user's files are.
    read_as : Columns, optional
        How the user's files were read.
    """

    name: str
    part: str
    files: tuple[SourceFile, ...]
    texts: Sequence[str] | None = None
    counts: Counts | None = None  # [documents, V]
    vocabulary: Vocabulary | None = None
    labels: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    dates: Sequence[datetime | None] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    path: Path | None = None
    read_as: Columns = ANY_COLUMNS

    def __post_init__(self) -> None:
        if (self.texts is None) == (self.counts is None):
            raise ValueError("documents are either texts or counts")
        if (self.counts is None) != (self.vocabulary is None):
            raise ValueError("counts come with their vocabulary, texts without one")
        about = {"labels": self.labels, "ids": self.ids, "dates": self.dates, **self.columns}
        for name, values in about.items():
            if values is not None and len(values) != len(self):
                raise ValueError(f"{len(self)} documents have {len(values)} {name}")

    def __len__(self) -> int:
        if self.counts is not None:
            return int(self.counts.shape[0])
        return len(self.texts or ())

    @property
    def sha256(self) -> str:
        """One hash of all files that this part was read from: `corpus_sha256` in results."""
        return combined_sha256(self.files)

    def recorded(self) -> dict[str, str]:
        """What a model folder records of its corpus, to find it again from any folder and read it the same way."""
        found = {"name": self.name, "part": self.part, "sha256": self.sha256}
        return found | ({} if self.path is None else {"path": str(self.path)}) | self.read_as.as_dict()


# Columns


def choose_column(names: Sequence[str], is_text: Callable[[str], bool], wanted: str | None, where: str) -> str:
    """The column asked for, or "text", or the only one that holds text."""
    if wanted is not None:
        check_column(wanted, names, where)
        return wanted
    if DEFAULT_COLUMN in names:
        return DEFAULT_COLUMN
    candidates = [name for name in names if is_text(name)]
    if len(candidates) != 1:
        use = f"Use --text-column {candidates[-1] if candidates else 'NAME'} (text_column)."
        raise InputError(f"{where}: no column {DEFAULT_COLUMN!r}. Columns: {listed(names)}. {use}")
    return candidates[0]


def check_column(wanted: str, names: Sequence[str], where: str) -> None:
    if wanted not in names:
        raise InputError(f"{where}: no column {wanted!r}. Columns: {listed(names)}.")


def is_missing(value: Any) -> bool:
    """None, NaN, or pandas' equivalents."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    )


Description = tuple[Sequence[str] | None, Sequence[str] | None, Sequence[datetime | None] | None]


def described(table: Mapping[str, Column], columns: Columns, where: str) -> Description:
    for wanted in (columns.id_column, columns.label_column, columns.date_column):
        if wanted is not None:
            check_column(wanted, list(table), where)
    ids, when = columns.id_column, columns.date_column
    labels = _labels(table, columns.label_column, where)
    dates = None if when is None else parse_dates(table[when], when, where)
    return None if ids is None else _ids(table[ids], ids, where), labels, dates


def _ids(values: Column, column: str, where: str) -> tuple[str, ...]:
    ids = tuple("" if is_missing(value) else _plain(value) for value in values)
    repeated = [name for name, times in Counter(ids).items() if times > 1]
    if repeated:
        many = f"{len(repeated):,} ids occur" if len(repeated) > 1 else "one id occurs"
        shown = repr(repeated[0][:40]) if repeated[0] else "an empty one"
        _warn(f"{where}: {many} in column {column!r} more than once, for example {shown}")
    return ids


def _labels(table: Mapping[str, Column], wanted: str | None, where: str) -> tuple[str, ...] | None:
    """A requested column may have gaps; "label" is used automatically only if it has none."""
    if wanted is None:
        labels = table.get(LABEL_COLUMN, ())
        return tuple(map(str, labels)) if len(labels) and not any(map(is_missing, labels)) else None
    labels = tuple("" if is_missing(value) else _plain(value) for value in table[wanted])
    if len(labels) > 1 and len(set(labels)) == 1:
        _warn(f"{where}: all documents have the same value in column {wanted!r}: {labels[0][:40]!r}")
    elif len(labels) > 20 and len(set(labels)) == len(labels):
        _warn(f"{where}: every document has a different value in column {wanted!r}. Does it hold labels?")
    return labels


def _plain(value: Any) -> str:
    """A value as a person would write it: spreadsheets hold whole numbers as 3.0, and days as midnights."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)
