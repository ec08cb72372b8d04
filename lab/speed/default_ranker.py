"""Speed of the default ranker on WikiQA, and its probabilities for sentences unrelated to the question.

Wall-clock seconds on two threads, medians of several rounds. Unrelated sentences are candidates of other test
questions, drawn at random: 50 among a question's own, 50 alone, and 1,000 alone.
"""

import os
from dataclasses import replace
from typing import Any

import numpy as np

from lab.speed.timing import median_seconds, seconds_of
from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, subset

THREADS, ROUNDS = 2, 5
CANDIDATES, QUESTIONS = 1000, 120
ASKED, UNRELATED, ASKED_OF_MANY = 200, 50, 20  # questions, sentences put to each; questions that get CANDIDATES of them


def measure(quick: bool) -> dict[str, Any]:
    train, dev, test = (load_questions("wikiqa", part) for part in ("train", "dev", "test"))
    if quick:
        train = replace(train, questions=subset(train, "answerable").questions[:60])
    ranker = AnswerRanker(threads=THREADS, epochs=1 if quick else None)
    fit_seconds = seconds_of(lambda: ranker.fit(train, dev))
    found = {"threads": THREADS, "cores": os.cpu_count() or 1, "fit_seconds": fit_seconds}
    sentences = unrelated(ranker, test, 5 if quick else ASKED)
    return found | one_question(ranker, test) | many_questions(ranker, test) | {"unrelated": sentences}


def one_question(ranker: AnswerRanker, corpus: QuestionAnswers) -> dict[str, float]:
    texts = [one.text for question in corpus.questions for one in question.candidates][:CANDIDATES]
    asked = corpus.questions[0].text
    (seconds,) = median_seconds(lambda: ranker.rank(asked, texts), repeats=ROUNDS)
    return {"candidates": len(texts), "candidates_seconds": seconds}


def many_questions(ranker: AnswerRanker, corpus: QuestionAnswers) -> dict[str, float]:
    asked = [(one.text, [candidate.text for candidate in one.candidates]) for one in corpus.questions[:QUESTIONS]]
    together, singly = median_seconds(
        lambda: ranker.rank_many(asked),
        lambda: [ranker.rank(question, candidates) for question, candidates in asked],
        repeats=ROUNDS,
    )
    return {"questions": len(asked), "questions_at_once_seconds": together, "questions_one_by_one_seconds": singly}


def unrelated(ranker: AnswerRanker, corpus: QuestionAnswers, questions: int) -> dict[str, dict[str, float]]:
    """Probabilities of sentences of other questions, among a question's own candidates and alone."""
    generator = np.random.default_rng(0)
    of_question = [[one.text for one in question.candidates] for question in corpus.questions]

    def drawn(place: int, number: int) -> list[str]:
        others = [text for other, texts in enumerate(of_question) if other != place for text in texts]
        return [others[row] for row in generator.choice(len(others), number, replace=False)]

    asked = generator.choice(len(of_question), questions, replace=False)
    unrelated_to = {place: drawn(place, UNRELATED) for place in asked}
    many = {place: drawn(place, CANDIDATES) for place in asked[:ASKED_OF_MANY]}
    kinds = {
        "among its own": [
            (place, of_question[place] + unrelated_to[place], len(of_question[place])) for place in asked
        ],
        "alone": [(place, unrelated_to[place], 0) for place in asked],
        "a thousand alone": [(place, many[place], 0) for place in many],
    }
    return {name: _probabilities(ranker, corpus, each) for name, each in kinds.items()}


def _probabilities(
    ranker: AnswerRanker, corpus: QuestionAnswers, lists: list[tuple[int, list[str], int]]
) -> dict[str, float]:
    """P(right) of the candidates from a place in each list on, and P(none) of the lists."""
    rankings = ranker.rank_many([(corpus.questions[place].text, texts) for place, texts, _ in lists])
    right = np.array(
        [
            one.probability
            for (_, _, own), ranking in zip(lists, rankings, strict=True)
            for one in ranking.candidates
            if one.place >= own
        ]
    )
    return {
        "questions": len(lists),
        "sentences": len(right),
        "mean_probability": float(right.mean()),
        "highest_probability": float(right.max()),
        "mean_probability_none": float(np.mean([ranking.probability_none for ranking in rankings])),
    }
