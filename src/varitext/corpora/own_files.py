"""Documents from users' files: a file of texts or counts, or a folder of them, read as a stream.

A folder is a `train` and a `test` part (sub-folders, or files such as train.jsonl); or .txt files, labelled by the
sub-folder they are in; or the shards that `varitext prepare` wrote. A whole file is a list of its stream. Tables of
texts stream row by row, .feat files some lines at a time; .npz files are read whole.
"""

import csv
import hashlib
import io
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from varitext.corpora import tables
from varitext.corpora.counts import LabelledCounts, numbered_words, parse_feat, read_npz, vocabulary_beside
from varitext.corpora.documents import (
    ANY_COLUMNS,
    DEFAULT_COLUMN,
    LABEL_COLUMN,
    Columns,
    Documents,
    check_column,
    choose_column,
    described,
    is_missing,
)
from varitext.corpora.sharded_counts import ShardedCounts, blocks_of
from varitext.corpora.shards import ShardFolder, is_shard_folder
from varitext.corpora.sources import SourceFile, combined_sha256, read_bytes, source_file
from varitext.corpora.tables import READERS, Reading, Row
from varitext.errors import InputError
from varitext.files import sha256_of
from varitext.text import Vocabulary

TEXT_KINDS = (".txt", *READERS)
KINDS = (*TEXT_KINDS, ".feat", ".npz")
WHOLE = "all"  # the part of a file or folder that is not divided
PARTS = ("train", "test")
STANDARD_INPUT = "-"
FIRST_ROWS = 1000  # of a table, from which the column of text is chosen
FEAT_LINES = 1000  # at a time
TOLD_EVERY = 1000  # texts
Progress = Callable[[int, float | None], None]  # called with the documents and the share of the file read


class TextRow(NamedTuple):
    text: str
    columns: dict[str, Any]  # the others
    row: Mapping[str, Any] = MappingProxyType({})  # all columns of the file, or what else is known


@dataclass(frozen=True)
class Stream:
    """Texts, or blocks of counts over a vocabulary; `sources` is complete when the last one has been taken."""

    name: str
    sources: list[SourceFile]
    texts: Iterator[TextRow] | None = None
    counts: Iterator[LabelledCounts] | None = None
    vocabulary: Vocabulary | None = None  # of counts; None if the file does not name its words
    reading: Reading = field(default_factory=Reading)  # how much of a file of texts has been taken


# Parts


def parts(path: Path) -> tuple[str, ...]:
    return tuple(part for part in PARTS if path.is_dir() and _part_of_folder(path, part)) or (WHOLE,)


def folder_or_file(path: Path, part: str) -> tuple[Path, str]:
    """The path and the name of that part; a path that is not divided is its own training part."""
    known = parts(path)
    if known == (WHOLE,):
        if part not in ("train", WHOLE):
            raise InputError(f"{path} is not divided into parts, so it has no {part!r} part")
        return path, WHOLE
    found = _part_of_folder(path, part) if part in known else None
    if found is None:
        raise InputError(f"{path} has no part {part!r}; it has {', '.join(known)}")
    return found, part


def _part_of_folder(folder: Path, part: str) -> Path | None:
    return folder / part if (folder / part).is_dir() else tables.file_of_part(folder, part, KINDS)


# Whole files


def load(path: Path, part: str, columns: Columns = ANY_COLUMNS, progress: Progress | None = None) -> Documents:
    """A part of `path`; a path that is not divided is loaded whole."""
    found, part = folder_or_file(path, part)
    if is_shard_folder(found):
        documents = _open_shards(found, part)
    else:
        documents = _whole(stream_files(found, columns), part, columns, found.is_dir(), progress)
    if not len(documents):
        raise InputError(f"{found} has no documents")
    return replace(documents, path=path.absolute(), read_as=columns)


def load_standard_input(columns: Columns) -> Documents:
    """Documents from a pipe: .parquet, JSON lines, a table whose header names the text, or one document per line."""
    content, where = sys.stdin.buffer.read(), "standard input"
    if not content.strip():
        raise InputError(f"{where} is empty")
    texts = _unnamed_texts(content, where, columns)
    return _whole(Stream(where, [source_file(where, content)], texts), WHOLE, columns)


