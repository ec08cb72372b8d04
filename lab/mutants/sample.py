"""Mutation testing of the mathematics: a seeded random sample of small faults, equally many from each package.

A mutant is the package with one operator, number, condition, argument or statement changed (`operators.py`). Only tests
that run the changed lines are run against it, until one fails. Results are written immediately, so the same
command continues after an interruption.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.mutants.operators import Mutant, mutants_of, mutated_code
from lab.mutants.running import Session
from varitext.files import read_json, write_json
from varitext.reproduce.provenance import provenance

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "varitext"
ROOMS = ("latent", "layers", "training", "evaluation", "models")
MAX_SECONDS = 5.0  # of tests under the tracer, for one mutant of a sample
SLOW = (  # tests that fit whole models
    *("known_answer", "test_it_learns", "in_bursts_it_beats", "never_ends_in_nan", "both_presets"),
    *("as_well_as_without", "needs_no_torch"),
)


def population() -> dict[str, list[Mutant]]:
    files = {room: sorted((PACKAGE / room).rglob("*.py")) for room in ROOMS}
    return {room: [one for path in paths for one in mutants_of(path, PACKAGE)] for room, paths in files.items()}


def sample(seed: int, per_room: int, rooms: Sequence[str] = ROOMS) -> list[Mutant]:
    """Packages alternate, so that any first part of the sample is balanced, too."""
    everything = {room: all_ for room, all_ in population().items() if room in rooms}
    drawn = {
        room: random.Random(f"{seed} {room}").sample(all_, len(all_))[:per_room] for room, all_ in everything.items()
    }
    return [drawn[room][place] for place in range(per_room) for room in drawn if place < len(drawn[room])]


class Record:
    """The results of one sample in a JSON file, beside those of others."""

    def __init__(self, key: str, path: Path, about: dict[str, Any]):
        self.key, self.path = key, path
        self.found = self._file().get(key, {}) or {**about, **provenance(), "mutants": {}}

    def add(self, name: str, record: dict[str, Any]) -> None:
        self.found["mutants"][name] = record
        print(f"{len(self.found['mutants']):4} {record['outcome']:9} {record['seconds']:6.1f} s  {name}", flush=True)
        write_json(self.path, self._file() | {self.key: self.found})

    def _file(self) -> dict[str, Any]:
        return read_json(self.path) if self.path.exists() else {}


def run_mutants(session: Session, mutants: list[Mutant], record: Record) -> None:
    for mutant in mutants:
        if mutant.name not in record.found["mutants"]:
            outcome = session.run(mutant.path, mutated_code(PACKAGE / mutant.path, mutant.number), mutant.lines)
            about = {"room": mutant.path.split("/")[0], "operator": mutant.operator}
            record.add(mutant.name, about | outcome._asdict())


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m lab mutations", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--per-room", type=int, default=80, help="mutants of each room (default: 80)")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, choices=ROOMS)
    parser.add_argument("--only", default="", help="all mutants whose name starts with this, instead of a sample")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results")
    typed = parser.parse_args(arguments)
    everything = population()
    mutants = sample(typed.seed, typed.per_room, typed.rooms)
    if typed.only:
        mutants = [one for many in everything.values() for one in many if one.name.startswith(typed.only)]
    about = {"population": {room: len(many) for room, many in everything.items()}}
    record = Record(typed.only or f"seed {typed.seed}", typed.out / "mutations.json", about)

    def work(session: Session) -> None:
        run_mutants(session, mutants, record)

    words = ["-n0", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", "-k", f"not ({' or '.join(SLOW)})"]
    words += [str(ROOT / "tests" / room) for room in ROOMS]
    pytest.main(words, plugins=[Session(PACKAGE, {one.path for one in mutants}, work, MAX_SECONDS)])
