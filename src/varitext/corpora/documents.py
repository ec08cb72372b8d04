"""Documents: the record of every corpus of documents, and the columns of a table that it is read from."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from varitext.corpora.dates import parse_dates
from varitext.corpora.sharded_counts import Counts
from varitext.corpora.sources import SourceFile, combined_sha256
from varitext.errors import InputError
from varitext.text import Vocabulary

DEFAULT_COLUMN = "text"
LABEL_COLUMN = "label"

Column = Sequence[Any]


@dataclass(frozen=True)
class Columns:
    """Which column is what, and the encoding of the file; None: found by its name, or not there."""

    text_column: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    date_column: str | None = None
    encoding: str | None = None

    def as_dict(self) -> dict[str, str]:
        """What was said, for the model folder."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def recorded(cls, corpus: Mapping[str, Any]) -> "Columns":
        """Those that a model folder has recorded of its corpus."""
        return cls(**{name: corpus.get(name) for name in asdict(cls())})


ANY_COLUMNS = Columns()


@dataclass(frozen=True)
class Texts:
    """The texts of a file, and what its other columns say about each of them."""

    texts: Sequence[str]
    ids: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    dates: Sequence[datetime | None] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)


def texts_of(table: Mapping[str, Column], columns: Columns, where: str) -> Texts:
    """The texts of a table of named columns; every other column is kept as it is."""
    text = choose_column(list(table), lambda name: has_words(table[name]), columns.text_column, where)
    check_columns(list(table), columns, where)
    return Texts(
        texts=tuple(_text(value, f"{where}, row {row}", text) for row, value in enumerate(table[text], start=1)),
        ids=None if columns.id_column is None else _ids(table[columns.id_column], columns.id_column, where),
        labels=_labels(table, columns.label_column, where),
        dates=None
        if columns.date_column is None
        else parse_dates(table[columns.date_column], columns.date_column, where),
        columns={name: values for name, values in table.items() if name != text},
    )


def has_words(values: Iterable[Any]) -> bool:
    return any(isinstance(value, str) and any(character.isalpha() for character in value) for value in values)


def choose_column(names: Sequence[str], is_text: Callable[[str], bool], wanted: str | None, where: str) -> str:
    """The column asked for, or "text", or the only one that holds text."""
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"{where} has no column {wanted!r}; its columns are {listed(names)}")
        return wanted
    if DEFAULT_COLUMN in names:
        return DEFAULT_COLUMN
    candidates = [name for name in names if is_text(name)]
    if len(candidates) != 1:
        raise InputError(
            f"{where} has no column 'text'; say which column it is (--text-column, text_column): {listed(names)}"
        )
    return candidates[0]


def check_columns(names: Sequence[str], columns: Columns, where: str) -> None:
    for wanted in (columns.id_column, columns.label_column, columns.date_column):
        if wanted is not None and wanted not in names:
            raise InputError(f"{where} has no column {wanted!r}; its columns are {listed(names)}")


def listed(names: Iterable[str]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:20])
    return (shown or "none")[:400]


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas writes for them."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    )


def complete(labels: Sequence[Any]) -> tuple[str, ...] | None:
    """Labels as strings, if every document has one."""
    return tuple(map(str, labels)) if labels and not any(map(is_missing, labels)) else None


def rows_as_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns of rows that need not all have the same fields."""
    table: dict[str, list[Any]] = {}
    number = 0
    for number, row in enumerate(rows, start=1):
        for name, value in row.items():
            table.setdefault(name, [None] * (number - 1)).append(value)
        for values in table.values():
            if len(values) < number:
                values.append(None)
    return table


def _text(value: Any, where: str, column: str) -> str:
    if not isinstance(value, str):
        problem = "no text" if is_missing(value) else f"{type(value).__name__}, not text,"
        raise InputError(f"{where}: {problem} in {column!r}")
    return value


def _ids(values: Column, column: str, where: str) -> tuple[str, ...]:
    ids = tuple("" if is_missing(value) else _plain(value) for value in values)
    repeated = [name for name, times in Counter(ids).items() if times > 1]
    if repeated:
        many = f"{len(repeated):,} ids stand" if len(repeated) > 1 else "one id stands"
        shown = repr(repeated[0][:40]) if repeated[0] else "an empty one"
        _warn(f"{where}: {many} in column {column!r} more than once, for example {shown}")
    return ids


def _labels(table: Mapping[str, Column], wanted: str | None, where: str) -> tuple[str, ...] | None:
    """A column asked for may have gaps; the one found by its name is taken only if it has none."""
    if wanted is None:
        return complete(table[LABEL_COLUMN]) if LABEL_COLUMN in table else None
    labels = tuple("" if is_missing(value) else _plain(value) for value in table[wanted])
    if len(labels) > 1 and len(set(labels)) == 1:
        _warn(f"{where}: all documents have the same value in column {wanted!r}: {labels[0][:40]!r}")
    elif len(labels) > 20 and len(set(labels)) == len(labels):
        _warn(f"{where}: no two documents have the same value in column {wanted!r}: are these labels?")
    return labels


def _plain(value: Any) -> str:
    """As a person would write it: spreadsheets hold whole numbers as 3.0, and days as midnights."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)


def _warn(said: str) -> None:
    warnings.warn(said, UserWarning, stacklevel=2)


@dataclass(frozen=True, eq=False)
class Documents:
    """One part of a corpus: either texts, or counts with their vocabulary.

    A table also says which document is which: `ids`, `labels`, `dates`, and all its other columns as they stand there.
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
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    path: Path | None = None  # of the user's own files: where they are
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
        """One fingerprint of all files this part was read from: `corpus_sha256` in results."""
        return combined_sha256(self.files)

    def recorded(self) -> dict[str, str]:
        """Which corpus it is, for the model folder, so that it is found again: from any folder, and read alike."""
        found = {"name": self.name, "part": self.part, "sha256": self.sha256}
        return found | ({} if self.path is None else {"path": str(self.path)}) | self.read_as.as_dict()
