"""Reading results for the tables."""

import statistics
from functools import cache
from typing import Any

from lab import experiment_named
from lab.import_graph import ROOT
from varitext.files import read_json
from varitext.reproduce.engine import Record, read_records

Result = dict[str, Any]


@cache  # several tables read the same file
def records_of(experiment: str) -> list[Record]:
    return read_records(experiment_named(experiment), ROOT / "results")


def results_of(experiment: str, **settings: object) -> list[Result]:
    return [one["result"] for one in records_of(experiment) if settings.items() <= one["settings"].items()]


def table_of(experiment: str) -> str:
    return experiment_named(experiment).table(records_of(experiment))


def measured(name: str) -> Result:
    found: Result = read_json(ROOT / "results" / f"{name}.json")
    return found


def mean(results: list[Result], *keys: str) -> float:
    """Mean of the value under these keys, over all results that have it."""
    values = []
    for result in results:
        value: Any = result
        for key in keys:
            value = value.get(key) if value is not None else None
        if value is not None:
            values.append(value)
    return statistics.mean(values)


def bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
