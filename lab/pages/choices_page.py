"""Ablations of the document models, from results/document_choices.json."""

import json
import statistics
from pathlib import Path

from varitext.reproduce.engine import markdown_table

AS_IT_IS = {"nvdm_dcm": "nvdm_dcm, as it is", "nvdm": "nvdm, as it is: refined, whole covariance of q"}


def choices(root: Path, model: str) -> str:
    found = json.loads((root / "results" / "document_choices.json").read_text())
    start = AS_IT_IS[model]
    named = [name for name in found if name.startswith("nvdm, ") == (model == "nvdm")]
    rows = [[_said(name), _values(found[name]), "" if name == start else _change(found, start, name)] for name in named]
    return markdown_table(["", "perplexity", "change"], rows)


def _said(name: str) -> str:
    said = name.removeprefix("nvdm_dcm, ").removeprefix("nvdm, ")
    return f"**{said}**" if name in AS_IT_IS.values() else said


def _values(row: dict[str, dict]) -> str:
    return " / ".join(f"{value:.1f}" for value in sorted(one["perplexity"] for one in row.values()))


def _change(found: dict[str, dict], start: str, name: str) -> str:
    """Mean over seeds, of pairs of the same seed."""
    pairs = [found[name][seed]["perplexity"] - found[start][seed]["perplexity"] for seed in found[name]]
    return f"{statistics.mean(pairs):+.1f}"
