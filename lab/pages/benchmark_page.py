"""The generated parts of docs/results/benchmark.md, from results/benchmark/ and results/peer_settings.json."""

import json
from pathlib import Path

from lab.benchmark.growth import curves, read_growth
from lab.benchmark.growth_page import growth_table, softmax_table
from lab.benchmark.running import read_records
from lab.benchmark.tables import comparison
from varitext.reproduce.engine import markdown_table

NOT_YET = "Not measured yet."


def benchmark_parts(root: Path) -> dict[str, str]:
    """By the name of the mark on the page."""
    folder = root / "results" / "benchmark"
    records, points = read_records(folder), read_growth(folder / "growth")
    parts = dict.fromkeys(("peers", "growth", "softmax"), NOT_YET)
    if "varitext" in records:
        parts["peers"] = comparison(records)
    if points:
        parts |= {"growth": growth_table(curves(points)), "softmax": softmax_table(points)}
    return parts | {"settings": _settings(json.loads((root / "results" / "peer_settings.json").read_text()))}


def _settings(found: dict[str, dict]) -> str:
    rows = [[name, f"{one['perplexity']:,.0f}"] for name, one in found.items()]
    return markdown_table(["", "perplexity, held-out training documents"], rows)
