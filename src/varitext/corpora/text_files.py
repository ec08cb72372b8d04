"""Files of texts: .txt, .jsonl, .csv and .parquet, each giving its texts and, where it has them, labels."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from varitext.errors import InputError

DEFAULT_COLUMN = "text"
LABEL_COLUMN = "label"
ROWS = 1000  # of .parquet at a time


class LabelledTexts(NamedTuple):
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None


def decode(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(where, content.count(b"\n", 0, error.start) + 1, error.start) from None


def _not_utf8(where: str, line: int, byte: int) -> InputError:
    return InputError(f"{where}, line {line}: byte {byte} is not UTF-8 text; convert it first")


def parse_txt(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    """The file is one document."""
    return LabelledTexts((decode(content, where),), None)


def parse_jsonl(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    """One object a line; blank lines are skipped."""
    rows = list(jsonl_rows(io.BytesIO(content), where, text_column))
    return LabelledTexts(tuple(text for text, _ in rows), _complete([label for _, label in rows]))


def jsonl_rows(lines: Iterable[bytes], where: str, text_column: str | None) -> Iterator[tuple[str, Any]]:
    """Text and label of each line, as lines come."""
    column, before = text_column or DEFAULT_COLUMN, 0
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise _not_utf8(where, number, before + error.start) from None
        before += len(line)
        if text.strip():
            row = _json_object(text, f"{where}, line {number}")
            if not isinstance(row.get(column), str):
                problem = f"has no text in {column!r}" if column in row else f"has no field {column!r}"
                raise InputError(f"{where}, line {number}: {problem}; its fields are {_listed(row)}")
            yield row[column], row.get(LABEL_COLUMN)


def _json_object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON object is expected, not {type(row).__name__}")
    return row


def parse_csv(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    table = list(csv_rows(io.StringIO(decode(content, where), newline=""), where))
    if not table:
        return LabelledTexts((), None)
    header, *rows = table
    place = place_of_text(header, rows, where, text_column)
    labels = tuple(row[header.index(LABEL_COLUMN)] for row in rows) if LABEL_COLUMN in header else None
    return LabelledTexts(tuple(row[place] for row in rows), labels)


def csv_rows(lines: Iterable[str], where: str) -> Iterator[list[str]]:
    """The rows as they come, the header first; all of one width."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a document may be longer than the 131,072 of the default
    rows, width = csv.reader(lines, strict=True), None
    try:
        for row in filter(None, rows):
            width = width or len(row)
            if len(row) != width:
                raise InputError(f"{where}, line {rows.line_num}: {len(row)} columns, not {width} as above")
            yield row
    except csv.Error as error:
        raise InputError(f"{where}, line {rows.line_num}: {error}") from None


def place_of_text(header: list[str], rows: list[list[str]], where: str, text_column: str | None) -> int:
    """Which column of a .csv has the text; `rows` show what the columns hold."""

    def has_words(name: str) -> bool:
        place = header.index(name)
        return any(any(character.isalpha() for character in row[place]) for row in rows)

    return header.index(choose_column(header, has_words, text_column, where))


def parse_parquet(content: bytes, where: str, text_column: str | None) -> LabelledTexts:
    texts, labels = [], []
    for some_texts, some_labels in parquet_batches(io.BytesIO(content), where, text_column):
        texts += some_texts
        labels += some_labels
    return LabelledTexts(tuple(texts), _complete(labels))


def parquet_batches(
    source: Any, where: str, text_column: str | None, row_groups: range | None = None
) -> Iterator[tuple[list[str], list[Any]]]:
    """Texts and labels, some rows at a time; `source` is a path or an open file, `row_groups` all if left out."""
    try:
        import pyarrow
        from pyarrow import parquet, types
    except ImportError:
        raise InputError(f"{where}: reading .parquet needs pyarrow: pip install 'varitext[parquet]'") from None

    def is_text(name: str) -> bool:
        kind = file.schema_arrow.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind))

    try:
        file = parquet.ParquetFile(source)
        column = choose_column(file.schema_arrow.names, is_text, text_column, where)
        if not is_text(column):
            raise InputError(f"{where}: the column {column!r} is {file.schema_arrow.field(column).type}, not text")
        wanted = [name for name in dict.fromkeys((column, LABEL_COLUMN)) if name in file.schema_arrow.names]
        row_groups = range(file.num_row_groups) if row_groups is None else row_groups
        before = sum(file.metadata.row_group(number).num_rows for number in range(row_groups.start))
        for batch in file.iter_batches(ROWS, list(row_groups), wanted):
            table = batch.to_pydict()
            if None in table[column]:
                raise InputError(f"{where}, row {before + table[column].index(None) + 1}: no text in {column!r}")
            before += batch.num_rows
            yield table[column], table.get(LABEL_COLUMN, [])
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{where} is not a parquet file that can be read ({str(error).splitlines()[0]})") from None


def parquet_row_groups(source: Any, where: str) -> list[int]:
    """How many rows each row group has."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{where}: reading .parquet needs pyarrow: pip install 'varitext[parquet]'") from None
    try:
        metadata = parquet.ParquetFile(source).metadata
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{where} is not a parquet file that can be read ({str(error).splitlines()[0]})") from None
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


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


def _complete(labels: Sequence[object]) -> tuple[str, ...] | None:
    """Labels as strings, if every document has one."""
    return tuple(map(str, labels)) if labels and None not in labels else None


def _listed(names: Iterable[str]) -> str:
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
