"""Initialization of LSTM, LSTM + Att and NASM, compared on WikiQA's training questions.

Three-fold cross-validation as in `recipes.py`; no test question is used.
"""

from functools import partial
from typing import Any

from lab.experiments.recipes import COLUMNS, cross_validated
from varitext.reproduce.answer_fits import OWN_MODELS, titles
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, mean, results

SEEDS = 3
INITIALIZATIONS = {
    "PyTorch's": "pytorch",
    "forget bias": "forget_bias",
    "sums of words": "word_sums",
}


def measure(model: str, change: str, seed: int, plan: Plan) -> dict[str, Any]:
    return cross_validated({"model": model, "seed": seed, "initialization": INITIALIZATIONS[change]}, plan)


def table(records: list[Record]) -> str:
    rows = []
    for model in OWN_MODELS:
        for change in INITIALIZATIONS:
            if found := results(records, model=model, change=change):
                rows.append([titles()[model], change, *(mean(found, name) for name in COLUMNS), str(len(found))])
    return markdown_table(["", "initialization", *COLUMNS.values(), "seeds"], rows)


RUNS = partial(grid, measure, SEEDS, model=OWN_MODELS, change=INITIALIZATIONS)
EXPERIMENT = Experiment("initialization", "initialization of the paper's networks, on training questions", RUNS, table)
