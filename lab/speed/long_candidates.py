"""Right sentences inside passages: does reading in windows keep their rank, and how long should a window be?

Each right sentence of WikiQA's dev questions gets 160 more words around it, of wrong sentences of its page and, if
these are too few, of other pages. Needs the extra `minilm`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from varitext.answers import windows
from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers, sentence_words, subset
from varitext.evaluation.ranking import ranking_record

MODELS = ("bm25", "minilm")
WINDOWS = (30, 45, 60, 80, 100)  # words
MORE_WORDS = 160


def measure(quick: bool) -> dict[str, Any]:
    dev = subset(load_questions("wikiqa", "dev"), "answerable")
    dev = replace(dev, questions=dev.questions[:: 20 if quick else 1])
    longer = passages(dev)
    found: dict[str, Any] = {"share_above_limit": share_above_limit()}
    for model in MODELS[: 1 if quick else 2]:
        ranker = AnswerRanker(model, threads=1)
        found[f"{model}, sentences"] = measured(ranker, dev)
        with reading(whole=1_000_000):
            found[f"{model}, passages read whole"] = measured(ranker, longer)
        for words in WINDOWS:
            with reading(words):
                found[f"{model}, windows of {words} words"] = measured(ranker, longer)
    return found


def share_above_limit() -> dict[str, float]:
    """The share of candidates that are read in windows."""
    found = {}
    for name in ("wikiqa", "qasent"):
        every = [one for part in ("train", "dev", "test") for one in load_questions(name, part).questions]
        lengths = np.array([len(one.words) for question in every for one in question.candidates])
        found[name] = float((lengths > windows.LONGEST_WHOLE).mean())
    return found


@contextmanager
def reading(window: int = windows.WINDOW, whole: int = windows.LONGEST_WHOLE) -> Iterator[None]:
    kept = windows.WINDOW, windows.LONGEST_WHOLE
    windows.WINDOW, windows.LONGEST_WHOLE = window, whole
    yield
    windows.WINDOW, windows.LONGEST_WHOLE = kept


def measured(ranker: AnswerRanker, corpus: QuestionAnswers) -> dict[str, float]:
    probability = ranker.predict_proba(corpus)
    ranking = ranking_record(probability, corpus.labels, corpus.groups)
    return {
        "map": ranking.map,
        "mrr": ranking.mrr,
        "probability_of_right": float(probability[corpus.labels == 1].mean()),
    }


def passages(dev: QuestionAnswers) -> QuestionAnswers:
    """Right candidates with more words around them."""
    generator = np.random.default_rng(0)
    elsewhere = [one.text for question in dev.questions for one in question.candidates if not one.label]
    questions = []
    for question in dev.questions:
        longer = (embedded(one, question, elsewhere, generator) if one.label else one for one in question.candidates)
        questions.append(question._replace(candidates=tuple(longer)))
    return replace(dev, questions=tuple(questions))


def embedded(
    candidate: Candidate, question: Question, elsewhere: list[str], generator: np.random.Generator
) -> Candidate:
    """The candidate with wrong sentences of its page before and after it."""
    page = [one.text for one in question.candidates if not one.label]
    more = [*generator.permutation(page), *generator.choice(elsewhere, 20)]
    lengths = np.cumsum([len(text.split()) for text in more])
    chosen = list(map(str, more[: int(np.searchsorted(lengths, MORE_WORDS)) + 1]))
    place = int(generator.integers(len(chosen) + 1))
    text = " ".join([*chosen[:place], candidate.text, *chosen[place:]])
    return candidate._replace(text=text, words=sentence_words(text))
