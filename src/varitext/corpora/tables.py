"""Tables, one row at a time: .jsonl, .csv, .tsv, .xlsx and .parquet files, compressed or not, in any encoding.

Memory holds one line of .jsonl, one row of .csv or .xlsx, or some rows of .parquet at a time. A gzipped .parquet and a
.xlsx are decompressed in memory.
"""

import codecs
import csv
import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from varitext.corpora.sources import SourceFile, open_content
from varitext.errors import InputError, first_line
from varitext.files import sha256_of

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

SEPARATORS = ",;\t|"
PARQUET_ROWS = 1000  # at a time
ENCODINGS = "cp1252 (Windows, Western Europe), cp1251 (Cyrillic), gb18030 (Chinese), shift_jis (Japanese)"


class Row(NamedTuple):
    values: dict[str, Any]
    where: str  # file and line, for messages


@dataclass
class Reading:
    """How much of a file has been read: bytes, or rows of .parquet."""

    done: int = 0
    total: int = 0  # 0: not known

    @property
    def share(self) -> float | None:
        return self.done / self.total if self.total else None


Reader = Callable[[io.BufferedReader, str, str | None], Iterator[Row]]


def table_rows(
    path: Path, sources: list[SourceFile], encoding: str | None = None, reading: Reading | None = None
) -> Generator[Row, None, None]:
    """The rows of a file; at its end, its name and hash are added to `sources`."""
    if path.name.lower().endswith(".parquet"):
        yield from parquet_rows(path, str(path), reading=reading)
        sources.append(SourceFile(path.name, sha256_of(path)))
        return
    with hashed_content(path, sources, reading) as stream:
        yield from READERS[suffix_of(path)](stream, str(path), encoding)


def suffix_of(path: Path) -> str:
    """The kind of a file, compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def file_of_part(folder: Path, part: str, kinds: tuple[str, ...]) -> Path | None:
    files = [file for file in sorted(folder.glob(f"{part}.*")) if file.is_file() and suffix_of(file) in kinds]
    if len(files) > 1:
        raise InputError(f"{folder} has more than one file for {part}: {', '.join(file.name for file in files)}")
    return files[0] if files else None


def has_words(values: Iterable[Any]) -> bool:
    return any(isinstance(value, str) and any(character.isalpha() for character in value) for value in values)


def listed(names: Iterable[str]) -> str:
    return (", ".join(list(names)[:20]) or "none")[:400]


# Readers


def _jsonl_rows(stream: io.BufferedReader, where: str, encoding: str | None) -> Iterator[Row]:
    """One object per line; blank lines are skipped."""
    for number, line in enumerate(text_lines(stream, where, encoding), start=1):
        if line.strip():
            place = f"{where}, line {number}"
            try:
                values = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{place}: not valid JSON ({error})") from None
            if not isinstance(values, dict):
                raise InputError(f"{place}: expected a JSON object, not {type(values).__name__}")
            yield Row(values, place)


def _csv_rows(stream: io.BufferedReader, where: str, encoding: str | None) -> Iterator[Row]:
    """With a header; the separator is whichever of comma, semicolon, tab and bar the header has most of."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a document may be longer than the default of 131,072
    lines = _at_every_line_end(text_lines(stream, where, encoding))
    first = list(islice(lines, 1))
    rows = csv.reader(chain(first, lines), strict=True, delimiter=separator_of("".join(first)))
    header: list[str] = []
    try:
        for row in filter(None, rows):
            if header and len(row) != len(header):
                raise InputError(f"{where}, line {rows.line_num}: {len(row)} columns, but the header has {len(header)}")
            if header:
                yield Row(dict(zip(header, row, strict=True)), f"{where}, line {rows.line_num}")
            else:
                header = _checked_header(row, where)
    except csv.Error as error:
        raise InputError(f"{where}, line {rows.line_num}: {error}") from None


def separator_of(header: str) -> str:
    """The separator of a header's names; what is in quotes does not count."""
    outside = "".join(header.split('"')[::2])
    return max(SEPARATORS, key=outside.count)


def _checked_header(header: list[str], where: str) -> list[str]:
    if twice := next((name for place, name in enumerate(header) if name and name in header[:place]), None):
        raise InputError(f"{where}: two columns are named {twice!r}")
    return header


def _at_every_line_end(lines: Iterable[str]) -> Iterator[str]:
    r"""Lines that may end in a bare \r, too."""
    for line in lines:
        if "\r" in line[:-2]:
            yield from io.StringIO(line, newline="")
        else:
            yield line


