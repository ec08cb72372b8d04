"""The layout of the package: rooms in an order, no cycles between modules, small functions, models that register once.

`ROOMS` is the order. A file imports from its own room and from the rooms before it, wherever the import stands: at the
top of the file, inside a function, or under TYPE_CHECKING.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from command_line import varitext

from lab.import_graph import imports_of, module_files, needed_by
from varitext.models.answers import ANSWER_MODELS
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce import experiment_named
from varitext.reproduce.engine import Plan

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "src" / "varitext"
PACKAGE = "varitext"
ROOMS = (
    *("errors", "files", "records"),  # plain things that everyone may use
    "compiled",  # kernels in C
    *("text", "corpora"),  # from texts to counts and tokens
    *("store", "runtime"),  # the model folder; devices, threads, processes
    *("batches", "latent", "layers", "training"),  # what models are made of, and how they learn
    "models",
    "evaluation",  # numbers in, records out
    "charts",  # charts as records, and drawn with plotly
    *("documents", "answers", "loading"),  # the two estimators, and a model folder of either kind
    "integrations",  # rankers in other frameworks
    *("paper", "report"),
    *("ray", "serve", "reproduce", "cli"),
    "__main__",
)
MAX_FUNCTION_LINES = 60  # lines
MAX_ARGUMENTS = 12  # of a constructor
ESTIMATORS = ("answers/ranker.py::AnswerRanker",)  # in scikit-learn's manner


@cache
def files() -> dict[Path, ast.Module]:
    """Parsed when a test asks: the other test process does without."""
    return {path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def room_of(module: str) -> str:
    return module.split(".")[1]


@cache
def graph() -> dict[str, list[str]]:
    modules = [module for module in module_files() if module.startswith(f"{PACKAGE}.")]
    return {module: sorted(imports_of(module) - {PACKAGE}) for module in modules}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions and methods, each with its place and name."""
    for path, tree in files().items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{path}::{node.name}", node


def constructors() -> Iterator[tuple[str, int]]:
    """The classes with a constructor, and how many arguments it takes besides `self`."""
    for path, tree in files().items():
        for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for node in kind.body:
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                    yield f"{path}::{kind.name}", len(arguments) - 1


# Rooms


def test_the_root_has_the_rooms_and_nothing_else():
    found = {path.parts[0].removesuffix(".py") for path in files()}
    assert sorted(found - {"__init__"}) == sorted(ROOMS)


def test_imports_go_up_the_order_of_rooms():
    down = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in others
        if ROOMS.index(room_of(other)) > ROOMS.index(room_of(module))
    ]
    assert not down, "\n".join(["imports of a later room:", *down])


def test_imports_are_absolute():
    """`import_graph` reads no others."""
    nodes = ((path, node) for path, tree in files().items() for node in ast.walk(tree))
    assert not [f"{path}:{node.lineno}" for path, node in nodes if isinstance(node, ast.ImportFrom) and node.level]


def test_no_module_imports_itself_through_others():
    reached = {module: needed_by([module]) for module in graph()}
    knots = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in graph() if a in reached[a]}
    assert not knots, "\n".join(["modules that import each other:", *map(", ".join, sorted(knots))])


def test_the_package_imports_none_of_its_modules_when_it_is_imported():
    """`import varitext` must not wait for torch. Its modules take the version from it, and nothing else."""
    eager = [node for node in files()[Path("__init__.py")].body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert not [ast.unparse(node) for node in eager if PACKAGE in ast.unparse(node)]
    for module in graph():
        path = module_files()[module].relative_to(SOURCE)
        taken = PACKAGE in imports_of(module)
        used = {
            node.attr
            for node in ast.walk(files()[path])
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == PACKAGE
        }
        assert not taken or used == {"__version__"}, f"{path} takes {used} from the package"


# Sizes


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without the docstring."""
    has_docstring = ast.get_docstring(node) is not None
    return node.end_lineno - (node.body[0].end_lineno if has_docstring else node.lineno)


def test_no_function_is_long():
    sizes = {name: lines_of(node) for name, node in functions()}
    assert not {name: lines for name, lines in sizes.items() if lines > MAX_FUNCTION_LINES}


def test_no_constructor_takes_many_arguments():
    sizes = dict(constructors())
    assert not {name: n for name, n in sizes.items() if n > MAX_ARGUMENTS and name not in ESTIMATORS}


# Models: each registry is the one place that names them


def test_every_model_is_on_a_page():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (REPOSITORY / "docs").rglob("*.md"))
    assert not [name for name in (*DOCUMENT_MODELS, *ANSWER_MODELS) if f"`{name}`" not in pages]


def test_help_names_every_model():
    help_text = varitext("fit", "--help").out.split()
    assert not [
        name for name in (*DOCUMENT_MODELS, *ANSWER_MODELS) if name not in {word.strip(",.;:()`") for word in help_text}
    ]


def test_help_names_a_new_model():
    """In a process of its own, since the help may be made when the command line is imported."""
    lines = (
        "import sys",
        "from varitext.models.answers import ANSWER_MODELS",
        "from varitext.models.documents import DOCUMENT_MODELS",
        "DOCUMENT_MODELS['one_more_nvdm'] = DOCUMENT_MODELS['nvdm']",
        "ANSWER_MODELS['one_more_nasm'] = ANSWER_MODELS['nasm']",
        "from varitext.cli import main",
        "sys.argv = ['varitext', 'fit', '--help']",
        "main()",
    )
    found = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout
    assert "one_more_nvdm" in found and "one_more_nasm" in found


@pytest.mark.parametrize(
    ("experiment", "registry", "model"), [("table1a", DOCUMENT_MODELS, "nvdm"), ("table4", ANSWER_MODELS, "nasm")]
)
def test_experiments_run_every_model(experiment, registry, model, monkeypatch):
    monkeypatch.setitem(registry, "one_more", registry[model])
    runs = experiment_named(experiment).runs(Plan(quick=True))
    needs_no_more = {
        name
        for name, entry in registry.items()
        if not getattr(entry, "extra", "") and not getattr(entry, "reads_vectors", False)
    }
    assert {run.settings["model"] for run in runs} == needs_no_more
