"""Files of texts: .txt, .jsonl, .csv, .tsv, .xlsx and .parquet, each giving its texts and what else it says of them."""

import csv
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from varitext.corpora.documents import (
    DEFAULT_COLUMN,
    Columns,
    Texts,
    check_columns,
    choose_column,
    has_words,
    listed,
    rows_as_columns,
    texts_of,
)
from varitext.corpora.encodings import decode
from varitext.corpora.parquet_files import parquet_batches, parquet_columns
from varitext.errors import InputError

SEPARATORS = ",;\t|"
FIRST_ROWS = 1000  # of a table, from which the column of text is chosen


def parse_txt(content: bytes, where: str, columns: Columns) -> Texts:
    """The file is one document."""
    return Texts((decode(content, where, columns.encoding),))


def parse_jsonl(content: bytes, where: str, columns: Columns) -> Texts:
    """One object a line; blank lines are skipped."""
    text = decode(content, where, columns.encoding)
    rows = list(jsonl_rows(text.split("\n"), where, columns.text_column))
    if not rows:
        return Texts(())
    column = columns.text_column or DEFAULT_COLUMN
    return texts_of(rows_as_columns(rows), _with_text(columns, column), where)


def _with_text(columns: Columns, column: str) -> Columns:
    return Columns(**columns.as_dict() | {"text_column": column})


def jsonl_rows(lines: Iterable[str], where: str, text_column: str | None) -> Iterator[dict[str, Any]]:
    """The object of each line, as lines come; every one has a text."""
    column = text_column or DEFAULT_COLUMN
    for number, line in enumerate(lines, start=1):
        if line.strip():
            row = _json_object(line, f"{where}, line {number}")
            if not isinstance(row.get(column), str):
                problem = f"has no text in {column!r}" if column in row else f"has no field {column!r}"
                raise InputError(f"{where}, line {number}: {problem}; its fields are {listed(row)}")
            yield row


def _json_object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON object is expected, not {type(row).__name__}")
    return row


def parse_csv(content: bytes, where: str, columns: Columns) -> Texts:
    """With a header; fields are separated by commas, semicolons, tabs or bars, whichever the header has most of."""
    lines = io.StringIO(decode(content, where, columns.encoding), newline="")
    table = list(csv_rows(lines, where))
    if not table:
        return Texts(())
    header, *rows = table
    _check_header(header, where)
    return texts_of({name: [row[place] for row in rows] for place, name in enumerate(header)}, columns, where)


def _check_header(header: list[str], where: str) -> None:
    if twice := next((name for place, name in enumerate(header) if name and name in header[:place]), None):
        raise InputError(f"{where}: two columns are called {twice!r}")


def csv_rows(lines: Iterable[str], where: str) -> Iterator[list[str]]:
    """The rows as they come, the header first; all of one width."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a document may be longer than the 131,072 of the default
    lines = iter(lines)
    first = list(islice(lines, 1))
    rows, width = csv.reader(chain(first, lines), strict=True, delimiter=separator_of("".join(first))), None
    try:
        for row in filter(None, rows):
            width = width or len(row)
            if len(row) != width:
                raise InputError(f"{where}, line {rows.line_num}: {len(row)} columns, not {width} as above")
            yield row
    except csv.Error as error:
        raise InputError(f"{where}, line {rows.line_num}: {error}") from None


def separator_of(header: str) -> str:
    """What the names of a header are separated by; what stands in quotes does not count."""
    outside = "".join(header.split('"')[::2])
    return max(SEPARATORS, key=outside.count)


def csv_texts(lines: Iterable[str], where: str, columns: Columns) -> Iterator[str]:
    """The texts of a table as its lines come; the first rows show which column has them."""
    rows = csv_rows(lines, where)
    header = next(rows, [])
    first = list(islice(rows, FIRST_ROWS))
    if header:
        check_columns(header, columns, where)
        table = {name: [row[place] for row in first] for place, name in enumerate(header)}
        text = choose_column(header, lambda name: has_words(table[name]), columns.text_column, where)
        yield from (row[header.index(text)] for row in chain(first, rows))


def parse_xlsx(content: bytes, where: str, columns: Columns) -> Texts:
    """The first sheet; its first row names the columns. An empty cell is an empty text."""
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise InputError(f"{where}: reading .xlsx needs openpyxl: pip install 'varitext[xlsx]'") from None
    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        rows = [row for row in book.worksheets[0].iter_rows(values_only=True) if any(cell is not None for cell in row)]
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, IndexError, OSError) as error:
        raise InputError(f"{where} is not an .xlsx file that can be read ({str(error).splitlines()[0]})") from None
    if not rows:
        return Texts(())
    header = ["" if name is None else str(name) for name in rows[0]]
    _check_header(header, where)
    table = {name: [row[place] for row in rows[1:]] for place, name in enumerate(header) if name}
    text = choose_column(list(table), lambda name: has_words(table[name]), columns.text_column, where)
    table[text] = ["" if cell is None else str(cell) for cell in table[text]]
    return texts_of(table, _with_text(columns, text), where)


def parse_parquet(content: bytes, where: str, columns: Columns) -> Texts:
    source = io.BytesIO(content)
    names = parquet_columns(source, where)
    check_columns(names, columns, where)
    table: dict[str, list[Any]] = {}
    text = columns.text_column
    for batch in parquet_batches(source, where, columns.text_column, keep=names):
        text = batch.text_column
        for name, values in batch.columns.items():
            table.setdefault(name, []).extend(values)
    return texts_of(table, _with_text(columns, text), where) if table and text else Texts(())


def parse_unnamed(content: bytes, where: str, columns: Columns) -> Texts:
    """Standard input: a parquet file, JSON lines, a table whose header names the text, or one document a line."""
    if content[:4] == b"PAR1":
        return parse_parquet(content, where, columns)
    text = decode(content, where, columns.encoding)
    if text.lstrip().startswith("{"):
        return parse_jsonl(content, where, columns)
    first = text.partition("\n")[0]
    header = next(csv.reader([first], delimiter=separator_of(first)), [])
    if (columns.text_column or DEFAULT_COLUMN) in header:
        return parse_csv(content, where, columns)
    if columns.text_column is not None:
        raise InputError(f"{where} has no column {columns.text_column!r}; its columns are {listed(header)}")
    return Texts(tuple(line.rstrip("\r") for line in text.split("\n") if line.strip()))


PARSERS: dict[str, Callable[[bytes, str, Columns], Texts]] = {
    ".txt": parse_txt,
    ".jsonl": parse_jsonl,
    ".csv": parse_csv,
    ".tsv": parse_csv,
    ".xlsx": parse_xlsx,
    ".parquet": parse_parquet,
}


def suffix_of(path: Path) -> str:
    """What kind of file it is, compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix
