"""Mutants of Python source: all small faults of a file, and the code with one of them.

Only bodies of functions and methods. Excluded, because no test of the mathematics should depend on them: docstrings,
annotations, f-strings and messages; chosen values (defaults of arguments, recipes of presets); arguments that change
no result here (`strict`, `fused`, `device`).
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

OPPOSITES = ((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr))
BINARY = {one: other for pair in OPPOSITES for one, other in (pair, pair[::-1])}
BINARY |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult}
COMPARED = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
COMPARISONS = {one: other for pair in COMPARED for one, other in (pair, pair[::-1])}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
METHODS = FUNCTIONS | {"mean": "sum", "sum": "mean", "argmax": "argmin", "argmin": "argmax", "exp": "expm1"}
MESSAGES = {"InputError", "warn", "note", "cast", "TypeVar"}
WITHOUT_EFFECT = {"strict", "fused", "device"}
BY_CHOICE = "recipe"  # how the names of functions end that hold values by choice
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """The `number`-th fault of a file."""

    path: str
    number: int
    function: str
    lines: tuple[int, int]  # of the statement: tests that run none of them cannot tell
    operator: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.lines[0]} {self.function} ({self.number}): {self.before} -> {self.after}"


@dataclass
class Change:
    """A node of a tree and its replacement."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    replacement: ast.AST
    operator: str
    function: str = ""
    statement: ast.stmt | None = None

    def apply(self) -> None:
        ast.fix_missing_locations(ast.copy_location(self.replacement, self.node))
        if self.index is None:
            setattr(self.parent, self.field, self.replacement)
        else:
            getattr(self.parent, self.field)[self.index] = self.replacement


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    found = []
    for number, change in enumerate(changes(ast.parse(path.read_text()))):
        assert change.statement is not None
        lines = (change.statement.lineno, _end_of_head(change.statement))
        before, after = ast.unparse(change.node), ast.unparse(change.replacement)
        name = str(path.relative_to(root))
        found.append(Mutant(name, number, change.function, lines, change.operator, before, after))
    return found


def mutated_code(path: Path, number: int) -> CodeType:
    tree = ast.parse(path.read_text())
    list(changes(tree))[number].apply()
    return compile(tree, str(path), "exec")


def changes(tree: ast.Module) -> Iterator[Change]:
    for node in tree.body:
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, DEFINITIONS) and not one.name.endswith(BY_CHOICE):
                name = f"{node.name}.{one.name}" if isinstance(node, ast.ClassDef) else one.name
                for change in _within(one, one):
                    change.function = name
                    yield change


def _within(node: ast.AST, statement: ast.stmt) -> Iterator[Change]:
    for field, value in ast.iter_fields(node):
        if field in ("decorator_list", "args" if isinstance(node, DEFINITIONS) else "", "returns", "annotation"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_words(child):
                continue
            inner = child if isinstance(child, ast.stmt) else statement
            for operator, replacement in _replacements(child):
                yield Change(node, field, index, child, replacement, operator, statement=inner)
            yield from _within(child, inner)


def _is_words(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return named in MESSAGES
    if isinstance(node, ast.keyword) and node.arg in WITHOUT_EFFECT:
        return True
    return isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom)


def _replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "number", ast.Constant(value + 1)
        case ast.Constant(value=str(value)):
            yield "string", ast.Constant(value + "XX")
        case ast.BinOp() if type(node.op) in BINARY:
            yield "arithmetic", ast.BinOp(node.left, BINARY[type(node.op)](), node.right)
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield "unary", node.operand
        case ast.Compare(ops=[one]):
            yield "comparison", ast.Compare(node.left, [COMPARISONS[type(one)]()], node.comparators)
        case ast.BoolOp():
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.IfExp():
            yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.If() | ast.While():
            yield "condition", type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Call():
            yield from _calls(node)
        case ast.AugAssign() if type(node.op) in BINARY:
            yield "arithmetic", ast.AugAssign(node.target, BINARY[type(node.op)](), node.value)
            yield "statement", ast.Pass()
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", ast.Pass()
        case ast.Break() | ast.Continue():
            yield "statement", ast.Pass()


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None and keyword.arg not in WITHOUT_EFFECT:
            rest = [*node.keywords[:place], *node.keywords[place + 1 :]]
            yield "argument", ast.Call(node.func, node.args, rest)
    match node.func:
        case ast.Name(id=name) if name in FUNCTIONS:
            yield "function", ast.Call(ast.Name(FUNCTIONS[name], ast.Load()), node.args, node.keywords)
        case ast.Attribute(value=value, attr=name) if name in METHODS:
            yield "function", ast.Call(ast.Attribute(value, METHODS[name], ast.Load()), node.args, node.keywords)


def _end_of_head(statement: ast.stmt) -> int:
    """The last line of a statement without the statements within it."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