def _whole(
    stream: Stream, part: str, columns: Columns, is_folder: bool = False, progress: Progress | None = None
) -> Documents:
    if stream.texts is None:
        return _whole_counts(stream, part)
    texts: list[str] = []
    table: dict[str, list[Any]] = {}
    for number, row in enumerate(stream.texts):
        texts.append(row.text)
        if progress and number % TOLD_EVERY == 0:
            progress(number, stream.reading.share)
        for name, value in row.columns.items():
            values = table.setdefault(name, [])
            values += [None] * (number - len(values))  # rows need not all have the same fields
            values.append(value)
    for values in table.values():
        values += [None] * (len(texts) - len(values))
    ids, labels, dates = described(table, columns, stream.name) if texts else (None, None, None)
    if is_folder:
        table, labels = {}, None if set(labels or ()) == {"."} else labels
    files = tuple(stream.sources)
    return Documents(stream.name, part, files, tuple(texts), labels=labels, ids=ids, dates=dates, columns=table)


def _whole_counts(stream: Stream, part: str) -> Documents:
    from scipy.sparse import csr_matrix, vstack  # slow to import, and a ranking needs none

    blocks = list(stream.counts or ())
    if not blocks:
        raise InputError(f"{stream.name} has no documents")
    width = max((block.counts.shape[1] for block in blocks), default=0)
    vocabulary = stream.vocabulary or numbered_words(width)
    widened = [
        csr_matrix((counts.data, counts.indices, counts.indptr), (counts.shape[0], len(vocabulary)))
        for counts, _ in blocks
    ]
    counts = vstack(widened, "csr") if len(widened) > 1 else widened[0]
    labels = tuple(chain.from_iterable(block.labels for block in blocks)) or None
    files = tuple(stream.sources)
    return Documents(stream.name, part, files, counts=counts, vocabulary=vocabulary, labels=labels)


def _open_shards(folder: Path, part: str) -> Documents:
    """Only the list of shards is read: the counts stay on disk."""
    shards = ShardFolder.open(folder)
    file = SourceFile("config.json", shards.sha256)
    counts = ShardedCounts(shards, shards.vocabulary)
    return Documents(str(folder), part, (file,), counts=counts, vocabulary=shards.vocabulary)


# Streams


def stream_documents(documents: Documents) -> Stream:
    """Documents that are in memory, or in shards, already."""
    sources = list(documents.files)
    if documents.counts is None:
        return Stream(documents.name, sources, texts=(TextRow(text, {}) for text in documents.texts or ()))
    blocks = (LabelledCounts(block, ()) for block in blocks_of(documents.counts))
    return Stream(documents.name, sources, counts=blocks, vocabulary=documents.vocabulary)


def stream_files(path: Path, columns: Columns = ANY_COLUMNS, texts_only: bool = False) -> Stream:
    """A file or folder that is not divided; with `texts_only`, other columns may be left out."""
    kind, sources, reading = tables.suffix_of(path), list[SourceFile](), Reading()
    if path.is_dir():
        if is_shard_folder(path):
            return stream_documents(_open_shards(path, WHOLE))
        return Stream(str(path), sources, texts=_folder_texts(path, columns, sources))
    if kind in TEXT_KINDS:
        texts = _file_texts(path, columns, sources, texts_only, reading)
        return Stream(str(path), sources, texts, reading=reading)
    if kind == ".feat":
        vocabulary = vocabulary_beside(path, None)
        return Stream(str(path), sources, counts=_feat_counts(path, vocabulary, sources), vocabulary=vocabulary)
    if kind == ".npz":
        counts = read_npz(path)
        vocabulary = vocabulary_beside(path, counts.shape[1]) or numbered_words(counts.shape[1])
        sources.append(SourceFile(path.name, sha256_of(path)))
        return Stream(str(path), sources, counts=iter([LabelledCounts(counts, ())]), vocabulary=vocabulary)
    raise InputError(f"{path}: unknown kind of file. Use {', '.join(KINDS)} or a folder of .txt files.")


def _file_texts(
    path: Path, columns: Columns, sources: list[SourceFile], texts_only: bool, reading: Reading
) -> Iterator[TextRow]:
    if tables.suffix_of(path) == ".txt":  # the file is one document
        content = read_bytes(path)
        sources.append(source_file(path.name, content))
        if content.strip():
            yield TextRow(tables.decode(content, str(path), columns.encoding), {})
        return
    if texts_only and path.suffix.lower() == ".parquet":
        yield from parquet_texts(path, columns, reading=reading)
        sources.append(SourceFile(path.name, sha256_of(path)))
        return
    rows = tables.table_rows(path, sources, columns.encoding, reading)
    yield from _table_texts(rows, str(path), columns, is_sheet=tables.suffix_of(path) == ".xlsx")


