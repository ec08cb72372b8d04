"""Corpora so small that a fit takes about a second."""

import json
from pathlib import Path

import numpy as np

SUBJECTS = ("orbit moon shuttle launch rocket", "goal match team league striker", "bread flour oven yeast dough")
ANSWERS = {"who": "the king was old", "where": "near a lake", "when": "in that year", "how": "with some care"}


def texts(n: int = 160, seed: int = 0) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(SUBJECTS[i % 3].split(), 12)) for i in range(n)]


def write_documents(path: Path, seed: int = 0) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(seed=seed)))
    return path


def write_questions(path: Path, questions: int = 40, more_words: int = 0) -> Path:
    """With `more_words`, every answer is different, and an encoder takes longer to read them."""
    generator, rows = np.random.default_rng(0), []
    for number in range(questions):
        asked = list(ANSWERS)[number % len(ANSWERS)]
        question = f"{asked} was number {number} of the {generator.choice(SUBJECTS[number % 3].split())}"
        for kind, sentence in ANSWERS.items():
            words = generator.choice(SUBJECTS[number % 3].split(), 1 + more_words)
            answer = f"{sentence} {' '.join(words)}"
            rows.append({"question": question, "answer": answer, "label": int(kind == asked)})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


DOCUMENT_OPTIONS = ("--latent-dim", "3", "--epochs", "5", "--batch-size", "32", "--threads", "1")
ANSWER_OPTIONS = (
    *("--model", "nasm", "--counts", "--vectors", "random", "--latent-dim", "4", "--embedding-dim", "16"),
    *("--epochs", "2", "--batch-size", "40", "--threads", "1"),
)
MINILM_OPTIONS = ("--model", "minilm", "--epochs", "2", "--batch-size", "40", "--threads", "1")
