"""Fault injection: kills, damaged and hostile folders, hostile input, full disks, races.

Results are written immediately, so the same command continues after an interruption. Every fault is printed, and the
exit code is then 1.
"""

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from lab.faults.tally import Tally

TIMES = {"kills": 100, "torchrun": 20, "folders": 1000, "strangers": 1000, "inputs": 100_000, "disk": 5, "races": 10}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m lab faults", description=__doc__)
    parser.add_argument("kind", choices=[*TIMES, "all"])
    parser.add_argument("--times", type=int, help="number of cases (default: as published)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results")
    typed = parser.parse_args(arguments)
    faults = 0
    for name in TIMES if typed.kind == "all" else [typed.kind]:
        tally = Tally(name, typed.out / "faults.json")
        with tempfile.TemporaryDirectory() as folder:
            import_module(f"lab.faults.{name}").measure(tally, typed.times or TIMES[name], Path(folder))
        faults += sum(len(part["faults"]) for part in tally.parts.values())
    sys.exit(faults > 0)
