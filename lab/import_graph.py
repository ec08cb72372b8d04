"""Which modules of the package a module needs, read from the source: nothing is imported."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "varitext"
SOURCE = Path(__file__).resolve().parents[1]


@cache
def module_files() -> dict[str, Path]:
    """Every module by its name, and its file as seen from the package's folder."""
    found = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return {_module_of(path): path for path in sorted(found)}


def _module_of(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))


@cache
def imports_of(module: str) -> frozenset[str]:
    return imports_in(SOURCE / module_files()[module])


def imports_in(path: Path) -> frozenset[str]:
    """The modules of the package that a file names in its imports, wherever these stand."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(name for node in ast.walk(tree) for name in _named(node))


def _named(node: ast.AST) -> Iterator[str]:
    """A name of a package that is no module of its own is the package's."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in module_files() else str(node.module) for name in inner)


def strings_in(path: Path) -> frozenset[str]:
    """All strings that a file has in its code."""
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str))


def needed_by(modules: Iterable[str]) -> set[str]:
    """All that these modules import, and what that imports; the package itself imports nothing until it is asked."""
    found: set[str] = set()
    new = {other for module in modules for other in imports_of(module)} - {PACKAGE}
    while new:
        found |= new
        new = {other for module in new for other in imports_of(module)} - found - {PACKAGE}
    return found
