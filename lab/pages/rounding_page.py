"""The tables of docs/explanation/reproducibility.md, from results/rounding.json."""

import json
from pathlib import Path


def rounding_blocks(root: Path) -> dict[str, str]:
    measured = json.loads((root / "results" / "rounding.json").read_text())
    return {"kernels": _kernels(measured["kernels"]), "rounding": _rankers(measured["rows"])}


def _kernels(kernels: dict[str, dict[str, float]]) -> str:
    head = ["| `MKL_CBWR` | CPU time | batches of 63 with other bits |", "|---|---|---|"]
    rows = [f"| {name} | {one['time']:.2f} | {one['batches_with_other_bits']} |" for name, one in kernels.items()]
    return "\n".join(head + rows)


def _rankers(rows: list[dict]) -> str:
    head = [
        "| ranker | moved by | pairs of neighbours | equal | nearer than 1e-5 | than 1e-4 |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join(head + [_ranker(row) for row in rows])


def _ranker(row: dict) -> str:
    name = f"`{row['model']}`" + (", with counts and position" if row["counts and position"] else "")
    near = f"{row['equal']:,} | {row['nearer_than_tolerance']:,} | {row['nearer_than_ten_tolerances']:,}"
    return f"| {name} | {row['largest_move']:.1e} | {row['neighbours']:,} | {near} |"
