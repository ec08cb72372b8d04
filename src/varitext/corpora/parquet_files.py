"""Parquet files: their texts, some rows at a time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from varitext.corpora.documents import choose_column
from varitext.errors import InputError

ROWS = 1000  # at a time


class Batch(NamedTuple):
    """Some rows; the texts are one of the columns."""

    text_column: str
    columns: dict[str, list[Any]]

    @property
    def texts(self) -> list[str]:
        return self.columns[self.text_column]


@contextmanager
def _opened(source: Any, where: str) -> Iterator[Any]:
    """`source` is a path or an open file."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{where}: reading .parquet needs pyarrow: pip install 'varitext[parquet]'") from None
    try:
        yield parquet.ParquetFile(source)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{where} is not a parquet file that can be read ({str(error).splitlines()[0]})") from None


def parquet_columns(source: Any, where: str) -> list[str]:
    """The columns that hold one value a row, and no lists or structures."""
    with _opened(source, where) as file:
        from pyarrow import types

        return [field.name for field in file.schema_arrow if not types.is_nested(field.type)]


def parquet_batches(
    source: Any, where: str, text_column: str | None, row_groups: range | None = None, keep: Sequence[str] = ()
) -> Iterator[Batch]:
    """The texts with the columns to keep beside them; of all `row_groups` if they are left out."""
    with _opened(source, where) as file:
        column = choose_column(file.schema_arrow.names, lambda name: _is_text(file, name), text_column, where)
        if not _is_text(file, column):
            raise InputError(f"{where}: the column {column!r} is {file.schema_arrow.field(column).type}, not text")
        row_groups = range(file.num_row_groups) if row_groups is None else row_groups
        before = sum(file.metadata.row_group(number).num_rows for number in range(row_groups.start))
        for batch in file.iter_batches(ROWS, list(row_groups), list(dict.fromkeys((column, *keep)))):
            table = batch.to_pydict()
            if None in table[column]:
                raise InputError(f"{where}, row {before + table[column].index(None) + 1}: no text in {column!r}")
            before += batch.num_rows
            yield Batch(column, table)


def parquet_rows(source: Any, where: str) -> Iterator[dict[str, Any]]:
    """Every row with all its columns that hold one value."""
    names = parquet_columns(source, where)
    with _opened(source, where) as file:
        for batch in file.iter_batches(ROWS, columns=names):
            yield from batch.to_pylist()


def parquet_row_groups(source: Any, where: str) -> list[int]:
    """How many rows each row group has."""
    with _opened(source, where) as file:
        return [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]


def _is_text(file: Any, name: str) -> bool:
    from pyarrow import types

    kind = file.schema_arrow.field(name).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))
