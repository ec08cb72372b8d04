"""The generated parts of docs/benchmark.md, from results/benchmark/."""

from pathlib import Path

from varitext.benchmarking.growth import curves, read_growth
from varitext.benchmarking.growth_page import growth_table, softmax_table
from varitext.benchmarking.running import read_records
from varitext.benchmarking.tables import comparison, targets_list

NOT_YET = "Not measured yet."


def benchmark_parts(root: Path) -> dict[str, str]:
    """By the name of the mark on the page."""
    folder = root / "results" / "benchmark"
    records, points = read_records(folder), read_growth(folder / "growth")
    parts = dict.fromkeys(("peers", "growth", "softmax"), NOT_YET)
    if "varitext" in records:
        parts["peers"] = f"{comparison(records)}\n\n{targets_list(records)}"
    if points:
        figure = "![Cost of training against documents, words and latent size](../results/benchmark/growth/growth.svg)"
        parts |= {"growth": f"{growth_table(curves(points))}\n\n{figure}", "softmax": softmax_table(points)}
    return parts
