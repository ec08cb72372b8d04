"""The notebooks run from a fresh clone, without the data folder, and show what they say."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


def printed_by(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a notebook prints when all its cells are run in an empty folder; plots become pictures."""
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    monkeypatch.setenv("VARITEXT_CACHE", str(folder / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    return "".join(output.text for output in outputs if output.output_type == "stream")


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(value) for value in found.groups()]


def test_topics_of_your_own_csv(tmp_path, monkeypatch):
    printed = printed_by("topics_of_your_own_csv.ipynb", tmp_path, monkeypatch)
    ours, unigram = numbers(r"NVDM ([\d.]+), unigram ([\d.]+)", printed)
    assert ours < 0.8 * unigram
    similar = re.search(r"password: (.*)", printed)
    assert similar and set(similar[1].split(", ")) & {"login", "log", "email", "reset", "account"}


def test_ranking_answers(tmp_path, monkeypatch):
    printed = printed_by("ranking_answers.ipynb", tmp_path, monkeypatch)
    (precision,) = numbers(r"MAP ([\d.]+)", printed)
    assert precision > 0.8
    first = re.search(r"rank \d-\d  (.*)", printed)
    assert first and "Jane Austen" in first[1]


def test_a_new_model(tmp_path, monkeypatch):
    printed = printed_by("a_new_model.ipynb", tmp_path, monkeypatch)
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
