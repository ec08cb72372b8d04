"""Outcomes of all cases, counted and written immediately, so that an interrupted run can continue."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from varitext.files import read_json, write_json
from varitext.reproduce.provenance import provenance

FAULTS_SHOWN = 20
SECONDS_BETWEEN_WRITES = 2.0


class Fault(Exception):
    """Something that must not happen, in one line."""


class Tally:
    """The outcomes of one kind of fault, by part, in a JSON file beside those of other kinds."""

    def __init__(self, kind: str, path: Path | None):
        self.kind, self.path, self.written = kind, path, time.monotonic()
        self.parts: dict[str, Any] = self._file().get(kind, {})
        self.tried: set[str] = set()
        self.measured_by = provenance()

    def run(self, part: str, times: int, case: Callable[[int], str]) -> None:
        """Run the cases below `times` that have not run yet. A case returns its outcome or raises `Fault`."""
        record = self.parts.setdefault(part, {"cases": 0, "outcomes": {}, "faults": []})
        self.tried.add(part)
        for number in range(record["cases"], times):
            try:
                outcome = case(number)
            except Fault as fault:
                outcome = "fault"
                record["faults"] = [*record["faults"], f"case {number}: {fault}"][:FAULTS_SHOWN]
                print(f"{part}, case {number}: {fault}", flush=True)
            record["cases"] = number + 1
            record |= self.measured_by
            record["outcomes"][outcome] = record["outcomes"].get(outcome, 0) + 1
            if time.monotonic() - self.written > SECONDS_BETWEEN_WRITES:
                self.write()
        self.write()
        print(f"{part}: {record['cases']} cases, {record['outcomes']}", flush=True)

    def write(self) -> None:
        """Write the counts, keeping what other processes have written meanwhile."""
        self.written = time.monotonic()
        if self.path:
            written = self._file()
            mine = {part: self.parts[part] for part in self.tried}
            write_json(self.path, written | {self.kind: written.get(self.kind, {}) | mine})

    def _file(self) -> dict[str, Any]:
        return read_json(self.path) if self.path and self.path.exists() else {}
