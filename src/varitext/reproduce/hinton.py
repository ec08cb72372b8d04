"""Figure 5: Hinton diagrams of the log standard deviations of p(h | q), by the word a question starts with (WikiQA)."""

from functools import partial
from typing import Any

import numpy as np

from varitext.report.attention import GROUPS, PER_GROUP, hinton_figure, prior_log_std, rows_by_group
from varitext.report.drawing import svg_text
from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import fitted_ranker, questions_for_testing, titles
from varitext.reproduce.engine import Experiment, Plan, Record, grid_of_models, markdown_table, mean, results, rounded

CORPUS = "wikiqa"
SEEDS = {"nasm": 5, "nasm_question": 3}


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    ranker = fitted_ranker(CORPUS, model, seed, plan)
    test = questions_for_testing(CORPUS, plan)
    log_std = prior_log_std(ranker, test)
    rows_of = rows_by_group(question.text for question in test.questions)
    found = {group: _summary(log_std[rows]) for group, rows in rows_of.items()}
    if seed == 0:
        for group, rows in rows_of.items():
            found[group]["log_std"] = [rounded(row, 3) for row in log_std[rows[:PER_GROUP]]]
    return found


def _summary(log_std: np.ndarray) -> dict[str, Any]:
    return {
        "mean": round(float(log_std.mean()), 5),
        "positive": round(float((log_std > 0).mean()), 5),
        "spread_over_questions": round(float(log_std.std(0).mean()), 5),
        "n": len(log_std),
    }


def table(records: list[Record]) -> str:
    head = ["questions that start with", "number", "mean log std", "share above 0", "spread over questions", "seeds"]
    rows = []
    for model in SEEDS:
        for group in GROUPS:
            found = [one[group] for one in results(records, model=model) if group in one]
            if found:
                figures = [mean(found, name) for name in ("mean", "positive", "spread_over_questions")]
                rows.append([titles()[model], group, str(found[0]["n"]), *figures, str(len(found))])
    return markdown_table(["", *head], rows)


def figure(records: list[Record]) -> str:
    shown = {
        titles()[model]: {group: np.array(found[group]["log_std"]) for group in GROUPS if group in found}
        for model in SEEDS
        for found in results(records, model=model, seed=0)
    }
    return svg_text(hinton_figure(shown))


RUNS = partial(grid_of_models, measure, SEEDS)
EXPERIMENT = Experiment("hinton", ABOUT["hinton"], RUNS, table, figure)
