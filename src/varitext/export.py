"""Document vectors as files for other tools: .npy, .csv or .parquet."""

from pathlib import Path

import numpy as np

from varitext.errors import InputError
from varitext.files import atomic_file

FORMATS = (".npy", ".csv", ".parquet")


def check_vector_format(path: Path) -> None:
    """Say so before an hour of work, not after."""
    if path.suffix not in FORMATS:
        raise InputError(
            f"{path}: vectors are written as {', '.join(FORMATS)}, not {path.suffix or 'a file without ending'}"
        )
    if path.exists():
        raise InputError(f"{path} exists already: name another file, or remove it first")


def write_vectors(path: Path, mean: np.ndarray, std: np.ndarray | None) -> None:
    """Rows are documents in their order; columns mean_0.. and, if given, std_0.. after them."""
    table = mean if std is None else np.hstack([mean, std])
    names = [f"mean_{k}" for k in range(mean.shape[1])]
    names += [] if std is None else [f"std_{k}" for k in range(std.shape[1])]
    with atomic_file(path) as temporary:
        if path.suffix == ".npy":
            np.save(temporary, table)
        elif path.suffix == ".csv":
            np.savetxt(temporary, table, delimiter=",", fmt="%.6g", header=",".join(names), comments="")
        else:
            _write_parquet(temporary, table, names)


def _write_parquet(path: Path, table: np.ndarray, names: list[str]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'varitext[parquet]'") from None
    parquet.write_table(pyarrow.table({name: table[:, k] for k, name in enumerate(names)}), path)
