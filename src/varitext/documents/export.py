"""Document vectors as files for other tools: .npy, .csv or .parquet."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from varitext.corpora.sharded_counts import Counts
from varitext.documents.model import DocumentModel
from varitext.documents.posterior import mean_blocks
from varitext.errors import InputError
from varitext.files import atomic_file, check_can_write

ROW_GROUP = 1 << 16
FORMATS = (".npy", ".csv", ".parquet")


def check_vector_file(path: Path) -> None:
    """Refuse a path that vectors cannot be written to before any work is done."""
    if path.suffix not in FORMATS:
        raise InputError(
            f"{path}: vectors are written as {', '.join(FORMATS)}, not {path.suffix or 'a file without ending'}"
        )
    if path.exists():
        raise InputError(f"{path} exists already: name another file, or remove it first")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'varitext[parquet]'")
    check_can_write(path)


def vector_tables(model: DocumentModel, counts: Counts, with_std: bool, refine: bool = True) -> Iterator[np.ndarray]:
    """Yield the vectors of documents, followed by standard deviations if `with_std`, a block of rows at a time."""
    if with_std:
        return (np.hstack(block) for block in model.posterior_blocks(counts, refine=refine))
    return mean_blocks(model.fitted_.network, model.count(counts), refine=refine, threads=model.threads)


def write_vectors(path: Path, tables: Iterable[np.ndarray], width: int, with_std: bool) -> None:
    """Write one row per document; columns mean_0.. and, if `with_std`, std_0... Tables are written as they arrive."""
    names = [f"{part}_{k}" for part in (("mean", "std") if with_std else ("mean",)) for k in range(width)]
    with atomic_file(path) as temporary:
        if path.suffix == ".npy":
            _write_npy(temporary, tables, len(names))
        elif path.suffix == ".csv":
            _write_csv(temporary, tables, names)
        else:
            _write_parquet(temporary, tables, names)


def _write_npy(path: Path, tables: Iterable[np.ndarray], width: int) -> None:
    """The header is written again at the end, when the number of rows is known; numpy leaves room for it."""
    descr, rows = np.lib.format.dtype_to_descr(np.dtype(np.float32)), 0
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": (0, width)})
        for table in tables:
            stream.write(np.ascontiguousarray(table, np.float32).data)
            rows += len(table)
        stream.seek(0)
        np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": (rows, width)})


def _write_csv(path: Path, tables: Iterable[np.ndarray], names: list[str]) -> None:
    with path.open("w", encoding="ascii") as stream:
        stream.write(",".join(names) + "\n")
        for table in tables:
            # nine digits distinguish all float32 values: every format holds the same values
            np.savetxt(stream, table, delimiter=",", fmt="%.9g")


def _write_parquet(path: Path, tables: Iterable[np.ndarray], names: list[str]) -> None:
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for table in _in_groups(tables):
            writer.write_table(pyarrow.table(list(np.asfortranarray(table).T), schema=schema))


def _in_groups(tables: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Join blocks into the row groups of a Parquet file."""
    group: list[np.ndarray] = []
    for table in tables:
        group.append(table)
        if sum(map(len, group)) >= ROW_GROUP:
            yield np.concatenate(group)
            group = []
    if group:
        yield np.concatenate(group)
