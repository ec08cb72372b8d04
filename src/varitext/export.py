"""Document vectors as files for other tools: .npy, .csv or .parquet."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from varitext.errors import InputError
from varitext.files import atomic_file, check_can_write

FORMATS = (".npy", ".csv", ".parquet")


def check_vector_file(path: Path) -> None:
    """Say so before an hour of work, not after, if vectors cannot be written to `path`."""
    if path.suffix not in FORMATS:
        raise InputError(
            f"{path}: vectors are written as {', '.join(FORMATS)}, not {path.suffix or 'a file without ending'}"
        )
    if path.exists():
        raise InputError(f"{path} exists already: name another file, or remove it first")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'varitext[parquet]'")
    check_can_write(path)


def write_vectors(path: Path, mean: np.ndarray, std: np.ndarray | None) -> None:
    """Rows are documents in their order; columns mean_0.. and, if given, std_0.. after them."""
    table = mean if std is None else np.hstack([mean, std])
    names = [f"mean_{k}" for k in range(mean.shape[1])]
    names += [] if std is None else [f"std_{k}" for k in range(std.shape[1])]
    with atomic_file(path) as temporary:
        if path.suffix == ".npy":
            _write_npy(temporary, table)
        elif path.suffix == ".csv":
            # nine digits tell every float32 from every other: all formats hold the same values
            np.savetxt(temporary, table, delimiter=",", fmt="%.9g", header=",".join(names), comments="")
        else:
            _write_parquet(temporary, table, names)


def _write_npy(path: Path, table: np.ndarray) -> None:
    """Like np.save, which does not notice when the last few kilobytes do not fit on the disk."""
    table = np.ascontiguousarray(table)
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(table))
        stream.write(table.data)


def _write_parquet(path: Path, table: np.ndarray, names: list[str]) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({name: table[:, k] for k, name in enumerate(names)}), path)
