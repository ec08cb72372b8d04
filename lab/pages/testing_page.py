"""The tables of docs/results/testing.md, from results/mutations.json, which `benchmarks/mutations.py` writes."""

import json
import math
from collections import Counter
from pathlib import Path

CAUGHT = ("killed", "timeout")
LEFT_OUT = ("impossible", "equivalent")


def mutation_tables(root: Path) -> dict[str, str]:
    found = json.loads((root / "results" / "mutations.json").read_text())
    fresh = max((key for key in found if key.startswith("seed ")), key=lambda key: int(key.split()[1]))
    return {"mutants": _rooms(found[fresh])}


def _counts(sample: dict, room: str) -> Counter:
    return Counter(one["outcome"] for one in sample["mutants"].values() if one["room"] == room)


def _share(counts: Counter, left_out: tuple[str, ...] = LEFT_OUT) -> tuple[float, int]:
    """Killed out of those that could be, and how many these are."""
    able = sum(counts.values()) - sum(counts[name] for name in left_out)
    return sum(counts[name] for name in CAUGHT) / able, able


def _rooms(sample: dict) -> str:
    rows = ["| room | mutants in all | sampled | killed | timeout | survived | no test | equivalent | share killed |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    for room, size in sample["population"].items():
        counts = _counts(sample, room)
        tried = sum(counts.values()) - counts["impossible"]
        cells = [counts[name] for name in ("killed", "timeout", "survived", "no test", "equivalent")]
        rows.append(f"| `{room}` | {size:,} | {tried} | {' | '.join(map(str, cells))} | {_percent(*_share(counts))} |")
    rows.append(f"| all | {sum(sample['population'].values()):,} | | | | | | | {_together(sample)} |")
    rows.append(f"| all, with equivalent ones as survivors | | | | | | | | {_together(sample, LEFT_OUT[:1])} |")
    return "\n".join(rows)


def _together(sample: dict, left_out: tuple[str, ...] = LEFT_OUT) -> str:
    """All rooms, weighted by how many mutants each has."""
    total = sum(sample["population"].values())
    shares = [(*_share(_counts(sample, room), left_out), size / total) for room, size in sample["population"].items()]
    mean = sum(share * weight for share, _, weight in shares)
    error = math.sqrt(sum(weight**2 * share * (1 - share) / able for share, able, weight in shares))
    low, high = 100 * (mean - 1.96 * error), 100 * min(1.0, mean + 1.96 * error)
    return f"**{100 * mean:.0f} %** ({low:.0f} to {high:.0f})"


def _percent(share: float, of: int) -> str:
    """With Wilson's interval of 95 %."""
    middle, spread = share + 1.92 / of, 1.96 * math.sqrt(share * (1 - share) / of + 0.96 / of**2)
    low, high = ((middle + sign * spread) / (1 + 3.84 / of) for sign in (-1, 1))
    return f"{100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
