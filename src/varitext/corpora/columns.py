"""All columns of a user's file, as they are: to keep beside what a model says of each document, or to group by."""

import io
import json
from pathlib import Path
from typing import Any

from varitext.corpora.own_files import folder_or_file
from varitext.corpora.sources import read_bytes
from varitext.corpora.text_files import csv_rows, decode, suffix_of
from varitext.errors import InputError

Columns = dict[str, list[Any]]


def columns_of(path: Path, part: str = "train") -> Columns:
    """By name; none for a kind of file that has no columns."""
    path, _ = folder_or_file(path, part)
    if path.is_dir():
        return {}
    reader = {".csv": _of_csv, ".jsonl": _of_jsonl, ".parquet": _of_parquet}.get(suffix_of(path))
    return reader(read_bytes(path), str(path)) if reader else {}


def column_named(columns: Columns, name: str, where: str) -> list[Any]:
    if name not in columns:
        raise InputError(f"{where} has no column {name!r}; it has {', '.join(columns) or 'none'}")
    return columns[name]


def _of_csv(content: bytes, where: str) -> Columns:
    header, *rows = csv_rows(io.StringIO(decode(content, where), newline=""), where)
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}


def _of_jsonl(content: bytes, where: str) -> Columns:
    rows = [json.loads(line) for line in decode(content, where).splitlines() if line.strip()]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _of_parquet(content: bytes, where: str) -> Columns:
    from pyarrow import parquet

    columns: Columns = parquet.read_table(io.BytesIO(content)).to_pydict()
    return columns
