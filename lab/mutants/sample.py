"""How many small faults in the mathematics the tests catch: a seeded random sample of mutants, the same number a room.

    python benchmarks/mutations.py --seed 1 --per-room 80 --json results/mutations.json
    python benchmarks/mutations.py --named --json results/mutations.json
    python benchmarks/mutations.py --only evaluation/ties.py

A mutant is the package with one operator, number, condition, argument or statement changed (`mutants/operators.py`).
Only tests that run the changed lines are run against it, until one fails. Results are written as they come: the same
command goes on where it stopped. `mutants/equivalent.py` lists, with reasons, mutants that no test can tell.
"""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from lab.mutants.equivalent import reason
from lab.mutants.named import FAULTS
from lab.mutants.operators import Mutant, mutants_of, mutated_code
from lab.mutants.running import Session
from varitext.files import read_json, write_json
from varitext.reproduce.provenance import provenance

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "varitext"
ROOMS = ("latent", "layers", "training", "evaluation", "models")
SURVIVORS = ("survived", "no test")
MAX_SECONDS = 5.0  # of tests under the tracer, for one mutant of a sample
SLOW = (  # tests that fit whole models
    "known_answer",
    "test_it_learns",
    "in_bursts_it_beats",
    "never_ends_in_nan",
    "both_presets",
    "as_well_as_without",
    "needs_no_torch",
)


def population() -> dict[str, list[Mutant]]:
    files = {room: sorted((PACKAGE / room).rglob("*.py")) for room in ROOMS}
    return {room: [one for path in paths for one in mutants_of(path, PACKAGE)] for room, paths in files.items()}


def sample(seed: int, per_room: int, rooms: Sequence[str] = ROOMS) -> list[Mutant]:
    """In an order that lets any part of it be a fair sample too."""
    everything = {room: all_ for room, all_ in population().items() if room in rooms}
    drawn = {
        room: random.Random(f"{seed} {room}").sample(all_, len(all_))[:per_room] for room, all_ in everything.items()
    }
    return [drawn[room][place] for place in range(per_room) for room in drawn if place < len(drawn[room])]


class Record:
    """The results of one sample in a JSON file, beside those of others."""

    def __init__(self, key: str, path: Path | None, about: dict[str, Any]):
        self.key, self.path = key, path
        self.found = self._file().get(key, {}) or {**about, **provenance(), "mutants": {}}

    def reconsider(self, mutants: list[Mutant]) -> None:
        """Survivors for which a reason was found since."""
        for mutant in mutants:
            found = self.found["mutants"].get(mutant.name, {})
            if found.get("outcome") in SURVIVORS and (why := reason(mutant)):
                self.add(mutant.name, found | {"outcome": "equivalent", "killed_by": why})

    def add(self, name: str, record: dict[str, Any]) -> None:
        self.found["mutants"][name] = record
        print(f"{len(self.found['mutants']):4} {record['outcome']:9} {record['seconds']:6.1f} s  {name}", flush=True)
        if self.path:
            write_json(self.path, self._file() | {self.key: self.found})

    def _file(self) -> dict[str, Any]:
        return read_json(self.path) if self.path and self.path.exists() else {}


def run_mutants(session: Session, mutants: list[Mutant], record: Record) -> None:
    for mutant in mutants:
        if mutant.name in record.found["mutants"]:
            continue
        outcome = session.run(mutant.path, mutated_code(PACKAGE / mutant.path, mutant.number), mutant.lines)
        about = {"room": mutant.path.split("/")[0], "operator": mutant.operator}
        record.add(mutant.name, about | outcome._asdict())
        record.reconsider([mutant])


def run_named(session: Session, record: Record) -> None:
    for fault in FAULTS:
        source = (PACKAGE / fault.path).read_text()
        assert source.count(fault.before) == 1, f"{fault.name}: {fault.before!r} is not there exactly once"
        line = source[: source.index(fault.before)].count("\n") + 1
        code = compile(source.replace(fault.before, fault.after), str(PACKAGE / fault.path), "exec")
        outcome = session.run(fault.path, code, (line, line + fault.before.count("\n")))
        record.add(fault.name, {"path": fault.path} | outcome._asdict())


def main(
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 1,
    per_room: Annotated[int, typer.Option(help="How many mutants of each room.")] = 80,
    rooms: Annotated[str, typer.Option(help="Which rooms, with commas.")] = ",".join(ROOMS),
    named: Annotated[bool, typer.Option("--named", help="The faults of an audit instead of a sample.")] = False,
    only: Annotated[str, typer.Option(help="All mutants whose name starts so, instead of a sample.")] = "",
    json: Annotated[Path | None, typer.Option(help="Where the results go.")] = None,
) -> None:
    """Run the tests that concern each mutant; say which are killed."""
    about: dict[str, Any] = {"population": {room: len(all_) for room, all_ in population().items()}}
    mutants = sample(seed, per_room, rooms.split(","))
    if only:
        mutants = [one for all_ in population().values() for one in all_ if one.name.startswith(only)]
    record = Record("named" if named else only or f"seed {seed}", json, {} if named else about)

    record.reconsider(mutants)

    def work(session: Session) -> None:
        if named:
            run_named(session, record)
        else:
            run_mutants(session, mutants, record)

    arguments = ["-n0", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", "-k", f"not ({' or '.join(SLOW)})"]
    arguments += [str(ROOT / "tests" / room) for room in (["training"] if named else ROOMS)]
    files = {one.path for one in (FAULTS if named else mutants)}
    pytest.main(arguments, plugins=[Session(PACKAGE, files, work, math.inf if named else MAX_SECONDS)])


if __name__ == "__main__":
    typer.run(main)
