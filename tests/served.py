"""Small models to serve, and the real command that serves them."""

import re
import subprocess
from pathlib import Path

import numpy as np
from command_line import forked

from varitext.answers.ranker import AnswerRanker
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.documents.model import DocumentModel

SUBJECTS = ("orbit moon shuttle launch rocket", "goal match team league striker", "bread flour oven yeast dough")
HOSTILE = "<script>alert(1)</script>"


def texts(n: int = 90, seed: int = 0) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(SUBJECTS[i % 3].split(), 12)) for i in range(n)]


def fitted_news() -> DocumentModel:
    return DocumentModel(latent_dim=3, epochs=8, threads=1).fit(texts())


def questions(n: int, part: str) -> QuestionAnswers:
    """Who asks for a person, where for a place."""
    people, places = ("the king was old", "a queen and an author"), ("near a lake", "the old city of an island")
    made = []
    for number in range(n):
        asks, other = (people, places) if number % 2 else (places, people)
        sentences = [asks[number % 3 % 2], *other]
        answers = tuple(
            Candidate(f"{number}-{place}", tuple(sentence.split()), sentence, int(place == 0), place)
            for place, sentence in enumerate(sentences)
        )
        asked = f"{'who' if number % 2 else 'where'} was the {SUBJECTS[number % 3].split()[number % 5]}"
        made.append(Question(str(number), tuple(asked.split()), asked, answers))
    return QuestionAnswers("made up", part, (), tuple(made))


def fitted_ranker() -> AnswerRanker:
    ranker = AnswerRanker("nasm", latent_dim=4, embedding_dim=16, vectors="random", epochs=2, batch_size=40, threads=1)
    return ranker.fit(questions(60, "train"), questions(20, "dev"))


def started(*folders: Path) -> tuple[subprocess.Popen, str]:
    """The server and its address, once it listens."""
    server = forked("serve", *folders, "--port", 0, "--threads", 1, stdout=None)
    said = server.stderr.readline()
    assert "model" in said, said
    return server, re.search(r"http://\S+", said)[0]
