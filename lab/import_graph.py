"""Which modules of varitext and of lab a module needs, read from the source: nothing is imported."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"varitext": ROOT / "src", "lab": ROOT}  # each package, and the folder it is imported from


@cache
def module_files() -> dict[str, Path]:
    found = ((path, base) for name, base in PACKAGES.items() for path in sorted((base / name).rglob("*.py")))
    parts = ((path.relative_to(base).with_suffix("").parts, path) for path, base in found)
    return {".".join(names).removesuffix(".__init__"): path for names, path in parts}


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules that a module names in its imports, wherever these are."""
    tree = ast.parse(module_files()[module].read_text(encoding="utf-8"))
    return frozenset(name for node in ast.walk(tree) for name in _named(node))


def _named(node: ast.AST) -> Iterator[str]:
    """A name that is not a module belongs to its package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] in PACKAGES)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in module_files() else str(node.module) for name in inner)


def strings_in(module: str) -> frozenset[str]:
    found = ast.walk(ast.parse(module_files()[module].read_text(encoding="utf-8")))
    return frozenset(node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str))


def needed_by(modules: Iterable[str]) -> set[str]:
    """Everything that these modules import, directly or indirectly, except what packages import lazily."""
    found: set[str] = set()
    new = {other for module in modules for other in imports_of(module)} - set(PACKAGES)
    while new:
        found |= new
        new = {other for module in new for other in imports_of(module)} - found - set(PACKAGES)
    return found
