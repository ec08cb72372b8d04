"""`python -m lab NAME`: run an experiment, a measurement or a tool; without NAME, list them."""

import argparse
import ast
import importlib
import json
import sys
from pathlib import Path

from lab import EXPERIMENTS, MEASUREMENTS, TOOLS, experiment_named
from lab.import_graph import module_files
from varitext.cli.printing import log
from varitext.cli.reproduce import parse_seeds
from varitext.errors import InputError
from varitext.files import write_json
from varitext.reproduce.engine import Plan, name_of, reproduce
from varitext.reproduce.provenance import code_fingerprint, provenance


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m lab NAME [options]; python -m lab NAME --help\n")
        for name, module in (EXPERIMENTS | MEASUREMENTS | TOOLS).items():
            print(f"  {name:20} {about(module)}")
        return print(f"  {'all':20} every experiment and measurement")
    name, *options = arguments
    if name in TOOLS:
        return importlib.import_module(TOOLS[name]).main(options)
    known = [*EXPERIMENTS, *MEASUREMENTS]
    if name != "all" and name not in known:
        raise InputError(f"Unknown name {name!r}. Names: {', '.join([*known, *TOOLS, 'all'])}.")
    typed = parse(name, options)
    for one in known if name == "all" else [name]:
        run_experiment(one, typed) if one in EXPERIMENTS else run_measurement(one, typed)


def about(module: str) -> str:
    """The first line of a module's docstring, without importing it: it may need packages that are not installed."""
    return str(ast.get_docstring(ast.parse(module_files()[module].read_text(encoding="utf-8")))).split("\n")[0]


def parse(name: str, options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(f"python -m lab {name}")
    parser.add_argument("--quick", action="store_true", help="little work, to show that everything runs")
    parser.add_argument("--seeds", metavar="A-B", help="only these seeds of an experiment, for example 0-4")
    parser.add_argument("--only", metavar="TEXT", default="", help="only runs of an experiment with TEXT in their name")
    parser.add_argument("--rerun", action="store_true", help="repeat runs that are already measured")
    parser.add_argument("--outdated", action="store_true", help="with --rerun: only runs whose code has changed since")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for results (default: results)")
    parser.add_argument(
        "--models", type=Path, default=Path("models"), help="folder for fitted models (default: models)"
    )
    parser.add_argument("--threads", type=int)
    parser.add_argument("--data-dir", type=Path)
    return parser.parse_args(options)


def run_experiment(name: str, typed: argparse.Namespace) -> None:
    from lab.outdated import outdated_runs

    def rerun(record: dict) -> bool:  # a run may be confirmed by one that was repeated just before
        return typed.rerun and (not typed.outdated or name_of(record["settings"]) in outdated_runs(name, typed.out))

    models = typed.models / code_fingerprint()
    plan = Plan(typed.quick, parse_seeds(typed.seeds), typed.data_dir, models, typed.threads, rerun, typed.only)
    experiment = experiment_named(name)
    print(f"{experiment.about}\n\n{reproduce(experiment, plan, typed.out, log)}\n", flush=True)


def run_measurement(name: str, typed: argparse.Namespace) -> None:
    path = typed.out / f"{name}{'-quick' if typed.quick else ''}.json"
    if path.exists() and not typed.rerun:
        return log(f"{name} is already measured")
    log(name)
    found = importlib.import_module(MEASUREMENTS[name]).measure(typed.quick) | provenance()
    print(json.dumps(found, indent=2))
    write_json(path, found)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"lab: {error}")
