"""`varitext reproduce`: the paper's tables and figures."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.options import DataDir, Threads
from varitext.cli.printing import log
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
    again: Annotated[
        bool, typer.Option("--rerun", help="Measure runs whose files are there already once more, and say what moved.")
    ] = False,
    stale: Annotated[
        bool,
        typer.Option(
            "--outdated",
            help="Measure nothing: count results that are older than the code they rest on; with TARGET, list them. "
            "With --rerun: measure only these once more.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="One small JSON file per run goes here.")] = Path("results"),
    models: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Fitted models, which several experiments look at; each code has its own."),
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
      varitext reproduce --outdated
      varitext reproduce table4 --rerun --seeds 0
      varitext reproduce all --rerun --outdated
    """
    from varitext.experiments.runs import Plan
    from varitext.experiments.runs import reproduce as run
    from varitext.experiments.stale import is_old
    from varitext.runtime.provenance import code_fingerprint

    if stale and not again:
        return _list_stale(out, targets or [])
    if not targets:
        for name in EXPERIMENTS:
            print(f"{name:20} {experiment_named(name).about}")
        return
    chosen = [experiment_named(name) for name in (EXPERIMENTS if targets == ["all"] else targets)]
    plan = Plan(quick, _seeds(seeds), data_dir, models / code_fingerprint(), threads)
    if again:
        plan = replace(plan, again=is_old if stale else lambda path: True)
    for experiment in chosen:
        table = run(experiment, plan, out, log)
        print(f"{experiment.about}\n\n{table}\n", flush=True)


def _list_stale(results: Path, targets: list[str]) -> None:
    from varitext.experiments.stale import ages, summary

    if not results.is_dir():
        raise InputError(f"{results} is not a folder of results: name one with --out")
    found = ages(results)
    for one in found:
        if one.reason and one.group in targets:
            print(f"{one.path}: {one.reason}")
    if not targets:
        print(f"{'':20} {'of today':>10} {'vouched for':>12} {'older':>7}")
        for name, count in summary(found).items():
            print(f"{name:20} {count.of_today:10} {count.vouched_for:12} {count.older:7}")
    old = sum(bool(one.reason) for one in found)
    log(f"{old} of {len(found)} results rest on code that is not known or has changed since")
    log("vouched for: another seed of the same row was measured with the code of today")


def _seeds(typed: str | None) -> tuple[int, ...] | None:
    if typed is None:
        return None
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", typed)
    if not match or (match[2] and int(match[2]) < int(match[1])):
        raise InputError(f"--seeds {typed!r} is not a seed or a range such as 0-4")
    return tuple(range(int(match[1]), int(match[2] or match[1]) + 1))
