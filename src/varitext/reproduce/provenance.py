"""Where a measured value comes from: the commit of the code, the versions beneath it, and the processor."""

import ast
import hashlib
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

import varitext

CPU_FILE = Path("/proc/cpuinfo")
SOURCE = Path(__file__).resolve().parents[1]


def provenance() -> dict[str, Any]:
    """JSON, for the file of a result."""
    versions = {
        "varitext": varitext.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
    return {"commit": commit(), "versions": versions, "cpu": cpu_name()}


def commit(folder: Path = SOURCE) -> str | None:
    """The commit that the code is at, with `+` if files of the package differ from it; None outside a repository."""
    revision = _git(folder, "rev-parse", "HEAD")
    if revision is None:
        return None
    return revision + ("+" if _git(folder, "status", "--porcelain", "--", str(folder)) else "")


@cache  # files do not change under a process that has read them
def code_fingerprint(folder: Path = SOURCE) -> str:
    """Short, of all code of the package: what another code made is told apart by it, in a repository or not."""
    digest = hashlib.sha256()
    for path in sorted(path for ending in ("py", "c") for path in folder.rglob(f"*.{ending}")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def changed_since(revision: str, paths: list[str], folder: Path = SOURCE) -> list[str] | None:
    """Files of the package under `paths` whose code is another one at that commit; None if that is not known here.

    Comments, docstrings, annotations and the look of the code change no result, and do not count.
    """
    revision = revision.removesuffix("+")
    found = _git(folder, "diff", "--name-only", "--relative", revision, "--", *paths)
    return None if found is None else [name for name in found.splitlines() if _code_differs(revision, name, folder)]


@cache  # results of many seeds ask for the same files
def _code_differs(revision: str, name: str, folder: Path) -> bool:
    before, now = _git(folder, "show", f"{revision}:./{name}"), folder / name
    if before is None or not now.exists():
        return True
    bare = _bare_python if name.endswith(".py") else _bare_c
    return bare(before) != bare(now.read_text(encoding="utf-8"))


def _bare_c(source: str) -> str:
    """A file in C without comments, and with one space wherever there are any."""
    return " ".join(re.sub(r"/\*.*?\*/", " ", source, flags=re.DOTALL).split())


def _bare_python(source: str) -> str:
    """What a Python file does, without what is only there to be read."""
    tree = _WithoutLocalAnnotations().visit(ast.parse(source))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
    return ast.dump(tree)


class _WithoutLocalAnnotations(ast.NodeTransformer):
    """Types of variables of functions; those of a class may be fields of a record, and stay."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        for inner in ast.walk(node):
            for name, block in ast.iter_fields(inner):
                if isinstance(block, list):
                    setattr(inner, name, [_without_type(one) for one in block])
        return node


def _without_type(node: Any) -> Any:
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.Assign(targets=[node.target], value=node.value)
    return node


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def cpu_name() -> str:
    lines = CPU_FILE.read_text(errors="replace").splitlines() if CPU_FILE.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says; None if it cannot."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
