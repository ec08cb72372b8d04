"""The notebooks run from a fresh clone, without the data folder, and show what they say."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib
import nbformat
import pytest
import torch
from matplotlib import pyplot

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)  # an empty folder


def printed_in_a_kernel(name: str) -> str:
    """What a notebook prints when all its cells are run as Jupyter does; plots become pictures."""
    from nbclient import NotebookClient  # here: every process of the tests reads this file, and one runs it

    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": "."}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    return "".join(output.text for output in outputs if output.output_type == "stream")


def printed_here(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same without a kernel, which would import everything anew: plots are drawn and not shown."""
    cells = [cell for cell in nbformat.read(EXAMPLES / name, as_version=4).cells if cell.cell_type == "code"]
    picture = io.BytesIO()
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.savefig(picture, format="png"))
    matplotlib.use("agg")
    variables, printed = {"__name__": "__main__"}, io.StringIO()
    with torch.random.fork_rng(), contextlib.redirect_stdout(printed):
        for number, cell in enumerate(cells, start=1):
            exec(compile(cell.source, f"{name}, cell {number}", "exec"), variables)
    pyplot.close("all")
    assert picture.getvalue().startswith(b"\x89PNG") or variables["figure"].data  # of matplotlib or of plotly
    return printed.getvalue()


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(value) for value in found.groups()]


def test_topics_of_your_own_csv(monkeypatch):
    printed = printed_here("topics_of_your_own_csv.ipynb", monkeypatch)
    ours, unigram = numbers(r"NVDM ([\d.]+), unigram ([\d.]+)", printed)
    assert ours < 0.8 * unigram
    similar = re.search(r"password: (.*)", printed)
    assert similar and set(similar[1].split(", ")) & {"login", "log", "email", "reset", "account"}


def test_ranking_answers(monkeypatch):
    printed = printed_here("ranking_answers.ipynb", monkeypatch)
    (precision,) = numbers(r"MAP ([\d.]+)", printed)
    assert precision > 0.8
    first = re.search(r"rank \d-\d  (.*)", printed)
    assert first and "Jane Austen" in first[1]


def test_a_new_model():
    printed = printed_in_a_kernel("a_new_model.ipynb")
    before, after = numbers(r"([\d.]+) nats after the first epoch, ([\d.]+) at the best", printed)
    assert after < before
    likely = re.search(r"where built -> (.*)", printed)
    assert likely and set(likely[1].split()) <= {"city", "river", "country", "north", "island", "capital"}
    plain, tighter = numbers(r"ELBO (-[\d.]+), importance-weighted (-[\d.]+)", printed)
    assert plain < tighter


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_committed_without_outputs(name):
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
