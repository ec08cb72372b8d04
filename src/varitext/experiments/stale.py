"""Results that are older than the code they rest on."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from varitext.experiments import EXPERIMENTS
from varitext.files import read_json
from varitext.models.answers import ANSWER_MODELS
from varitext.models.documents import DOCUMENT_MODELS
from varitext.runtime.import_graph import module_files, needed_by
from varitext.runtime.provenance import changed_since

# for results of no experiment: the rooms that decide what is measured; reports, commands and the service only show it
ROOMS = (
    *("text", "corpora", "runtime", "batches", "latent", "layers", "training", "models", "evaluation"),
    *("documents", "answers", "experiments"),
)
HOMES = {name: entry.home.partition(":")[0] for name, entry in (*DOCUMENT_MODELS.items(), *ANSWER_MODELS.items())}


class Stale(NamedTuple):
    path: Path
    reason: str


def stale_results(results: Path) -> Iterator[Stale]:
    """The files whose code is not known, or has changed since they were written."""
    for path in sorted(results.rglob("*.json")):
        record = read_json(path)
        known = record if isinstance(record, dict) else {}
        if reason := _reason(known.get("commit"), rests_on(known)):
            yield Stale(path, reason)


def rests_on(record: dict[str, Any]) -> tuple[str, ...]:
    """The files, or rooms, that a result rests on: what its experiment imports, and its model; registries name models
    without importing them."""
    if record.get("experiment") not in EXPERIMENTS:
        return ROOMS
    return _files(EXPERIMENTS[record["experiment"]], record["settings"].get("model"))


@cache
def _files(experiment: str, model: str | None) -> tuple[str, ...]:
    own = f"varitext.experiments.{experiment}"
    models = [HOMES[model]] if model in HOMES else [*_models_beside(needed_by([own]))]
    return tuple(sorted(str(module_files()[module]) for module in {own, *models, *needed_by([own, *models])}))


def _models_beside(needed: set[str]) -> Iterator[str]:
    """All models of the sides that are needed, for results that do not say which one they are of."""
    yield from (home for home in sorted(set(HOMES.values())) if home.rpartition(".")[0] in needed)


@cache  # many files were written at one commit
def _reason(commit: str | None, paths: tuple[str, ...]) -> str:
    if commit is None:
        return "does not say at which commit it was measured"
    changed = changed_since(commit, list(paths))
    if changed is None:
        return f"was measured at {commit[:10]}, which this repository does not have"
    return f"{len(changed)} files have changed since {commit[:10]}: {', '.join(changed[:3])}" if changed else ""
