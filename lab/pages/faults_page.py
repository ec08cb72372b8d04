"""The tables of docs/faults.md, from results/faults.json, which `benchmarks/faults.py` writes."""

import json
from pathlib import Path


def fault_tables(root: Path) -> dict[str, str]:
    """A table for every kind of fault that was measured."""
    found = json.loads((root / "results" / "faults.json").read_text())
    return {kind: _table(parts) for kind, parts in found.items()}


def _table(parts: dict[str, dict]) -> str:
    rows = ["| | cases | what came of them | faults |", "|---|---|---|---|"]
    for name, part in sorted(parts.items()):
        outcomes = {outcome: number for outcome, number in part["outcomes"].items() if outcome != "fault"}
        told = "; ".join(f"{number:,} {outcome}" for outcome, number in sorted(outcomes.items()))
        rows.append(f"| {name} | {part['cases']:,} | {told} | {part['outcomes'].get('fault', 0)} |")
    return "\n".join(rows)
