"""What the pages say is true: code blocks run, commands parse, names and links resolve, tables of defaults agree."""

import contextlib
import dataclasses
import importlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import torch
from command_line import command_of
from typer.testing import CliRunner

from varitext.cli import app
from varitext.corpora.question_answers import PROTOCOLS
from varitext.models.answers import ANSWER_MODELS
from varitext.models.answers.pretrained import is_installed
from varitext.models.documents import DOCUMENT_MODELS
from varitext.models.documents.nvdm import NVDM
from varitext.text import TokenRules, VocabularyRules
from varitext.training.settings import TrainingSettings

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
BESIDE = ["../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md"]  # as seen from docs/

on_every_page = pytest.mark.parametrize("page", PAGES)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page: str, *languages: str) -> list[tuple[int, list[str]]]:
    """The fenced blocks in these languages: number of the line above the first, and the lines."""
    found, language, start = [], None, 0
    lines = text_of(page).splitlines()
    for number, line in enumerate(lines, start=1):
        if line.startswith("```"):
            if language is None:
                language, start = line.removeprefix("```").strip(), number
            else:
                found += [(start, lines[start : number - 1])] if language in languages else []
                language = None
    assert language is None, f"{page}: the block from line {start} has no end"
    return found


def prose(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    """What is between a heading and the next of the same level or above."""
    level, title = heading.split(" ", 1)
    found = re.search(rf"^{level} {re.escape(title)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", text_of(page), re.M | re.S)
    assert found, f"{page} has no heading {heading!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows but their headers."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rules = [number for number, row in enumerate(cells) if set("".join(row)) <= set("-: ")]
    return [row for number, row in enumerate(cells) if number not in rules and number + 1 not in rules]


# Names in code


def names_in_code() -> list[str]:
    return sorted({name for page in PAGES for name in re.findall(r"`([\w./-]+\.py::[\w.]+)`", text_of(page))})


@pytest.mark.parametrize("name", names_in_code())
def test_path_and_name_resolve(name):
    path, dotted = name.split("::")
    assert (REPOSITORY / path).is_file()
    found = importlib.import_module(".".join(Path(path).with_suffix("").parts[1:]))
    for part in dotted.split("."):
        # a NamedTuple's or dataclass's fields count, also those without a default
        assert hasattr(found, part) or part in getattr(found, "__annotations__", {}), f"{name}: no {part}"
        found = getattr(found, part, None)


@on_every_page
def test_files_mentioned_exist(page):
    written = files_to_write(page)  # by the reader
    for path in re.findall(r"`((?:src|tests|docs|examples|lab)/[\w./-]+)(?:::[\w.]+)?`", prose(page)):
        assert path in written or (REPOSITORY / path).exists(), f"{page} mentions {path}"


def test_every_equation_has_its_row():
    """Each of the paper's 51 once, with code."""
    every = rows(text_of("reference/equations.md"))
    assert all(".py::" in row[-1] for row in every)
    numbered = [row[0] for row in every if re.fullmatch(r"[\d, ]+", row[0])]
    numbers = [int(number) for cell in numbered for number in cell.split(",")]
    assert sorted(numbers) == list(range(1, 52))


# Code and commands


def files_to_write(page: str) -> dict[str, str]:
    """Blocks that a page introduces by the path of a file: build-a-model.md has the reader write some."""
    lines, written = text_of(page).splitlines(), {}
    for start, block in blocks(page, "python"):
        if named := re.fullmatch(r"`(src/varitext/[\w/]+\.py)`:", lines[start - 3]):
            written[named[1]] = "\n".join(block) + "\n"
    return written


@contextlib.contextmanager
def followed(page: str, folder: Path) -> Iterator[None]:
    """The page as one script, its lines where they are on the page; files that it has the reader write are there."""
    source: list[str] = []
    for start, lines in blocks(page, "python"):
        source += [""] * (start - len(source)) + lines
    code = compile("\n".join(source), str(DOCS / page), "exec")
    with contextlib.ExitStack() as stack:
        for path, content in files_to_write(page).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content, encoding="utf-8")
            room = importlib.import_module(".".join(Path(path).parent.parts[1:]))
            stack.enter_context(mock.patch.object(room, "__path__", [*room.__path__, str((folder / path).parent)]))
            stack.callback(sys.modules.pop, f"{room.__name__}.{Path(path).stem}", None)
        for known in (DOCUMENT_MODELS, ANSWER_MODELS):
            stack.enter_context(mock.patch.dict(known))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        stack.callback(torch.set_num_threads, threads)
        with torch.random.fork_rng(), contextlib.redirect_stdout(io.StringIO()):
            exec(code, {"__name__": page})
        yield


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """`<!-- needs: PACKAGE -->` on a page names packages that are not installed everywhere, or minilm."""
    for package in " ".join(re.findall(r"^<!-- needs: (.+) -->$", text_of(page), re.MULTILINE)).split():
        if package == "minilm" and not is_installed():
            pytest.skip("MiniLM is not installed")
        pytest.importorskip("tokenizers" if package == "minilm" else package)
    monkeypatch.chdir(tmp_path)
    with followed(page, tmp_path):
        pass


