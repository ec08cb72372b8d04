"""List results that are older than the code they depend on.

A result depends on what its experiment or measurement imports, and on its model. Comments, docstrings, annotations,
layout and the place and form of an import do not count as changes: what is imported is itself depended on.

A run is confirmed if the same run with another seed was repeated with the current code and gave the figures of a commit
at which, or after which, the run was measured. A confirmed run confirms earlier ones in the same way.
"""

import argparse
import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lab import EXPERIMENTS, MEASUREMENTS, TOOLS, experiment_named
from lab.import_graph import ROOT, module_files, needed_by, strings_in
from varitext.errors import InputError
from varitext.files import read_json
from varitext.models.answers import ANSWER_MODELS
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce.engine import name_of, read_records

# modules that cannot change a value: they read, write, check, count seconds, choose the number of threads, report
# progress or load the compiled library
WITHOUT_EFFECT = (
    *("runtime.devices", "layers.architecture", "layers.shapes"),
    *("errors", "files", "records", "paper", "loading", "store", "training.progress", "training.checkpoint"),
    *("runtime.interruption", "runtime.memory", "reproduce", "reproduce.engine", "reproduce.provenance", "cli"),
    "compiled",
)
HOMES = {name: entry.home.partition(":")[0] for name, entry in (*DOCUMENT_MODELS.items(), *ANSWER_MODELS.items())}
COMPILED = ROOT / "src/varitext/compiled"
IN_C = ("kernels.c", "kernels.h")
SOURCES = {  # of the compiled library, by the module through which they are called
    "varitext.compiled.dcm": IN_C,
    "varitext.compiled.documents": (*IN_C, "model.c", "model.h", "training.c", "inference.c", "products.c"),
    "varitext.compiled.words": ("word_counts.c",),
}
OWN = re.compile(r"(?:varitext|lab)\.[\w.]*\.(\w+)")  # a name of ours in full: definitions may move
DEFAULTS = {"nvdm_dcm", "nvdm", "compare"}  # models that a fit takes if none is named


class Result(NamedTuple):
    name: str  # of the experiment or measurement
    run: str
    reason: str  # why it is outdated; empty if it is not
    confirmed: bool = False


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m lab outdated", description=__doc__)
    parser.add_argument("target", nargs="*", help="list the outdated runs of these")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="folder of the results")
    typed = parser.parse_args(arguments)
    if not typed.out.is_dir():
        raise InputError(f"{typed.out} is not a folder of results: name one with --out")
    found = list(results_in(typed.out))
    for one in found:
        if one.reason and one.name in typed.target:
            print(f"{one.name}, {one.run}: {one.reason}")
    if not typed.target:
        print(f"{'':20} {'current':>8} {'confirmed':>10} {'outdated':>9}")
        for name in dict.fromkeys(one.name for one in found):
            old = [(bool(one.reason), one.confirmed) for one in found if one.name == name]
            print(f"{name:20} {old.count((False, False)):8} {old.count((False, True)):10} {old.count((True, False)):9}")
    print(f"{sum(bool(one.reason) for one in found)} of {len(found)} results are outdated")


def results_in(folder: Path) -> Iterator[Result]:
    for name in EXPERIMENTS:
        if (folder / f"{name}.jsonl").exists():
            yield from _runs_in(name, read_records(experiment_named(name), folder))
    for name in MEASUREMENTS | TOOLS:
        if (folder / f"{name}.json").exists():
            yield Result(name, "all", _reason_of(name, read_json(folder / f"{name}.json")))


def outdated_runs(name: str, folder: Path) -> set[str]:
    """The outdated runs of an experiment."""
    return {one.run for one in _runs_in(name, read_records(experiment_named(name), folder)) if one.reason}


def _runs_in(name: str, records: list[dict[str, Any]]) -> Iterator[Result]:
    reasons = {name_of(one["settings"]): _reason_of(name, one) for one in records}
    confirmed: dict[str, str] = {}  # the earliest commit whose figures a current run has, by the settings but the seed

    def is_same(one: dict[str, Any]) -> bool:
        since = confirmed.get(_without_seed(one))
        return bool(since and one.get("commit") and _is_ancestor(since, one["commit"]))

    for _ in records:  # a confirmed run may confirm earlier ones in turn
        for one in records:
            earlier, now = one.get("confirms"), confirmed.get(_without_seed(one))
            if earlier and (is_same(one) or not reasons[name_of(one["settings"])]):
                confirmed[_without_seed(one)] = earlier if now is None or _is_ancestor(earlier, now) else now
    for one in records:
        run = name_of(one["settings"])
        same = bool(reasons[run]) and is_same(one)
        yield Result(name, run, "" if same else reasons[run], same)


def _without_seed(record: dict[str, Any]) -> str:
    return name_of({name: value for name, value in record["settings"].items() if name != "seed"})


def is_outdated(name: str, record: dict[str, Any]) -> bool:
    return bool(_reason_of(name, record))


def _reason_of(name: str, record: dict[str, Any]) -> str:
    files = depends_on(name, record.get("settings", {}).get("model"))
    return next(filter(None, (_reason(commit, files) for commit in _commits(record))), "")


