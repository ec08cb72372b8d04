"""Figure 5: Hinton diagrams of the log standard deviations of p(h | q), by the word a question starts with (WikiQA)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.corpora.question_answers import subset
from varitext.experiments.answer_fits import DATA, fitted_ranker, load_part
from varitext.experiments.runs import Experiment, Plan, Record, Run, markdown_table, rounded
from varitext.report.answers.hinton import GROUPS, PER_GROUP, hinton_figure, prior_log_std, rows_by_group
from varitext.report.drawing.saving import svg_text

CORPUS = "wikiqa"
SEEDS = 10


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        yield Run({"model": "nasm", "seed": seed}, partial(measure, seed, plan))


def measure(seed: int, plan: Plan) -> dict[str, Any]:
    ranker = fitted_ranker(CORPUS, "nasm", seed, plan)
    test = subset(load_part(CORPUS, "test", plan), DATA[CORPUS].protocol)
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
    for group in GROUPS:
        found = [record["result"][group] for record in records if group in record["result"]]
        if found:
            names = ("mean", "positive", "spread_over_questions")
            figures = [f"{np.mean([one[name] for one in found]):.4f}" for name in names]
            rows.append([group, str(found[0]["n"]), *figures, str(len(found))])
    return markdown_table(head, rows)


def figure(records: list[Record]) -> str:
    shown: dict[str, Any] = next((one["result"] for one in records if one["settings"]["seed"] == 0), {})
    values = {group: np.array(shown[group]["log_std"]) for group in GROUPS if "log_std" in shown.get(group, {})}
    return svg_text(hinton_figure(values))


EXPERIMENT = Experiment(
    "hinton", "log standard deviations of p(h | q) by question word (Figure 5)", runs, table, figure
)
