"""`varitext reproduce`: the paper's tables and figures."""

import re
from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.options import DataDir, Threads
from varitext.cli.printing import say
from varitext.errors import InputError
from varitext.experiments import EXPERIMENTS, experiment_named


def reproduce(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="TARGET...", help=f"Which: {', '.join(EXPERIMENTS)}; or all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed and little training: shows that it runs.")] = False,
    seeds: Annotated[
        str | None, typer.Option(metavar="A-B", help="Only these seeds, for example 0-4; to share work.")
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Measure nothing: list results that are older than the code they rest on.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="One small JSON file per run goes here.")] = Path("results"),
    models: Annotated[
        Path, typer.Option(metavar="DIR", help="Fitted models, which several experiments look at.")
    ] = Path("models"),
    threads: Threads = None,
    data_dir: DataDir = None,
) -> None:
    """Measure the paper's tables and figures again, ours beside theirs.

    Every run leaves a JSON file; what is there already is not measured again, so that a long experiment can be stopped
    and goes on with the same command. Without TARGET: the list of what there is.

    \b
    Examples:
      varitext reproduce table3
      varitext reproduce table1a --seeds 0
      varitext reproduce table4 map-by-samples question-types
      varitext reproduce table4 --quick --out /tmp/results
      varitext reproduce --stale
    """
    from varitext.experiments.runs import Plan
    from varitext.experiments.runs import reproduce as run

    if stale:
        return _list_stale(out)
    if not targets:
        for name in EXPERIMENTS:
            print(f"{name:20} {experiment_named(name).about}")
        return
    chosen = [experiment_named(name) for name in (EXPERIMENTS if targets == ["all"] else targets)]
    plan = Plan(quick, _seeds(seeds), data_dir, models, threads)
    for experiment in chosen:
        table = run(experiment, plan, out, say)
        print(f"{experiment.about}\n\n{table}\n", flush=True)


def _list_stale(results: Path) -> None:
    from varitext.experiments.stale import stale_results

    if not results.is_dir():
        raise InputError(f"{results} is not a folder of results: name one with --out")
    found = list(stale_results(results))
    for path, reason in found:
        print(f"{path}: {reason}")
    every = len(list(results.rglob("*.json")))
    say(f"{len(found)} of {every} results rest on code that is not known or has changed since")


def _seeds(typed: str | None) -> tuple[int, ...] | None:
    if typed is None:
        return None
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", typed)
    if not match or (match[2] and int(match[2]) < int(match[1])):
        raise InputError(f"--seeds {typed!r} is not a seed or a range such as 0-4")
    return tuple(range(int(match[1]), int(match[2] or match[1]) + 1))
