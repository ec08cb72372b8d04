"""The tables of docs/testing.md, from results/mutations.json, which `benchmarks/mutations.py` writes."""

import json
import math
from collections import Counter
from pathlib import Path

CAUGHT = ("killed", "timeout")


def mutation_tables(root: Path) -> dict[str, str]:
    found = json.loads((root / "results" / "mutations.json").read_text())
    fresh = found[max((key for key in found if key.startswith("seed ")), key=lambda key: int(key.split()[1]))]
    return {"rooms": _rooms(fresh), "survivors": _survivors(fresh), "named": _named(found["named"])}


def _rooms(sample: dict) -> str:
    """Killed out of those that could be; all rooms weighted by how many mutants each has."""
    rows = ["| room | mutants in all | sampled | killed | timeout | survived | no test | equivalent | share killed |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    shares, total = {}, sum(sample["population"].values())
    for room, size in sample["population"].items():
        counts = Counter(one["outcome"] for one in sample["mutants"].values() if one["room"] == room)
        tried = sum(counts.values()) - counts["impossible"]
        able = tried - counts["equivalent"]
        shares[room] = (sum(counts[name] for name in CAUGHT) / able, able, size / total)
        cells = [counts[name] for name in ("killed", "timeout", "survived", "no test", "equivalent")]
        rows.append(
            f"| `{room}` | {size:,} | {tried} | {' | '.join(map(str, cells))} | {_percent(*shares[room][:2])} |"
        )
    mean = sum(share * weight for share, _, weight in shares.values())
    error = math.sqrt(sum(weight**2 * share * (1 - share) / able for share, able, weight in shares.values()))
    low, high = 100 * (mean - 1.96 * error), 100 * min(1.0, mean + 1.96 * error)
    rows.append(f"| all | {total:,} | | | | | | | **{100 * mean:.0f} %** ({low:.0f} to {high:.0f}) |")
    return "\n".join(rows)


def _percent(share: float, of: int) -> str:
    """With Wilson's interval of 95 %."""
    middle, spread = share + 1.92 / of, 1.96 * math.sqrt(share * (1 - share) / of + 0.96 / of**2)
    low, high = ((middle + sign * spread) / (1 + 3.84 / of) for sign in (-1, 1))
    return f"{100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def _survivors(sample: dict) -> str:
    lines = [
        f"- `{_short(name)}`" for name, one in sample["mutants"].items() if one["outcome"] in ("survived", "no test")
    ]
    return "\n".join(lines) or "None."


def _short(name: str) -> str:
    """On one line, without the backquotes that would end the code."""
    plain = " ".join(name.replace("`", "'").split())
    return plain if len(plain) < 180 else plain[:177] + "..."


def _named(record: dict) -> str:
    rows = ["| fault | in | | test that fails |", "|---|---|---|---|"]
    for name, one in record["mutants"].items():
        rows.append(f"| {name} | `{one['path']}` | {one['outcome']} | `{one['killed_by'].split('::')[-1]}` |")
    return "\n".join(rows)
