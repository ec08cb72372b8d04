"""Results that are older than the code they rest on."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from varitext.files import read_json
from varitext.runtime.provenance import changed_since

# the rooms that decide what is measured; reports, commands and the service only show it
RESTS_ON = (
    *("text", "corpora", "runtime", "batches", "latent", "layers", "training", "models", "evaluation"),
    *("documents", "answers", "experiments"),
)


class Stale(NamedTuple):
    path: Path
    reason: str


def stale_results(results: Path) -> Iterator[Stale]:
    """The files whose code is not known, or has changed since they were written."""
    for path in sorted(results.rglob("*.json")):
        record = read_json(path)
        commit = record.get("commit") if isinstance(record, dict) else None
        if reason := _reason(commit):
            yield Stale(path, reason)


@cache  # many files were written at one commit
def _reason(commit: str | None) -> str:
    if commit is None:
        return "does not say at which commit it was measured"
    changed = changed_since(commit, list(RESTS_ON))
    if changed is None:
        return f"was measured at {commit[:10]}, which this repository does not have"
    return f"{len(changed)} files have changed since {commit[:10]}: {changed[0]}, ..." if changed else ""
