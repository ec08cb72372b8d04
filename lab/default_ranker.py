"""The default ranker on WikiQA: how fast a fit, 1,000 candidates of one question and many questions are, and what it
says of sentences that have nothing to do with the question.

    python benchmarks/default_ranker.py [--quick] [--json results/default_ranker.json]

Wall-clock seconds with two threads, medians of several rounds. Many questions are ranked by one call of
`rank_many`, and by a call of `rank` for each. Unrelated sentences are candidates of other test questions, drawn at
random: 50 among a question's own, 50 alone, and 1,000 alone. `--quick` fits for one epoch on 60 questions: it shows
that this runs.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.files import write_json
from varitext.reproduce.provenance import provenance

THREADS, ROUNDS = 2, 5
CANDIDATES, QUESTIONS = 1000, 120
ASKED, UNRELATED, ASKED_OF_MANY = 200, 50, 20  # questions, sentences put to each; questions that get CANDIDATES of them


def measure(quick: bool) -> dict[str, Any]:
    train, dev, test = (load_questions("wikiqa", part) for part in ("train", "dev", "test"))
    if quick:
        train = replace(train, questions=subset(train, "answerable").questions[:60])
    ranker = AnswerRanker(threads=THREADS, epochs=1 if quick else None)
    fit_seconds = _seconds(lambda: ranker.fit(train, dev))
    found = {"threads": THREADS, "cores": os.cpu_count() or 1, "fit_seconds": fit_seconds}
    return found | one_question(ranker, test) | many_questions(ranker, test) | {"unrelated": unrelated(ranker, test)}


def one_question(ranker: AnswerRanker, corpus: QuestionAnswers) -> dict[str, float]:
    texts = [one.text for question in corpus.questions for one in question.candidates][:CANDIDATES]
    asked = corpus.questions[0].text
    rounds = [_seconds(lambda: ranker.rank(asked, texts)) for _ in range(ROUNDS)]
    return {"candidates": len(texts), "candidates_seconds": statistics.median(rounds)}


def many_questions(ranker: AnswerRanker, corpus: QuestionAnswers) -> dict[str, float]:
    asked = [(one.text, [candidate.text for candidate in one.candidates]) for one in corpus.questions[:QUESTIONS]]
    together, singly = [], []
    for _ in range(ROUNDS):
        together.append(_seconds(lambda: ranker.rank_many(asked)))
        singly.append(_seconds(lambda: [ranker.rank(question, candidates) for question, candidates in asked]))
    return {
        "questions": len(asked),
        "questions_at_once_seconds": statistics.median(together),
        "questions_one_by_one_seconds": statistics.median(singly),
    }


def unrelated(ranker: AnswerRanker, corpus: QuestionAnswers) -> dict[str, dict[str, float]]:
    """What the ranker thinks of sentences of other questions, beside a question's own candidates and by themselves."""
    generator = np.random.default_rng(0)
    of_question = [[one.text for one in question.candidates] for question in corpus.questions]

    def drawn(place: int, number: int) -> list[str]:
        others = [text for other, texts in enumerate(of_question) if other != place for text in texts]
        return [others[row] for row in generator.choice(len(others), number, replace=False)]

    asked = generator.choice(len(of_question), ASKED, replace=False)
    strangers = {place: drawn(place, UNRELATED) for place in asked}
    many = {place: drawn(place, CANDIDATES) for place in asked[:ASKED_OF_MANY]}
    kinds = {
        "among its own": [(place, of_question[place] + strangers[place], len(of_question[place])) for place in asked],
        "alone": [(place, strangers[place], 0) for place in asked],
        "a thousand alone": [(place, many[place], 0) for place in many],
    }
    return {name: _thought_of(ranker, corpus, each) for name, each in kinds.items()}


def _thought_of(
    ranker: AnswerRanker, corpus: QuestionAnswers, lists: list[tuple[int, list[str], int]]
) -> dict[str, float]:
    """Of candidates from a place in each list on: that they are right; and P(none) of the whole lists."""
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


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = measure(arguments.quick)
    for name, value in found.items():
        print(f"{name:32} {value if isinstance(value, dict) else f'{value:.4g}'}")
    if arguments.json:
        write_json(arguments.json, {**found, **provenance()})
