"""Small models to serve, and the real command that serves them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from test_answer_ranker import DEV, SMALL, TRAIN

from varitext.answers.ranker import AnswerRanker
from varitext.documents.model import DocumentModel

SUBJECTS = ("orbit moon shuttle launch rocket", "goal match team league striker", "bread flour oven yeast dough")
HOSTILE = "<script>alert(1)</script>"


def texts(n: int = 90, seed: int = 0) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(SUBJECTS[i % 3].split(), 12)) for i in range(n)]


def fitted_news() -> DocumentModel:
    return DocumentModel(latent_dim=3, epochs=8, threads=1).fit(texts())


def fitted_ranker() -> AnswerRanker:
    return AnswerRanker(**SMALL | {"epochs": 2}).fit(TRAIN, DEV)


def started(*folders: Path) -> tuple[subprocess.Popen, str]:
    """The server and its address, once it listens."""
    command = [sys.executable, "-c", "from varitext.cli import main; main()", "serve", *map(str, folders)]
    command += ["--port", "0", "--threads", "1"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = server.stderr.readline()
    assert "model" in said, said
    return server, re.search(r"http://\S+", said)[0]
