"""Figure 5: Hinton diagrams of the log standard deviations of p(h | q), by the word a question starts with (WikiQA)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.evaluation.question_words import question_word
from varitext.experiments.answer_fits import DATA, fitted_ranker, load_part
from varitext.experiments.drawing import Drawing
from varitext.experiments.runs import Experiment, Plan, Record, Run, markdown_table, rounded
from varitext.pair_batches import PairBatches

CORPUS = "wikiqa"
SEEDS = 10
GROUPS = ("how", "what", "who", "when", "where")
PER_GROUP = 10  # questions of each, as in the paper: 50 distributions
CELL = 9  # pixels


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        yield Run({"model": "nasm", "seed": seed}, lambda seed=seed: measure(seed, plan))


def measure(seed: int, plan: Plan) -> dict[str, Any]:
    ranker = fitted_ranker(CORPUS, "nasm", seed, plan)
    test = subset(load_part(CORPUS, "test", plan), DATA[CORPUS].protocol)
    log_std = np.concatenate(
        [
            ranker.network_.prior_by_question(ranker.network_.encode(batch)).log_std.numpy()
            for batch in PairBatches(test, ranker.vocabulary_, 512).in_order()
        ]
    )  # [questions, K]
    found = {group: _summary(log_std[rows]) for group, rows in _rows_by_group(test).items() if len(rows)}
    if seed == 0:
        for group, rows in _rows_by_group(test).items():
            if len(rows):
                found[group]["log_std"] = [rounded(row, 3) for row in log_std[rows[:PER_GROUP]]]
    return found


def _rows_by_group(test: QuestionAnswers) -> dict[str, np.ndarray]:
    groups = np.array([question_word(question.text, leading=True) for question in test.questions])
    return {group: np.flatnonzero(groups == group) for group in GROUPS}


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
    """A square per question and dimension: as large as its log std is far from zero; white above zero, black below."""
    shown = next((one["result"] for one in records if one["settings"]["seed"] == 0), {})
    values = {group: np.array(shown[group]["log_std"]) for group in GROUPS if "log_std" in shown.get(group, {})}
    dims = max((array.shape[1] for array in values.values()), default=1)
    height = sum(len(array) * CELL + 22 for array in values.values()) + 10
    drawing = Drawing(70 + dims * CELL, height, "Log standard deviations of p(h | q)")
    largest, top = max((np.abs(array).max() for array in values.values()), default=1.0), 10.0
    for group, array in values.items():
        drawing.text(8, top + len(array) * CELL / 2, group, 13)
        drawing.rectangle(60, top, dims * CELL, len(array) * CELL, "#8b949e")
        for (row, column), value in np.ndenumerate(array):
            side = CELL * np.sqrt(abs(value) / largest) if largest > 0 else 0.0
            x, y = 60 + (column + 0.5) * CELL - side / 2, top + (row + 0.5) * CELL - side / 2
            drawing.rectangle(x, y, side, side, "white" if value > 0 else "black")
        top += len(array) * CELL + 22
    return drawing.svg()


EXPERIMENT = Experiment(
    "hinton", "log standard deviations of p(h | q) by question word (Figure 5)", runs, table, figure
)