def test_a_new_model_is_its_file_and_its_line(tmp_path, monkeypatch):
    """As build-a-model.md has it, for both sides, down to the command line."""
    monkeypatch.chdir(tmp_path)
    page, known = "tutorials/build-a-model.md", {*DOCUMENT_MODELS, *ANSWER_MODELS}
    Path("texts.csv").write_text("text\n" + "moon orbit rocket\ngoal league team\n" * 30)
    pairs = ["question,answer,label", *(f"who {i} ?,king {i},1\nwho {i} ?,lake {i},0" for i in range(20))]
    Path("pairs.csv").write_text("\n".join(pairs))
    options = {"shallow": ["texts.csv", "--latent-dim", "2"], "mean_vectors": ["pairs.csv", "--vectors", "random"]}
    with followed(page, tmp_path):
        assert {*DOCUMENT_MODELS, *ANSWER_MODELS} - known == set(options)
        for entry in (DOCUMENT_MODELS["shallow"], ANSWER_MODELS["mean_vectors"]):
            assert inspect.getsource(entry.load()) in files_to_write(page)[path_of(entry.home)]
        for name, typed in options.items():
            fit = ["fit", *typed, "--model", name, "--epochs", "2", "--threads", "1", "--out", name]
            assert CliRunner().invoke(app, fit).exit_code == 0
            evaluated = CliRunner().invoke(app, ["evaluate", name, typed[0], "--json"])
            assert evaluated.exit_code == 0, evaluated.output


def path_of(home: str) -> str:
    return f"src/{home.partition(':')[0].replace('.', '/')}.py"


def commands() -> list[tuple[str, str]]:
    found = []
    for page in (*PAGES, *BESIDE):
        for _, lines in blocks(page, "sh", "console"):
            joined = "\n".join(lines).replace("\\\n", " ")
            found += [(page, line.removeprefix("$ ")) for line in joined.splitlines()]
    return [(page, line) for page, line in found if "varitext" in shlex.split(line, comments=True)]


@pytest.mark.parametrize(("page", "line"), commands())
def test_commands_parse(page, line):
    words = shlex.split(line, comments=True)
    words = words[words.index("varitext") + 1 :]
    words = words[: next((place for place, word in enumerate(words) if word in ("|", ">", "&&", ";")), None)]
    command = command_of(app)
    while hasattr(command, "commands"):
        assert words and words[0] in command.commands, f"{page}: no such command: {line}"
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words)  # raises if an option or argument is wrong or missing; runs nothing


# Links


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", [*PAGES, *BESIDE])
def test_links_resolve(page):
    folder = (DOCS / page).parent
    for target in re.findall(r"(?:\]\(|src=\")([^)\s\"]+)[)\"]", prose(page)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (folder / name) if name else DOCS / page
        assert path.exists(), f"{page} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", prose(os.path.relpath(path, DOCS)), re.MULTILINE)
            assert anchor in map(slug, headings), f"{page} links to {target}"


def test_index_names_every_page():
    linked = set(re.findall(r"\]\(([\w/-]+\.md)\)", text_of("index.md")))
    assert linked == set(PAGES) - {"index.md"}


