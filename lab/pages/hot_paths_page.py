"""Where the time of a document model goes, from results/hot_paths.json."""

import json
from pathlib import Path

from varitext.reproduce.engine import markdown_table

PATHS = {"training": "a step of training", "transform": "`transform`"}


def hot_paths(root: Path, model: str) -> str:
    found = json.loads((root / "results" / "hot_paths.json").read_text())[model]
    parts = list(dict.fromkeys(part for path in PATHS for part in found[path]["shares"]))
    rows = [[part, *(_share(found[path]["shares"].get(part)) for path in PATHS)] for part in parts]
    rest = ["the rest", *(_share(1 - sum(found[path]["shares"].values())) for path in PATHS)]
    table = markdown_table(["part", *PATHS.values()], [*rows, rest])
    speeds = (
        f"{found[path]['documents_per_cpu_second']:,.0f} documents a CPU second in {said}, "
        f"{100 * found[path]['share_of_multiply_limit']:.0f} % of what its matrix products allow"
        for path, said in (("training", "training"), ("transform", "`transform`"))
    )
    return f"{table}\n\nOne thread: {'; '.join(speeds)}."


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
