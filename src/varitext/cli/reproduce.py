"""`varitext reproduce`: the paper's tables and figures."""

import re
from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.options import DataDir, Threads
from varitext.cli.printing import log
from varitext.errors import InputError
from varitext.reproduce import ABOUT, EXPERIMENTS, experiment_named


def reproduce(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET...", help=f"One or more of {', '.join(EXPERIMENTS)}; or all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed and little training, to show that everything runs.")
    ] = False,
    seeds: Annotated[
        str | None, typer.Option(metavar="A-B", help="Only these seeds, for example 0-4, to share the work.")
    ] = None,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only runs with TEXT in their name, such as one row of a table.")
    ] = "",
    rerun: Annotated[bool, typer.Option("--rerun", help="Repeat runs that are already measured.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results, one file per experiment.")] = Path(
        "results"
    ),
    models: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for fitted models, which several experiments share.")
    ] = Path("models"),
    threads: Threads = None,
    data_dir: DataDir = None,
) -> None:
    """Reproduce the paper's tables and figures.

    Prints our values beside the published ones. Results are saved after every run: the same command continues an
    interrupted experiment. Without TARGET, lists the experiments.

    \b
    Examples:
      varitext reproduce table3
      varitext reproduce table1a --seeds 0
      varitext reproduce table1a --only rcv1-sample-nvdm-50-recommended
      varitext reproduce table4 map-by-samples question-types
      varitext reproduce table4 --quick --out /tmp/results
    """
    if not targets:
        for name, about in ABOUT.items():
            print(f"{name:20} {about}")
        return
    from varitext.reproduce.engine import Plan
    from varitext.reproduce.engine import reproduce as run
    from varitext.reproduce.provenance import code_fingerprint

    chosen = [experiment_named(name) for name in (EXPERIMENTS if targets == ["all"] else targets)]
    models = models / code_fingerprint()
    plan = Plan(quick, parse_seeds(seeds), data_dir, models, threads, lambda record: rerun, only)
    for experiment in chosen:
        print(f"{experiment.about}\n\n{run(experiment, plan, out, log)}\n", flush=True)


def parse_seeds(typed: str | None) -> tuple[int, ...] | None:
    if typed is None:
        return None
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", typed)
    if not match or (match[2] and int(match[2]) < int(match[1])):
        raise InputError(f"--seeds {typed!r} is not a seed or a range such as 0-4")
    return tuple(range(int(match[1]), int(match[2] or match[1]) + 1))
