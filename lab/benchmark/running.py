"""All systems one after another, each in a process of its own; what is measured already is not measured again."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from lab.benchmark.measuring import Task
from lab.benchmark.systems import SYSTEMS, TEXTS, is_installed, known_system
from lab.child import Record, in_child
from varitext.errors import InputError
from varitext.files import read_json, write_json


def choose_systems(peers: Sequence[str] | None, has_texts: bool) -> list[str]:
    """Ours first, then those asked for, or all that can read what the corpus has."""
    for name in peers or ():
        if known_system(name).kind == TEXTS and not has_texts:
            raise InputError(f"{name} reads texts, and the corpus has counts of words only")
    readable = [name for name, known in SYSTEMS.items() if known.kind != TEXTS or has_texts]
    return ["varitext", *(name for name in (peers or readable) if name != "varitext")]


def run_benchmark(plan: Task, systems: Sequence[str], folder: Path, say: Callable[[str], None]) -> list[str]:
    """Measure what is not measured yet, into `folder`; the names of systems that failed."""
    failed = []
    for name in systems:
        task, path = replace(plan, system=name), folder / f"{name}.json"
        if _is_there(path, task):
            say(f"{name}: is there already")
        elif not is_installed(name):
            say(f"{name}: not installed; {known_system(name).install}")
        else:
            say(f"{name}: measuring")
            package = known_system(name).package
            record = in_child("lab.benchmark.measuring", asdict(task), task.threads, say, package)
            if record is None:
                failed.append(name)
            else:
                write_json(path, record)
    return failed


def read_records(folder: Path) -> dict[str, Record]:
    """What is in the folder, in the order of `SYSTEMS`."""
    return {name: read_json(folder / f"{name}.json") for name in SYSTEMS if (folder / f"{name}.json").exists()}


def _is_there(path: Path, task: Task) -> bool:
    """A record of the very same task; one of another corpus, size or number of threads is measured anew."""
    asked = {name: value for name, value in asdict(task).items() if name != "data_dir"}
    return path.exists() and bool(read_json(path)["task"] == asked)