@on_every_page
def test_pages_are_short(page):
    """Without generated tables."""
    written = re.sub(r"<!-- ([\w-]+):begin -->.*?<!-- \1:end -->", "", text_of(page), flags=re.DOTALL)
    assert len(written.split()) <= 1_800, f"{page} has {len(written.split())} words"


def test_the_site_builds_and_fetches_nothing(tmp_path):
    """--strict refuses pages that are not in the menu, broken links and wrong references (--quiet would disable it)."""
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    faster = {"SITE_SEARCH": "false", "SITE_CODE": "false"}  # without an index of words, and code in colour
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"} | faster
    done = subprocess.run(mkdocs, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES) + 10
    fetched = re.compile(r"<(?:script|img|iframe)[^>]* src=\"?http|<link[^>]* rel=\"?stylesheet[^>]* href=\"?http")
    assert not [page.name for page in pages if fetched.search(page.read_text(encoding="utf-8"))]
    reference = (tmp_path / "reference" / "documents.html").read_text(encoding="utf-8")
    assert 'id="varitext.documents.model.DocumentModel.fit"' in reference


# Tables of values


@pytest.mark.parametrize(
    ("page", "heading", "record"),
    [
        ("explanation/training.md", "## Schedule", TrainingSettings),
        ("how-to/your-data.md", "## Token rules", TokenRules),
        ("how-to/your-data.md", "## Vocabulary rules", VocabularyRules),
    ],
)
def test_tables_of_defaults_agree(page, heading, record):
    said = {row[0].strip("`"): row[1].strip("`") for row in rows(section(page, heading))}
    defaults = {field.name: field.default for field in dataclasses.fields(record)}
    assert {name: value.strip('"') for name, value in said.items()} == {k: str(v) for k, v in defaults.items()}


@pytest.mark.parametrize(("column", "preset"), [(2, "paper"), (3, "paper-network"), (4, "recommended")])
def test_table_of_presets_agrees(column, preset):
    recipe = NVDM.recipe(preset, 10_705, 100.0)  # 20newsgroups-nvdm without its held-out documents
    defaults = {name: parameter.default for name, parameter in inspect.signature(NVDM).parameters.items()}
    objective = dataclasses.asdict(recipe.objective)
    actual = defaults | recipe.architecture | dataclasses.asdict(recipe.training) | objective
    said = {row[0].strip("`"): row[column].strip("`") for row in rows(section("explanation/nvdm.md", "## Presets"))}
    assert said == {name: str(actual[name]) for name in said}
    assert set(recipe.architecture) | set(objective) <= set(said), "a setting of the preset is not in the table"


def test_table_of_the_record_agrees():
    from varitext.evaluation.perplexity import PerplexityRecord

    said = [row[0].strip("`") for row in rows(section("explanation/nvdm.md", "## Perplexity"))]
    assert said == [field.name for field in dataclasses.fields(PerplexityRecord)]


def test_table_of_an_evaluation_of_answers_agrees():
    from varitext.answers.ranking import AnswerEvaluation
    from varitext.evaluation.calibration import CalibrationRecord, NoAnswerCalibration
    from varitext.evaluation.posterior_ranks import RankCalibration
    from varitext.evaluation.ranking import RankingRecord

    cells = [
        row[0]
        for row in rows(section("how-to/questions-and-answers.md", "## Evaluation"))
        if "--protocol" not in row[0]
    ]
    said = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    records = (RankingRecord, CalibrationRecord, AnswerEvaluation)
    names = {field.name for record in records for field in dataclasses.fields(record) if field.compare}
    inner = {*RankCalibration._fields, *NoAnswerCalibration._fields}
    printed = names - {"ranking", "calibration", "uncertainty", "no_answer"} | {"held_out", "model", *inner}
    protocols = {name for name in PROTOCOLS if name in said}
    assert sorted(set(said) - protocols) == sorted(printed) and protocols | {"paper-qasent"} == set(PROTOCOLS)


def test_results_pages_agree_with_the_result_files():
    from lab.pages import main

    main(["--check"])  # SystemExit names the page
