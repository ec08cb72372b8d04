"""What was tried against faults, from results/faults.json, which `benchmarks/faults.py` writes."""

import json
from pathlib import Path

KINDS = {
    "kills": "`kill -9` during a fit, then `--resume`",
    "torchrun": "the same under torchrun",
    "folders": "damaged model, checkpoint and shard folders",
    "inputs": "hostile texts, counts and requests",
    "disk": "full, limited and read-only disks",
    "races": "two fits into one folder; a clock that goes backwards",
}


def fault_tables(root: Path) -> dict[str, str]:
    found = json.loads((root / "results" / "faults.json").read_text())
    return {"faults": "\n".join(["| fault | cases | failures |", "|---|---|---|", *map(_row, found, found.values())])}


def _row(kind: str, parts: dict[str, dict]) -> str:
    cases, failures = (
        sum(each) for each in zip(*((p["cases"], p["outcomes"].get("fault", 0)) for p in parts.values()), strict=True)
    )
    return f"| {KINDS[kind]} | {cases:,} | {failures} |"
