"""What the commands print and write: results on standard output, everything else on standard error, tables to files."""

import csv
import io
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from varitext.errors import InputError, printable
from varitext.files import atomic_file, check_can_write

TABLE_FORMATS = (".csv", ".json", ".parquet")
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
LINE_EVERY = 5.0  # seconds
MANY_DOCUMENTS = 5000  # of which the steps of a command are logged


class PrintableOutput(io.TextIOWrapper):
    """A standard stream whose every text passes through `printable`; `unescaped` is for the progress bar."""

    def __init__(self, stream: io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a word that the terminal cannot show must not end a run
        super().__init__(stream.buffer, stream.encoding, stream.errors, None, stream.line_buffering, True)
        self.unescaped = stream

    def write(self, text: str) -> int:
        super().write(printable(text))
        return len(text)


@contextmanager
def printable_output() -> Iterator[None]:
    """Inside the block, no text that any command prints can command the terminal."""
    before = sys.stdout, sys.stderr
    opened = [PrintableOutput(stream) if isinstance(stream, io.TextIOWrapper) else stream for stream in before]
    sys.stdout, sys.stderr = opened
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in opened:
            if isinstance(stream, PrintableOutput):
                stream.flush()
                stream.detach()  # or it would close what it wrote to


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")))


def log(message: str) -> None:
    print(printable(message), file=sys.stderr)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


class CountedLines:
    """Logs the number of documents read, or whatever is done to them, every few seconds, with the share of the file."""

    def __init__(self, done: str = "read") -> None:
        self._done, self._started = done, time.monotonic()
        self._last = self._started

    def __call__(self, documents: int, share: float | None = None) -> None:
        if time.monotonic() - self._last >= LINE_EVERY:
            self._last = time.monotonic()
            log(f"{documents} documents {self._done}" + ("" if share is None else f", {share:.0%} of the file"))

    def rate(self, documents: int) -> str:
        return f"{documents / max(time.monotonic() - self._started, 1e-3):,.0f} documents per second"


def first_words(text: str, length: int = 100) -> str:
    line = " ".join(text[: 5 * length].split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " ..."


def with_samples(n_samples: int) -> str:
    """Empty for one sample: a model without a latent variable has no more."""
    return f", {n_samples} samples" if n_samples > 1 else ""


# Files


def check_new_file(path: Path) -> None:
    if path.exists():
        raise InputError(f"{path} exists already: name another file, or remove it first")
    check_can_write(path)


def check_table_file(path: Path) -> None:
    """Refuse a file that a table cannot be written to, before the work starts."""
    if path.suffix not in TABLE_FORMATS:
        kind = path.suffix or "a file without a suffix"
        raise InputError(f"{path}: tables are written as {', '.join(TABLE_FORMATS)}, not {kind}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'varitext[parquet]'")
    check_new_file(path)


def write_table(path: Path, rows: Iterable[dict[str, Any]], raw_csv: bool = False) -> None:
    """All rows have the same names; a list becomes one text in a .csv, where formulas are escaped unless `raw_csv`.

    Only a .parquet holds all rows in memory.
    """
    with atomic_file(path) as temporary:
        if path.suffix == ".parquet":
            return _write_parquet(temporary, rows)
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            if path.suffix == ".json":
                texts = (json.dumps(row, indent=1, ensure_ascii=False, default=str) for row in rows)
                stream.writelines(chain(["["], (f"{',' * bool(n)}\n{text}" for n, text in enumerate(texts)), ["\n]\n"]))
                return
            rows = iter(rows)
            first = next(rows, {})
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([csv_cell(name, raw_csv) for name in first])
            every = chain([first] if first else (), rows)
            writer.writerows([csv_cell(value, raw_csv) for value in row.values()] for row in every)


def _write_parquet(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    import pyarrow
    from pyarrow import parquet

    try:
        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    except pyarrow.ArrowException as error:
        raise InputError(f"A column mixes types ({error}): write a .csv or .json instead") from None


def csv_cell(value: Any, raw: bool = False) -> Any:
    """A value as a cell. Text that a spreadsheet would read as a formula gets an apostrophe (OWASP) unless `raw`."""
    if isinstance(value, (list, tuple)):
        plain = all(isinstance(one, (str, int, float)) for one in value)
        value = " ".join(map(str, value)) if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(FORMULA_SIGNS) and not raw and not NUMBER.fullmatch(value):
        return f"'{value}"
    return "" if value is None else value
