"""Results that are older than the code they rest on."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lab.import_graph import PACKAGE, imports_in, module_files, needed_by, strings_in
from varitext.files import read_json
from varitext.models.answers import ANSWER_MODELS
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce import EXPERIMENTS
from varitext.reproduce.provenance import SOURCE, changed_since

SCRIPTS = SOURCE.parents[1] / "benchmarks"  # results/NAME.json is what NAME.py there measured
# for results of something else: the rooms that decide what is measured; reports, commands and the service only show it
ROOMS = (
    *("text", "corpora", "runtime", "compiled", "batches", "latent", "layers", "training", "models", "evaluation"),
    *("documents", "answers", "experiments"),
)
# what measures nothing: it reads, writes, counts seconds, says how far a run is, or names things
WITHOUT_FIGURES = {
    *("errors.py", "files.py", "records.py", "paper.py", "loading.py", "store.py"),
    *("runtime/provenance.py", "runtime/import_graph.py", "runtime/interruption.py", "runtime/memory.py"),
    *("training/progress.py", "training/trainer.py", "experiments/__init__.py", "experiments/runs.py"),
    *("models/registry.py", "models/answers/__init__.py", "models/documents/__init__.py"),
}
MEASURING = (f"{PACKAGE}.experiments.", f"{PACKAGE}.benchmarking.")  # the code that measures, in the package
LISTS_ALL = f"{PACKAGE}.experiments.document_fits"  # names every model, for the order of tables
DEFAULTS = ("nvdm_dcm", "nvdm", "compare")  # what a fit takes if no model is named
HOMES = {name: entry.home.partition(":")[0] for name, entry in (*DOCUMENT_MODELS.items(), *ANSWER_MODELS.items())}


class Age(NamedTuple):
    """How a result file stands to the code of today."""

    path: Path
    group: str  # its experiment, or else the folder or file that it stands in
    row: str  # what it shares with other seeds of the same settings
    reason: str  # why it counts as old; empty if it does not


class Ages(NamedTuple):
    """How many results of one group are how old."""

    of_today: int
    vouched_for: int  # older, but another seed of the same row was measured with the code of today
    older: int


def ages(results: Path) -> list[Age]:
    return [_age(path, results) for path in sorted(results.rglob("*.json"))]


def is_old(path: Path) -> bool:
    """Of one result, in a folder of its experiment."""
    return bool(_age(path, path.parents[1]).reason)


def summary(found: list[Age]) -> dict[str, Ages]:
    fresh = {(one.group, one.row) for one in found if not one.reason}
    counts: dict[str, list[int]] = {}
    for one in found:
        place = 0 if not one.reason else 1 if (one.group, one.row) in fresh else 2
        counts.setdefault(one.group, [0, 0, 0])[place] += 1
    return {name: Ages(*each) for name, each in counts.items()}


def _age(path: Path, results: Path) -> Age:
    record = read_json(path)
    known = record if isinstance(record, dict) else {}
    settings = known.get("settings") or {}
    row = " ".join(str(value) for name, value in settings.items() if name != "seed") or path.stem
    group = known.get("experiment") or Path(path.relative_to(results).parts[0]).stem
    reasons = (_reason(commit, rests_on(known, group)) for commit in _commits(known))
    return Age(path, group, row, next(filter(None, reasons), ""))


def _commits(record: dict[str, Any]) -> Iterator[str | None]:
    """Of a result; or of every part of a file whose parts were measured one by one."""
    parts = [part for part in record.values() if isinstance(part, dict)]
    if "commit" in record or not parts:
        yield record.get("commit")
    else:
        for part in parts:
            yield from _commits(part)


def rests_on(record: dict[str, Any], group: str = "") -> tuple[str, ...]:
    """The files, or rooms, that a result rests on: what its experiment, or the script or command that made it, imports,
    and its model; registries name models without importing them."""
    if record.get("experiment") in EXPERIMENTS:
        own = f"{PACKAGE}.experiments.{EXPERIMENTS[record['experiment']]}"
        return _files((own,), record["settings"].get("model"))
    script = _script_of(group)
    modules = _modules_of_benchmark("curve" in record) if group == "benchmark" else _modules_of(script)
    return _files(modules, script=script) if modules else ROOMS


def _script_of(group: str) -> Path | None:
    script = SCRIPTS / f"{group}.py"
    return script if group and script.exists() else None


def _modules_of_benchmark(growth: bool) -> tuple[str, ...]:
    """Of `varitext benchmark`: those that measure growth, or the others."""
    room = f"{PACKAGE}.benchmarking."
    return tuple(one for one in module_files() if one.startswith(room) and one.startswith(f"{room}growth") == growth)


def _modules_of(script: Path | None) -> tuple[str, ...]:
    """What a script imports; nothing if that does not tell."""
    modules = imports_in(script) if script else frozenset({PACKAGE})
    if PACKAGE in modules or not _without_what_measures_nothing(modules):  # the package: it does not say what
        return ()
    return tuple(sorted(modules))


@cache
def _files(modules: tuple[str, ...], model: str | None = None, script: Path | None = None) -> tuple[str, ...]:
    """Of these modules, all that they import, and the model or models; without what measures nothing."""
    models = [HOMES[model]] if model in HOMES else [*_models_of(modules, script)]
    needed = _without_what_measures_nothing({*modules, *models, *needed_by([*modules, *models])})
    if "compiled/__init__.py" in needed:
        needed.add("compiled/kernels.c")
    return tuple(sorted(needed))


def _without_what_measures_nothing(modules: Iterable[str]) -> set[str]:
    return {str(module_files()[module]) for module in modules} - WITHOUT_FIGURES


def _models_of(modules: tuple[str, ...], script: Path | None) -> Iterator[str]:
    """For results that do not say which model they are of: those that the code which measures calls by name, and those
    that stand in if none is named; or all of the sides that are needed."""
    needed = {*modules, *needed_by(modules)}
    measuring = [SOURCE / module_files()[one] for one in needed if one.startswith(MEASURING) and one != LISTS_ALL]
    named = {name for path in (*measuring, *([script] if script else [])) for name in strings_in(path)} & set(HOMES)
    wanted = {HOMES[name] for name in named | set(DEFAULTS)} if named else set(HOMES.values())
    yield from (home for home in sorted(wanted) if home.rpartition(".")[0] in needed)


@cache  # many files were written at one commit
def _reason(commit: str | None, paths: tuple[str, ...]) -> str:
    if commit is None:
        return "does not say at which commit it was measured"
    changed = changed_since(commit, list(paths))
    if changed is None:
        return f"was measured at {commit[:10]}, which this repository does not have"
    return f"{len(changed)} files have changed since {commit[:10]}: {', '.join(changed[:3])}" if changed else ""
