"""The tables of docs/explanation/evaluation.md, from results/coherence.json."""

import json
from pathlib import Path

from varitext.reproduce.engine import markdown_table

TITLES = {"npmi": "NPMI", "c_v": "C_V"}


def coherence_blocks(root: Path) -> dict[str, str]:
    found = json.loads((root / "results" / "coherence.json").read_text())
    return {"windows": _windows(found), "gensim": _gensim(found)}


def _windows(found: dict) -> str:
    rows = [
        [TITLES[measure], *(f"{value:.3f}" for value in values.values())]
        for measure, values in found["windows"].items()
    ]
    rules = next(iter(found["windows"].values()))
    return markdown_table([f"{found['topics']} topics of NVDM, raw 20 Newsgroups articles", *rules], rows)


def _gensim(found: dict) -> str:
    head = ["", "gensim, one process, seconds", "here, seconds", "times as fast", "largest difference of a topic"]
    rows = [
        [
            TITLES[row["measure"]],
            f"{row['gensim_seconds']:.0f}",
            f"{row['varitext_seconds']:.1f}",
            f"{row['times_faster']:.0f}",
            f"{row['largest_difference']:.0e}",
        ]
        for row in found["rows"]
    ]
    return markdown_table(head, rows)