def _xlsx_rows(stream: io.BufferedReader, where: str, encoding: str | None) -> Iterator[Row]:
    """The first sheet; its first row names the columns."""
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise InputError(f"{where}: reading .xlsx needs openpyxl: pip install 'varitext[xlsx]'") from None
    header: list[str] = []
    try:
        book = openpyxl.load_workbook(io.BytesIO(stream.read()), read_only=True, data_only=True)
        for number, cells in enumerate(book.worksheets[0].iter_rows(values_only=True), start=1):
            if not any(cell is not None for cell in cells):
                continue
            if header:
                values = {name: cell for name, cell in zip(header, cells, strict=False) if name}
                yield Row(values, f"{where}, row {number}")
            else:
                header = _checked_header(["" if name is None else str(name) for name in cells], where)
    except InputError:
        raise
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, IndexError, OSError) as error:
        raise InputError(f"{where} is not a readable .xlsx file ({first_line(error)})") from None


READERS: dict[str, Reader] = {
    ".jsonl": _jsonl_rows,
    ".csv": _csv_rows,
    ".tsv": _csv_rows,
    ".xlsx": _xlsx_rows,
    ".parquet": lambda stream, where, _: parquet_rows(io.BytesIO(stream.read()), where),
}


# Parquet


def parquet_rows(
    source: Path | BinaryIO,
    where: str,
    only: Sequence[str] | None = None,
    row_groups: range | None = None,
    reading: Reading | None = None,
) -> Iterator[Row]:
    """The columns that hold one value per row, no lists or structures; of all `row_groups` if omitted."""
    with _opened_parquet(source, where) as file:
        from pyarrow import types

        names = [field.name for field in file.schema_arrow if not types.is_nested(field.type)]
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        before = sum(file.metadata.row_group(group).num_rows for group in range(groups.start))
        batches = file.iter_batches(PARQUET_ROWS, list(groups), names if only is None else list(only))
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        reading = reading or Reading()
        reading.total = file.metadata.num_rows
        for reading.done, values in enumerate(rows, start=before + 1):
            yield Row(values, f"{where}, row {reading.done}")


def parquet_row_groups(path: Path) -> list[int]:
    with _opened_parquet(path, str(path)) as file:
        return [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]


@contextmanager
def _opened_parquet(source: Path | BinaryIO, where: str) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{where}: reading .parquet needs pyarrow: pip install 'varitext[parquet]'") from None
    try:
        yield parquet.ParquetFile(source)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{where} is not a readable .parquet file ({first_line(error)})") from None


# Bytes and lines


@contextmanager
def hashed_content(
    path: Path, sources: list[SourceFile], reading: Reading | None = None
) -> Iterator[io.BufferedReader]:
    """The uncompressed content of a file to read once; its hash is added to `sources` at the end."""
    with open_content(path) as stream:
        content = _Hashed(stream, reading or Reading())
        content.reading.total = path.stat().st_size
        yield io.BufferedReader(content)
        sources.append(SourceFile(path.name, content.digest.hexdigest()))


class _Hashed(io.RawIOBase):
    """A stream that hashes what is read from it."""

    def __init__(self, stream: io.BufferedIOBase, reading: Reading) -> None:
        self._stream, self.reading, self.digest = stream, reading, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        place = memoryview(buffer)
        content = self._stream.read(len(place))
        place[: len(content)] = content
        self.digest.update(content)
        if self.reading.total:  # not a pipe, which has neither size nor place
            self.reading.done = getattr(self._stream, "fileobj", self._stream).tell()  # of a .gz, as it is stored
        return len(content)


def decode(content: bytes, where: str, encoding: str | None = None) -> str:
    return "".join(text_lines(io.BufferedReader(io.BytesIO(content)), where, encoding))


def text_lines(stream: io.BufferedReader, where: str, encoding: str | None = None) -> Iterator[str]:
    r"""The lines of a stream, each with its end (\n): UTF-8, with or without a byte order mark, UTF-16 with one, or the
    encoding that the user names."""
    if (name := _encoding_name(stream.peek(2)[:2], encoding)) != "utf-8-sig":
        yield from _wrapped_lines(stream, where, name, encoding)
        return
    before = 0
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise _wrong_encoding(where, number, before + error.start, None) from None
        before += len(line)


def _wrapped_lines(stream: io.BufferedReader, where: str, name: str, encoding: str | None) -> Iterator[str]:
    number = 1
    try:
        for line in io.TextIOWrapper(stream, encoding=name, newline="\n"):
            yield line
            number += 1
    except UnicodeError as error:
        byte = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise _wrong_encoding(where, number, byte, encoding) from None


def _encoding_name(start: bytes, encoding: str | None) -> str:
    if encoding is None:
        return "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise InputError(f"unknown encoding {encoding!r}. Common ones: {ENCODINGS}") from None
    if not found._is_text_encoding:
        raise InputError(f"{encoding!r} is not a text encoding. Common ones: {ENCODINGS}")
    return "utf-8-sig" if found.name == "utf-8" else encoding


def _wrong_encoding(where: str, line: int, byte: int, encoding: str | None) -> InputError:
    hint = f"Name the encoding of the file with --encoding (encoding=): {ENCODINGS}"
    return InputError(f"{where}, line {line}: byte {byte} is not {encoding or 'UTF-8'} text. {hint}")
