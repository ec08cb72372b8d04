"""How fast the default ranker is on WikiQA: a fit, 1,000 candidates of one question, and many questions at once.

    python benchmarks/default_ranker.py [--quick] [--json results/default_ranker.json]

Wall-clock seconds with two threads, medians of several rounds. Many questions are ranked by one call of
`rank_many`, and by a call of `rank` for each. `--quick` fits for one epoch on 60 questions: it shows that this runs.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.files import write_json
from varitext.runtime.provenance import provenance

THREADS, ROUNDS = 2, 5
CANDIDATES, QUESTIONS = 1000, 120


def measure(quick: bool) -> dict[str, float]:
    train, dev, test = (load_questions("wikiqa", part) for part in ("train", "dev", "test"))
    if quick:
        train = replace(train, questions=subset(train, "answerable").questions[:60])
    ranker = AnswerRanker(threads=THREADS, epochs=1 if quick else None)
    fit_seconds = _seconds(lambda: ranker.fit(train, dev))
    found = {"threads": THREADS, "cores": os.cpu_count() or 1, "fit_seconds": fit_seconds}
    return found | one_question(ranker, test) | many_questions(ranker, test)


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
        print(f"{name:32} {value:.4g}")
    if arguments.json:
        write_json(arguments.json, {**found, **provenance()})
