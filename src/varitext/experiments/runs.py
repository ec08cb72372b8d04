"""What all experiments share: runs that each leave one small JSON file, and tables made from those files.

A run is done once: a file that is there already is not measured again, so that hours of work can be interrupted, and
two processes can share an experiment by its seeds.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from varitext.errors import InputError
from varitext.files import read_json, write_text
from varitext.runtime.provenance import provenance

Record = dict[str, Any]  # a file: settings, result, and what it was measured with


@dataclass(frozen=True)
class Plan:
    """What `varitext reproduce` was asked for."""

    quick: bool = False  # one seed and little training: shows that it runs, not what it measures
    seeds: tuple[int, ...] | None = None  # None for those that the experiment has
    data_dir: Path | None = None
    models: Path | None = None  # where fitted models are kept, for experiments that look at the same ones
    threads: int | None = None
    again: Callable[[Path], bool] = lambda path: False  # whether a run whose file is there is measured once more

    def seeds_or(self, all_of_them: int) -> tuple[int, ...]:
        return self.seeds or ((0,) if self.quick else tuple(range(all_of_them)))


@dataclass(frozen=True)
class Run:
    settings: Mapping[str, object]  # JSON: what tells it from the other runs of its experiment
    measure: Callable[[], dict[str, Any]]
    missing: str | None = None  # what this machine lacks for it, and how to get that: the run is left out

    @property
    def name(self) -> str:
        """Of its file."""
        return "-".join(str(value) for value in self.settings.values()).replace(" ", "_").replace("/", "_") or "all"


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str  # as it is typed
    about: str  # one line
    runs: Callable[[Plan], Iterator[Run]]
    table: Callable[[list[Record]], str]  # Markdown
    figure: Callable[[list[Record]], str] | None = None  # SVG
    page: Callable[[list[Record]], str] | None = None  # the same to look into: HTML, whole in itself

    def folder(self, results: Path, quick: bool) -> Path:
        return results / (f"{self.name}-quick" if quick else self.name)


def reproduce(experiment: Experiment, plan: Plan, results: Path, say: Callable[[str], None]) -> str:
    """Measure what is not measured yet; the table of all that is."""
    folder, missing = experiment.folder(results, plan.quick), set()
    for run in experiment.runs(plan):
        path = folder / f"{run.name}.json"
        if path.exists() and not plan.again(path):
            say(f"{experiment.name}: {run.name} is there already")
            continue
        if run.missing:
            missing.add(run.missing)
            continue
        say(f"{experiment.name}: {run.name}")
        started = time.monotonic()
        result = run.measure()
        folder.mkdir(parents=True, exist_ok=True)
        record = _record(experiment, run, result, time.monotonic() - started)
        if path.exists():
            say(f"{experiment.name}: {run.name}: {moved(read_json(path)['result'], result)}")
        write_text(path, json.dumps(record) + "\n")  # one line: values per question would make it thousands
    for reason in sorted(missing):
        say(f"{experiment.name}: {reason}")
    records = read_records(experiment, results, plan.quick)
    for draw, ending in ((experiment.figure, "svg"), (experiment.page, "html")):
        if draw:
            drawn = folder / f"{experiment.name}.{ending}"
            write_text(drawn, draw(records))
            say(f"{experiment.name}: drawn in {drawn}")
    return experiment.table(records)


def read_records(experiment: Experiment, results: Path, quick: bool = False) -> list[Record]:
    """All runs that are there, in the order of their files' names."""
    paths = sorted(experiment.folder(results, quick).glob("*.json"))
    if not paths:
        raise InputError(f"{experiment.folder(results, quick)} has no results: varitext reproduce {experiment.name}")
    return [read_json(path) for path in paths]


def _record(experiment: Experiment, run: Run, result: dict[str, Any], seconds: float) -> Record:
    return {
        "experiment": experiment.name,
        "settings": run.settings,
        "result": result,
        "seconds": round(seconds, 1),
        "threads": torch.get_num_threads(),
        **provenance(),
    }


def moved(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Every figure of a run that was measured again, beside what it was; those of single questions are left out."""
    if before == now:
        return "nothing moved"
    old, new = dict(_figures(before)), dict(_figures(now))
    both = [f"{name} {old[name]:.5g} -> {new[name]:.5g}" for name in new if name in old]
    return "; ".join(both) or "no figure in common with before"


def _figures(result: dict[str, Any], within: str = "") -> Iterator[tuple[str, float]]:
    for name, value in result.items():
        if isinstance(value, dict):
            yield from _figures(value, f"{within}{name} ")
        elif isinstance(value, float):
            yield f"{within}{name}", value


def rounded(values: Any, digits: int = 4) -> list[float]:
    """Numbers as short JSON."""
    return [round(float(value), digits) for value in values]


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