def _commits(record: dict[str, Any]) -> Iterator[str | None]:
    """The commit of a result, or of every part of a file whose parts were measured one by one."""
    parts = [part for part in record.values() if isinstance(part, dict)]
    if "commit" in record or not parts:
        yield record.get("commit")
    else:
        for part in parts:
            yield from _commits(part)


@cache
def depends_on(name: str, model: str | None = None) -> tuple[str, ...]:
    """The files, seen from the root, that a result depends on. Registries name models without importing them."""
    own = (EXPERIMENTS | MEASUREMENTS | TOOLS)[name]
    measuring = {own, *(one for one in needed_by([own]) if one.startswith("lab."))}
    models = [HOMES[model]] if model in HOMES else _models_named_in(measuring, {own, *needed_by([own])})
    modules = {*measuring, *models, *needed_by([*measuring, *models])} - {f"varitext.{one}" for one in WITHOUT_EFFECT}
    files = {str(module_files()[module].relative_to(ROOT)) for module in modules if not module.startswith("lab.pages")}
    for module in modules & set(SOURCES):
        files.update(str((COMPILED / name).relative_to(ROOT)) for name in SOURCES[module])
    return tuple(sorted(files))


def _models_named_in(measuring: set[str], needed: set[str]) -> list[str]:
    """The homes of models that the measuring code names, and of the defaults; of all if it names none."""
    named = {name for module in measuring for name in strings_in(module)} & set(HOMES)
    homes = {HOMES[name] for name in (named | DEFAULTS if named else HOMES)}
    return sorted(home for home in homes if home.rpartition(".")[0] in needed)


@cache  # many runs have the same commit
def _reason(commit: str | None, files: tuple[str, ...]) -> str:
    if commit is None:
        return "its commit is not recorded"
    changed = changed_since(commit, list(files))
    if changed is None:
        return f"was measured at {commit[:10]}, which this repository does not have"
    return f"{len(changed)} files have changed since {commit[:10]}: {', '.join(changed[:3])}" if changed else ""


def changed_since(revision: str, paths: list[str], folder: Path = ROOT) -> list[str] | None:
    """Files of the folder under `paths` whose code differs from that commit; None if the commit is unknown."""
    revision = revision.removesuffix("+")
    found = _git(folder, "diff", "--name-only", "--relative", revision, "--", *paths)
    if found is None:
        return None
    changes = {name: _change_of(revision, name, folder) for name in found.splitlines()}
    gone = {name: code for one in changes.values() for name, code in one.gone.items()}
    return [
        name
        for name, one in changes.items()
        if one.differs or any(gone.get(moved, code) != code for moved, code in one.new.items())
    ]


@cache
def _is_ancestor(revision: str, later: str) -> bool:
    """Whether a commit is another one or precedes it."""
    return _git(ROOT, "merge-base", "--is-ancestor", revision.removesuffix("+"), later.removesuffix("+")) is not None


class _Change(NamedTuple):
    """What is defined in one version only has no effect unless something in both uses it, which would then differ."""

    differs: bool  # what is in both versions
    gone: dict[str, str]  # definitions; a new one of the same name in another file has moved there
    new: dict[str, str]


@cache  # many results depend on the same files
def _change_of(revision: str, name: str, folder: Path) -> _Change:
    before, now = _git(folder, "show", f"{revision}:./{name}") or "", folder / name
    after = now.read_text(encoding="utf-8") if now.exists() else ""
    if not name.endswith(".py"):
        return _Change(before.strip() != after.strip(), {}, {})
    old, new = _statements(before), _statements(after)
    in_both = {name for name, _ in old} & {name for name, _ in new}
    gone, added = ({name: code for name, code in each if name not in in_both} for each in (old, new))
    kept, now_kept = ([one for one in each if one[0] in in_both] for each in (old, new))
    return _Change(kept != now_kept, gone, added)


def _statements(source: str) -> list[tuple[str, str]]:
    """A Python file without docstrings, annotations and imports: the name that each statement binds, and its code."""
    tree = ast.parse(source)
    bare = _Bare(dict(_imported(tree))).visit(tree)
    return [("", ""), *((_bound(one), OWN.sub(r"\1", ast.dump(one))) for one in bare.body if not _is_type(one))]


def _bound(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return getattr(statement, "name", "")


def _is_type(statement: ast.stmt) -> bool:
    """A name for a union of types."""
    value = getattr(statement, "value", None)
    written = isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
    return written or (isinstance(value, ast.Subscript) and getattr(value.value, "id", "") == "typing.Union")


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What each imported name stands for, wherever it is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.asname, one.name) for one in node.names if one.asname)
        elif isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


class _Bare(ast.NodeTransformer):
    """Writes imported names in full."""

    def __init__(self, imported: dict[str, str]):
        self.imported = imported

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_text(one) and not _is_import(one)]  # type: ignore[attr-defined]
        for name in {"annotation", "returns"} & set(node._fields):
            setattr(node, name, None)
        return super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.imported.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        owner = self.visit(node.value)
        is_module = isinstance(owner, ast.Name) and isinstance(node.value, ast.Name | ast.Attribute)
        return ast.Name(f"{owner.id}.{node.attr}") if is_module else ast.Attribute(owner, node.attr)


def _is_import(statement: ast.stmt) -> bool:
    """An import, also one that only type checkers see."""
    if isinstance(statement, ast.If):
        return isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of git; None if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
