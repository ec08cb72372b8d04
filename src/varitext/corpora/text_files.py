"""Files of texts: .txt, .jsonl, .csv and .parquet, each giving its texts and, where it has them, labels."""

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from varitext.errors import InputError

DEFAULT_COLUMN = "text"
LABEL_COLUMN = "label"


class LabelledTexts(NamedTuple):
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None


def decode(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{where}, line {line}: byte {error.start} is not UTF-8 text; convert it first") from None


def parse_txt(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    """The file is one document."""
    return LabelledTexts((decode(content, where),), None)


def parse_jsonl(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    """One object a line; blank lines are skipped."""
    column = text_column or DEFAULT_COLUMN
    texts, labels = [], []
    for number, line in enumerate(decode(content, where).split("\n"), start=1):
        if line.strip():
            row = _json_object(line, f"{where}, line {number}")
            if not isinstance(row.get(column), str):
                problem = f"has no text in {column!r}" if column in row else f"has no field {column!r}"
                raise InputError(f"{where}, line {number}: {problem}; its fields are {_listed(row)}")
            texts.append(row[column])
            labels.append(row.get(LABEL_COLUMN))
    return LabelledTexts(tuple(texts), _complete(labels))


def _json_object(line: str, where: str) -> dict:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON object is expected, not {type(row).__name__}")
    return row


def parse_csv(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a document may be longer than the 131,072 of the default
    rows = csv.reader(io.StringIO(decode(content, where), newline=""), strict=True)
    table = []
    try:
        for row in filter(None, rows):
            table.append(row)
            if len(row) != len(table[0]):
                raise InputError(f"{where}, line {rows.line_num}: {len(row)} columns, not {len(table[0])} as above")
    except csv.Error as error:
        raise InputError(f"{where}, line {rows.line_num}: {error}") from None
    if not table:
        return LabelledTexts((), None)
    header, *rows = table
    place = header.index(choose_column(header, lambda name: _has_words(rows, header.index(name)), text_column, where))
    labels = tuple(row[header.index(LABEL_COLUMN)] for row in rows) if LABEL_COLUMN in header else None
    return LabelledTexts(tuple(row[place] for row in rows), labels)


def _has_words(rows: list[list[str]], place: int) -> bool:
    return any(any(character.isalpha() for character in row[place]) for row in rows)


def parse_parquet(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    try:
        import pyarrow
        from pyarrow import parquet, types
    except ImportError:
        raise InputError(f"{where}: reading .parquet needs pyarrow: pip install 'varitext[parquet]'") from None

    def is_text(name: str) -> bool:
        kind = file.schema_arrow.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return types.is_string(kind) or types.is_large_string(kind)

    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        column = choose_column(file.schema_arrow.names, is_text, text_column, where)
        if not is_text(column):
            raise InputError(f"{where}: the column {column!r} is {file.schema_arrow.field(column).type}, not text")
        wanted = [name for name in dict.fromkeys((column, LABEL_COLUMN)) if name in file.schema_arrow.names]
        table = file.read(columns=wanted).to_pydict()
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{where} is not a parquet file that can be read ({str(error).splitlines()[0]})") from None
    if None in table[column]:
        raise InputError(f"{where}, row {table[column].index(None) + 1}: no text in {column!r}")
    return LabelledTexts(tuple(table[column]), _complete(table.get(LABEL_COLUMN, [])))


def choose_column(names: Sequence[str], is_text: Callable[[str], bool], wanted: str | None, where: str) -> str:
    """The column asked for, or "text", or the only one that holds text."""
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"{where} has no column {wanted!r}; its columns are {_listed(names)}")
        return wanted
    if DEFAULT_COLUMN in names:
        return DEFAULT_COLUMN
    candidates = [name for name in names if is_text(name)]
    if len(candidates) != 1:
        raise InputError(f"{where} has no column 'text'; say which column it is: {_listed(names)}")
    return candidates[0]


def _complete(labels: Sequence) -> tuple[str, ...] | None:
    """Labels as strings, if every document has one."""
    return tuple(map(str, labels)) if labels and None not in labels else None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:20])
    return (shown or "none")[:400]


PARSERS: dict[str, Callable[[bytes, str, str | None], LabelledTexts]] = {
    ".txt": parse_txt,
    ".jsonl": parse_jsonl,
    ".csv": parse_csv,
    ".parquet": parse_parquet,
}


def suffix_of(path: Path) -> str:
    """What kind of file it is, compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix
