"""The corpora of experiments, replaced by small ones; everything else is real."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from synthetic import topic_documents

from varitext import DocumentModel
from varitext.corpora.documents import Documents
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.corpora.word_vectors import WordVectors
from varitext.models.answers import vocabulary
from varitext.models.answers.vocabulary import minilm_vectors
from varitext.reproduce import answer_fits, document_fits, table1b, table2
from varitext.reproduce.document_fits import NEWSGROUPS
from varitext.text import Vocabulary

KINDS = {"who": ("king", "author"), "where": ("city", "river"), "when": ("year", "month"), "how": ("slowly", "fast")}
KINDS |= {"what": ("thing", "tool")}
EVERY_TOPIC = [word for words in table2.PAPER.values() for word in words.split()]
WORDS = Vocabulary(tuple(dict.fromkeys([*table1b.WORDS, *EVERY_TOPIC])))
COUNTS = topic_documents(documents=160, words=len(WORDS), topics=4)
LABELS = tuple(f"topic {topic}" for topic in np.random.default_rng(0).integers(4, size=160))  # as drawn there
PARTS = {
    name: Documents(NEWSGROUPS, name, (), counts=COUNTS[rows], vocabulary=WORDS, labels=LABELS[rows])
    for name, rows in (("train", slice(0, 120)), ("test", slice(120, 160)))
}

UNSEEN = 1000


def questions(number: int, seed: int) -> QuestionAnswers:
    """The first candidate is correct."""
    generator = np.random.default_rng(seed)
    made = []
    for place in range(number):
        asked = list(KINDS)[place % len(KINDS)]
        kinds = [asked, *generator.choice([kind for kind in KINDS if kind != asked], 3)]
        words = [("it", "was", "the", str(generator.choice(KINDS[kind]))) for kind in kinds]
        answers = [Candidate(f"{place}-{i}", one, "it was the king", int(i == 0), i) for i, one in enumerate(words)]
        made.append(Question(str(place), (asked, "was", "it"), f"{asked} was it", tuple(answers)))
    return QuestionAnswers("small", "train", (), tuple(made))


def use_small_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"train": questions(30, 0), "dev": questions(10, 1), "test": questions(15, 2)}
    parts["train-all"] = parts["train"]
    monkeypatch.setattr(answer_fits, "load_questions", lambda corpus, part, data_dir=None: parts[part])
    monkeypatch.setattr(vocabulary, "minilm_vectors", lambda words, dim: vectors_of_minilm(tuple(words), dim))
    monkeypatch.delenv("VARITEXT_DATA", raising=False)


@cache
def vectors_of_minilm(words: tuple[str, ...], dim: int) -> WordVectors:
    """Once for all models that learn from the same questions, with a few of the 24,000 words that none of them has."""
    found = minilm_vectors(words, dim)
    kept = slice(len(words) + UNSEEN)
    return replace(found, words=found.words[kept], vectors=found.vectors[kept])


def use_small_documents(monkeypatch: pytest.MonkeyPatch, *modules: object) -> None:
    """K is 5 and topics are 3, also in other modules that make models."""
    monkeypatch.setattr(document_fits, "_loaded", lambda corpus, part, data_dir, most: PARTS[part])
    corpora = {
        name: SimpleNamespace(locate=lambda data_dir, name=name: name == NEWSGROUPS) for name in document_fits.CORPORA
    }
    monkeypatch.setattr(document_fits, "CORPORA", corpora)
    for module in (document_fits, *modules):
        monkeypatch.setattr(module, "DocumentModel", small_model)
    small_model.load = DocumentModel.load


def small_model(model: str, latent_dim: int, **settings: object) -> DocumentModel:
    return DocumentModel(model, 5, **{"n_topics": 3} | settings)
