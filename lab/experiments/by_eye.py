"""Handwritten questions with tempting wrong candidates: for how many does each ranker put the right answer first?

Wrong candidates echo the question, contain a negation, use the right words about something else, or name a wrong year.
`examples/tempting_questions.csv` was not changed after any ranker had been run on it. `examples/hard_questions.csv` was
reworded after a first trial in which no ranker put a right answer first.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions
from varitext.models.answers.pretrained import NEEDED, is_installed
from varitext.reproduce.answer_fits import fitted_ranker
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, results

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = ("tempting_questions", "hard_questions")
RANKERS = (("minilm", None), ("bm25", None), ("overlap", "wikiqa"), ("compare", "wikiqa"))  # what it is fitted on


def runs(plan: Plan) -> Iterator[Run]:
    for model, corpus in RANKERS:
        missing = NEEDED if model == "minilm" and not is_installed() else None
        yield Run({"model": model, "fitted_on": corpus or "no fit"}, partial(measure, model, corpus, plan), missing)


def measure(model: str, corpus: str | None, plan: Plan) -> dict[str, Any]:
    """For each file, the questions for which a wrong candidate comes first."""
    ranker = AnswerRanker(model, threads=plan.threads) if corpus is None else fitted_ranker(corpus, model, 0, plan)
    return {name: missed(ranker, EXAMPLES / f"{name}.csv") for name in FILES}


def missed(ranker: AnswerRanker, file: Path) -> dict[str, str]:
    """The candidate that comes first, by question."""
    questions = load_questions(file, "all")
    found = {}
    for question, ranking in zip(questions.questions, ranker.rank_many(questions), strict=True):
        first = ranking.candidates[0]
        if not question.candidates[first.place].label:
            found[question.text] = first.text
    return found


def table(records: list[Record]) -> str:
    rows = []
    for model, corpus in RANKERS:
        for found in results(records, model=model, fitted_on=corpus or "no fit"):
            counts = (f"{15 - len(found[name])} of 15" for name in FILES)
            rows.append([f"`{model}`, {'no fit' if corpus is None else f'fitted on {corpus}'}", *counts])
    return markdown_table(["ranker", "`tempting_questions.csv`", "`hard_questions.csv`"], rows)


EXPERIMENT = Experiment("by-eye", "made-up questions with tempting wrong candidates", runs, table)
