"""Rankers on text they were not fitted on: WikiQA and QASent, each fitted and the other ranked, and search.

All figures are of test questions, candidates without positions. A search takes all sentences of a test part as one
corpus: of the questions that have a right answer there, the share whose first sentence is right, after the 50 best
that BM25 finds were ranked.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lab.speed.untrained import FOUND
from varitext.answers.index import CandidateIndex
from varitext.answers.ranker import AnswerRanker
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.pretrained import NEEDED, is_installed
from varitext.reproduce.answer_fits import DATA, fit_ranker, load_part
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results

UNTRAINED = "no fit"
FITTED_ON = {"minilm": ("wikiqa",), "compare": tuple(DATA)}
SEEDS = {"bm25": 1, "minilm": 1, "compare": 2}


def runs(plan: Plan) -> Iterator[Run]:
    for model, seeds in SEEDS.items():
        missing = NEEDED if model == "minilm" and not is_installed() else None
        if model != "compare":
            yield Run(
                {"model": model, "fitted_on": UNTRAINED, "seed": 0}, partial(measure, model, None, 0, plan), missing
            )
        for corpus in FITTED_ON.get(model, ()):
            for seed in plan.seeds_or(seeds)[:seeds]:
                settings = {"model": model, "fitted_on": corpus, "seed": seed}
                yield Run(settings, partial(measure, model, corpus, seed, plan), missing)


def measure(model: str, fitted_on: str | None, seed: int, plan: Plan) -> dict[str, Any]:
    ranker = AnswerRanker(model, threads=plan.threads)
    if fitted_on is not None:
        ranker = fit_ranker(fitted_on, model, seed, plan)
    found = {}
    for corpus, data in DATA.items():
        test = load_part(corpus, "test", plan)
        own = _without_positions(subset(test, data.protocol))
        found[corpus] = ranking_record(ranker.predict_proba(own), own.labels, own.groups, data.protocol).map
        found[f"{corpus}_search"] = _first_right(ranker, test)
    return {name: round(value, 4) for name, value in found.items()}


def table(records: list[Record]) -> str:
    rows = []
    names = [*DATA, *(f"{corpus}_search" for corpus in DATA)]
    for fitted_on in (UNTRAINED, *DATA):
        for model in SEEDS:
            if found := results(records, model=model, fitted_on=fitted_on):
                rows.append([fitted_on, model, str(len(found)), *(mean(found, name, ".3f") for name in names)])
    head = ["fitted on", "ranker", "seeds", "MAP, WikiQA", "MAP, QASent", "search WikiQA", "search QASent"]
    return markdown_table(head, rows)


def _without_positions(part: QuestionAnswers) -> QuestionAnswers:
    questions = (
        question._replace(candidates=tuple(one._replace(position=None) for one in question.candidates))
        for question in part.questions
    )
    return replace(part, questions=tuple(questions))


def _first_right(ranker: AnswerRanker, part: QuestionAnswers) -> float:
    texts = list(dict.fromkeys(one.text for question in part.questions for one in question.candidates))
    index, hits = CandidateIndex(texts), []
    for question in subset(part, "answerable").questions:
        right = {one.text for one in question.candidates if one.label}
        hits.append(ranker.search(question.text, index, FOUND).candidates[0].text in right)
    return float(np.mean(hits))


EXPERIMENT = Experiment("transfer", "rankers on text they were not fitted on, and in search", runs, table)
