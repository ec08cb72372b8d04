"""The engine of every experiment: a grid of runs, one record per run in `results/NAME.jsonl`, and a table of them.

A run that has a record is not repeated, so hours of work can be interrupted, and two processes can share an experiment
by its seeds: the file is read again, under a lock, before each record is added.
"""

import difflib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from varitext.errors import InputError
from varitext.files import locked, read_text, write_text
from varitext.reproduce.provenance import provenance

SAME = 0.005  # relative difference of two figures that count as the same

Record = dict[str, Any]  # a line of the file: settings, result, and the conditions of the measurement


@dataclass(frozen=True)
class Plan:
    """The options of `varitext reproduce`."""

    quick: bool = False  # one seed and little training: shows that everything runs
    seeds: tuple[int, ...] | None = None  # None for the experiment's own
    data_dir: Path | None = None
    models: Path | None = None  # where fitted models are kept, for experiments that share them
    threads: int | None = None
    rerun: Callable[[Record], bool] = lambda record: False  # whether to repeat a run that has this record
    only: str = ""  # run only those whose names contain this

    def seeds_or(self, number: int) -> tuple[int, ...]:
        return self.seeds or ((0,) if self.quick else tuple(range(number)))

    def model_folder(self, *names: object) -> Path | None:
        """Where a fitted model with these names is kept, if any is."""
        return self.models and self.models / "-".join([*map(str, names), *(["quick"] if self.quick else [])])


@dataclass(frozen=True)
class Run:
    settings: Mapping[str, object]  # JSON: what distinguishes it from the other runs of its experiment
    measure: Callable[[], dict[str, Any]]
    missing: str | None = None  # what this machine lacks for it and how to get that; the run is skipped

    @property
    def name(self) -> str:
        return name_of(self.settings)


@dataclass(frozen=True)
class Experiment:
    """One table or figure."""

    name: str  # as typed
    about: str  # one line
    runs: Callable[[Plan], Iterator[Run]]
    table: Callable[[list[Record]], str]  # Markdown
    figure: Callable[[list[Record]], str] | None = None  # SVG

    def file(self, results: Path, quick: bool = False) -> Path:
        return results / f"{self.name}{'-quick' if quick else ''}.jsonl"


def reproduce(experiment: Experiment, plan: Plan, results: Path, log: Callable[[str], None]) -> str:
    """Measure every run that has no record yet; return the table of all records."""
    path, missing = experiment.file(results, plan.quick), set()
    for run in chosen_runs(experiment, plan):
        found = _read(path).get(run.name)
        if found is not None and not plan.rerun(found):
            log(f"{experiment.name}: {run.name} is already measured")
            continue
        if run.missing:
            missing.add(run.missing)
            continue
        log(f"{experiment.name}: {run.name}")
        started = time.monotonic()
        record = {"experiment": experiment.name, "settings": run.settings, "result": run.measure()}
        conditions: Record = {"seconds": round(time.monotonic() - started, 1), "threads": torch.get_num_threads()}
        if found is not None and same_figures(found["result"], record["result"]):
            conditions["confirms"] = found.get("confirms") or found.get("commit")  # the earliest with these figures
        add_record(path, record | conditions | provenance())
    for reason in sorted(missing):
        log(f"{experiment.name}: {reason}")
    records = read_records(experiment, results, plan.quick)
    if experiment.figure:
        write_text(path.with_suffix(".svg"), experiment.figure(records))
        log(f"{experiment.name}: drawn in {path.with_suffix('.svg')}")
    return experiment.table(records)


def chosen_runs(experiment: Experiment, plan: Plan) -> Iterator[Run]:
    """The runs with `plan.only` in their names; an `InputError` at the end if there is none."""
    names = []
    for run in experiment.runs(plan):
        names.append(run.name)
        if plan.only in run.name:
            yield run
    if plan.only and not any(plan.only in name for name in names):
        close = ", ".join(difflib.get_close_matches(plan.only, names, 3, cutoff=0))
        raise InputError(f"{experiment.name} has no run with {plan.only!r} in its name. Closest names: {close}.")


def read_records(experiment: Experiment, results: Path, quick: bool = False) -> list[Record]:
    """All records of an experiment, sorted by the names of their runs."""
    found = _read(experiment.file(results, quick))
    if not found:
        raise InputError(f"{experiment.file(results, quick)} has no results yet: run {experiment.name} first")
    return list(found.values())


def add_record(path: Path, record: Record) -> None:
    """Write the whole file again with this record, in the place of an earlier one with the same settings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        found = _read(path) | {name_of(record["settings"]): record}
        write_text(path, "".join(json.dumps(found[name]) + "\n" for name in sorted(found)))


def name_of(settings: Mapping[str, object]) -> str:
    return "-".join(str(value) for value in settings.values()).replace(" ", "_").replace("/", "_") or "all"


def _read(path: Path) -> dict[str, Record]:
    """The records of a file by the names of their runs; none if there is no file."""
    if not path.exists():
        return {}
    try:
        records = [json.loads(line) for line in read_text(path).splitlines()]
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not valid JSON lines ({error}): restore the file or remove it") from None
    return {name_of(record["settings"]): record for record in records}


def same_figures(before: Any, now: Any) -> bool:
    """Whether a repeated run has the same figures, seconds and long lists apart, to within half a percent."""
    if isinstance(now, dict):
        keys = {key for key in now if "second" not in key and not isinstance(now[key], list)}
        return isinstance(before, dict) and keys <= set(before) and all(same_figures(before[k], now[k]) for k in keys)
    if isinstance(now, float) and isinstance(before, float):
        return math.isclose(before, now, rel_tol=SAME, abs_tol=1e-6)
    return bool(before == now)


def grid(measure: Callable[..., dict[str, Any]], seeds: int, plan: Plan, **values: Iterable[object]) -> Iterator[Run]:
    """A run for every seed and combination of values; `measure` takes the values, the seed and the plan."""
    for seed in plan.seeds_or(seeds):
        for chosen in itertools.product(*values.values()):
            settings = dict(zip(values, chosen, strict=True)) | {"seed": seed}
            yield Run(settings, partial(measure, *chosen, seed, plan))


def grid_of_models(measure: Callable[..., dict[str, Any]], seeds: Mapping[str, int], plan: Plan) -> Iterator[Run]:
    """The same for models that each have their own number of seeds."""
    for model, number in seeds.items():
        yield from grid(measure, number, plan, model=[model])


def results(records: list[Record], **settings: object) -> list[dict[str, Any]]:
    """The results of all records with these settings, in the order of their seeds."""
    found = [one for one in records if settings.items() <= one["settings"].items()]
    return [one["result"] for one in sorted(found, key=lambda one: one["settings"].get("seed", 0))]


def mean(found: list[dict[str, Any]], name: str, form: str = ".4f", spread: bool = False) -> str:
    """The mean of a value over results that have it, with its standard deviation over several if asked."""
    values = [one[name] for one in found if one.get(name) is not None]
    if not values:
        return ""
    return f"{np.mean(values):{form}}" + (f" ± {np.std(values):{form}}" if spread and len(values) > 1 else "")


def rounded(values: Any, digits: int = 4) -> list[float]:
    return [round(float(value), digits) for value in values]


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
