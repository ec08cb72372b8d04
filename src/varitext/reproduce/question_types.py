"""MAP by the word a question starts with (paper, section 5.4: 'how' is hardest, .524), on WikiQA, ten seeds."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.evaluation.ranking import ranking_by_question_word
from varitext.reproduce.answer_fits import DATA, SEEDS, fitted_ranker, load_part, titles
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

CORPUS = "wikiqa"
GROUPS = ("how", "what", "who", "when", "where")
PAPER = {"how": 0.524}


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        for model in ("lstm_attention", "nasm"):
            yield Run({"model": model, "seed": seed}, partial(measure, model, seed, plan))


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    ranker, test = fitted_ranker(CORPUS, model, seed, plan), load_part(CORPUS, "test", plan)
    ranking = ranker.evaluate(test, DATA[CORPUS].protocol).ranking
    texts = {question.id: question.text for question in test.questions}
    groups = ranking_by_question_word(ranking, texts, leading=True)
    return {group.question_word: {"map": round(group.map, 5), "n": group.n_questions} for group in groups}


def table(records: list[Record]) -> str:
    models = sorted({record["settings"]["model"] for record in records})
    head = ["questions that start with", "number", "paper", *(f"{titles()[model]} MAP" for model in models)]
    rows = []
    for group in GROUPS:
        number = records[0]["result"][group]["n"]
        paper = f"{PAPER[group]:.3f}" if group in PAPER else ""
        rows.append([group, str(number), paper, *(_mean_and_spread(records, model, group) for model in models)])
    return markdown_table(head, rows)


def _mean_and_spread(records: list[Record], model: str, group: str) -> str:
    values = [one["result"][group]["map"] for one in records if one["settings"]["model"] == model]
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


EXPERIMENT = Experiment("question-types", "MAP by the word a question starts with", runs, table)
