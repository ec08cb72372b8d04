"""Tables of results as files for other tools: .csv, .json or .parquet."""

import csv
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from varitext.cli.checks import check_new_file
from varitext.errors import InputError
from varitext.files import atomic_file, write_text

FORMATS = (".csv", ".json", ".parquet")


def check_table_file(path: Path) -> None:
    """Say so before the work, not after, if a table cannot be written to `path`."""
    if path.suffix not in FORMATS:
        kind = path.suffix or "a file without ending"
        raise InputError(f"{path}: tables are written as {', '.join(FORMATS)}, not {kind}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'varitext[parquet]'")
    check_new_file(path)


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """All rows have the same names; lists are one text in a .csv."""
    if path.suffix == ".json":
        return write_text(path, json.dumps(list(rows), indent=1, ensure_ascii=False, default=str) + "\n")
    with atomic_file(path) as temporary:
        if path.suffix == ".parquet":
            _write_parquet(temporary, rows)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(rows[0] if rows else ())
                writer.writerows([_cell(value) for value in row.values()] for row in rows)


def _write_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    import pyarrow
    from pyarrow import parquet

    try:
        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    except pyarrow.ArrowException as error:
        raise InputError(f"a column has values of several kinds ({error}): write a .csv or .json") from None


def _cell(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        plain = all(isinstance(one, (str, int, float)) for one in value)
        return " ".join(map(str, value)) if plain else json.dumps(value, ensure_ascii=False)
    return "" if value is None else value
