"""Small models to serve, and the real command that serves them."""

import re
import subprocess
from pathlib import Path

import numpy as np
from command_line import forked
from made_up_questions import made_up

from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe
from varitext.documents.model import DocumentModel

SUBJECTS = ("orbit moon shuttle launch rocket", "goal match team league striker", "bread flour oven yeast dough")
HOSTILE = "<script>alert(1)</script>"


def texts(n: int = 90, seed: int = 0) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(SUBJECTS[i % 3].split(), 12)) for i in range(n)]


def fitted_news() -> DocumentModel:
    return DocumentModel(latent_dim=3, epochs=8, threads=1, n_topics=3).fit(texts())


def fitted_ranker() -> AnswerRanker:
    sizes = {"latent_dim": 4, "embedding_dim": 16, "vectors": "random", "epochs": 2, "batch_size": 40, "threads": 1}
    ranker = AnswerRanker("nasm", recipe=AnswerRecipe(initialization="forget_bias"), **sizes)  # with even attention
    return ranker.fit(made_up(60, 0), made_up(20, 1))


def started(*folders: Path) -> tuple[subprocess.Popen, str]:
    """The server and its address, once it listens."""
    server = forked("serve", *folders, "--port", 0, "--threads", 1, "--log-level", "error", stdout=None)
    said = server.stderr.readline()
    assert "model" in said, said
    return server, re.search(r"http://\S+", said)[0]
