"""Overfitting of LSTM + Att and NASM (paper, section 6: from iteration 20 and about 35), on WikiQA.

Both train without early stopping, with the same settings; each epoch records its dev log loss and dev MAP.
"""

from functools import partial
from typing import Any

import numpy as np

from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import fit_ranker, titles
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, results, rounded

CORPUS = "wikiqa"
EPOCHS = 40
SEEDS = 3
PAPER = {"lstm_attention": 20, "nasm": 35}


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    epochs = {} if plan.quick else {"epochs": EPOCHS, "patience": EPOCHS}
    history = fit_ranker(CORPUS, model, seed, plan, **epochs).fitted_.history
    names = ("dev_map", "dev_log_loss", "dev_kl")
    return {name: rounded((record[name] for record in history), 5) for name in names}


def table(records: list[Record]) -> str:
    head = ["", "paper: overfits from", "lowest dev log loss at epoch", "highest dev MAP at epoch", "dev MAP there"]
    head += [f"dev MAP at epoch {EPOCHS}", "seeds"]
    return markdown_table(head, [_row(model, results(records, model=model)) for model in PAPER])


def _row(model: str, found: list[dict[str, Any]]) -> list[str]:
    losses = [int(np.argmin(one["dev_log_loss"])) for one in found]
    best = [int(np.argmax(one["dev_map"])) for one in found]
    peak, last = (np.mean([choose(one["dev_map"]) for one in found]) for choose in (max, lambda values: values[-1]))
    epochs = [" / ".join(map(str, sorted(turns))) for turns in (losses, best)]
    return [titles()[model], f"iteration {PAPER[model]}", *epochs, f"{peak:.3f}", f"{last:.3f}", str(len(found))]


RUNS = partial(grid, measure, SEEDS, model=PAPER)
EXPERIMENT = Experiment("overfitting", ABOUT["overfitting"], RUNS, table)
