"""Faults on purpose, by the hundred: kills, damaged folders, hostile input, full disks, races.

    python benchmarks/faults.py kills --times 100 --json results/faults.json
    python benchmarks/faults.py all --json results/faults.json

Every kind can be run alone. Figures are written as they come: the same command after an interruption goes on where it
stopped. A fault is told as it is found, and makes the exit code 1.
"""

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

TIMES = {"kills": 100, "torchrun": 20, "folders": 1000, "inputs": 100_000, "disk": 5, "races": 10}


def main(
    kind: Annotated[str, typer.Argument(help=f"{', '.join(TIMES)}, or all")],
    times: Annotated[int | None, typer.Option(help="How many cases; else as published.")] = None,
    json: Annotated[Path | None, typer.Option(help="Where the figures go.")] = None,
) -> None:
    """Try the faults of one kind, or of all."""
    from lab.faults.tally import Tally

    kinds = list(TIMES) if kind == "all" else [kind]
    if unknown := set(kinds) - set(TIMES):
        raise typer.BadParameter(f"no kind is called {unknown.pop()!r}; there are: {', '.join(TIMES)}, all")
    faults = 0
    for name in kinds:
        tally = Tally(name, json)
        with tempfile.TemporaryDirectory() as folder:
            import_module(f"lab.faults.{name}").measure(tally, times or TIMES[name], Path(folder))
        faults += sum(len(part["faults"]) for part in tally.parts.values())
    raise typer.Exit(int(faults > 0))


if __name__ == "__main__":
    typer.run(main)