def parquet_texts(
    path: Path, columns: Columns, row_groups: range | None = None, reading: Reading | None = None
) -> Iterator[TextRow]:
    """The texts of a .parquet file, or of some of its row groups; the other columns are not read."""
    column, _ = _choose_text(islice(tables.parquet_rows(path, str(path)), FIRST_ROWS), str(path), columns)
    rows = tables.parquet_rows(path, str(path), [column] if column else None, row_groups, reading)
    return _table_texts(rows, str(path), replace(columns, text_column=column or None))


def _table_texts(rows: Iterator[Row], where: str, columns: Columns, is_sheet: bool = False) -> Iterator[TextRow]:
    """The text of each row; the first rows show which column has it."""
    column, rows = _choose_text(rows, where, columns)
    for values, place in rows:
        if column not in values:
            raise InputError(f"{place}: no field {column!r}. Fields: {tables.listed(values)}.")
        row, text = dict(values), values.pop(column)
        if is_sheet:  # an empty cell is an empty text, a number its digits
            text = "" if text is None else str(text)
        if not isinstance(text, str):
            raise InputError(f"{place}: {column!r} {_held(text)}, not text")
        yield TextRow(text, values, row)


def column_names(path: Path, encoding: str | None = None) -> Collection[str]:
    """The columns that the first row of a table has; none if `path` is not a table."""
    if not path.is_file() or tables.suffix_of(path) not in READERS:
        return ()
    with closing(tables.table_rows(path, [], encoding)) as rows:
        first = next(rows, None)
    return () if first is None else first.values.keys()


def _choose_text(rows: Iterator[Row], where: str, columns: Columns) -> tuple[str, Iterator[Row]]:
    first = list(islice(rows, FIRST_ROWS))
    names = list(dict.fromkeys(name for row in first for name in row.values))

    def is_text(name: str) -> bool:
        return tables.has_words(row.values.get(name) for row in first)

    if not first:
        return "", iter(())
    return choose_column(names, is_text, columns.text_column, where), chain(first, rows)


def _held(value: Any) -> str:
    if is_missing(value):
        return "holds a missing value"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"holds the number {value}"
    return f"holds a {type(value).__name__}"


def _unnamed_texts(content: bytes, where: str, columns: Columns) -> Iterator[TextRow]:
    """The texts of standard input; its content shows the format."""
    stream: io.BufferedReader = io.BufferedReader(io.BytesIO(content))
    if content[:4] == b"PAR1":
        return _table_texts(READERS[".parquet"](stream, where, columns.encoding), where, columns)
    text = tables.decode(content, where, columns.encoding)
    first = text.partition("\n")[0]
    header = next(csv.reader([first], delimiter=tables.separator_of(first)), [])
    is_json = text.lstrip().startswith("{")
    if is_json or (columns.text_column or DEFAULT_COLUMN) in header:
        kind = ".jsonl" if is_json else ".csv"
        return _table_texts(READERS[kind](stream, where, columns.encoding), where, columns)
    if columns.text_column is not None:
        check_column(columns.text_column, header, where)
    return (TextRow(line.rstrip("\r"), {}) for line in text.split("\n") if line.strip())


def _folder_texts(folder: Path, columns: Columns, sources: list[SourceFile]) -> Iterator[TextRow]:
    files = []
    for path in _text_files(folder):
        content = read_bytes(path)
        name = path.relative_to(folder)
        label = {LABEL_COLUMN: name.parent.as_posix()}
        yield TextRow(tables.decode(content, str(path), columns.encoding), label, {"file": name.as_posix(), **label})
        files.append(SourceFile(name.as_posix(), hashlib.sha256(content).hexdigest()))
    if not files:
        raise InputError(f"{folder} has no .txt files")
    sources.append(SourceFile(folder.name, combined_sha256(files)))  # one entry, not a hundred thousand


def _text_files(folder: Path) -> Iterator[Path]:
    """The .txt files below, in the order of their paths."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _text_files(path)
        elif path.suffix == ".txt" and path.is_file():
            yield path


def _feat_counts(path: Path, vocabulary: Vocabulary | None, sources: list[SourceFile]) -> Iterator[LabelledCounts]:
    words, line = None if vocabulary is None else len(vocabulary), 1
    with tables.hashed_content(path, sources) as lines:
        while some := list(islice(lines, FEAT_LINES)):
            yield parse_feat(b"".join(some), str(path), words, line)
            line += len(some)
