"""When LSTM + Att and NASM turn (paper, section 6: at the 20th and around the 35th iteration), on WikiQA.

Both train on without early stopping, with the same settings; each epoch leaves its dev log loss and dev MAP.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.reproduce.answer_fits import fit_ranker, titles
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, rounded

CORPUS = "wikiqa"
EPOCHS = 40
SEEDS = 3
PAPER = {"lstm_attention": 20, "nasm": 35}


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        for model in PAPER:
            yield Run({"model": model, "seed": seed}, partial(measure, model, seed, plan))


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    epochs = {} if plan.quick else {"epochs": EPOCHS, "patience": EPOCHS}
    history = fit_ranker(CORPUS, model, seed, plan, **epochs).fitted_.history
    names = ("dev_map", "dev_log_loss", "dev_kl")
    return {name: rounded((record[name] for record in history), 5) for name in names}


def table(records: list[Record]) -> str:
    head = ["", "paper: overfits from", "lowest dev log loss at epoch", "highest dev MAP at epoch", "dev MAP there"]
    head += [f"dev MAP at epoch {EPOCHS}", "seeds"]
    return markdown_table(head, [_row(model, records) for model in PAPER])


def _row(model: str, records: list[Record]) -> list[str]:
    found = [record["result"] for record in records if record["settings"]["model"] == model]
    losses = [int(np.argmin(one["dev_log_loss"])) for one in found]
    best = [int(np.argmax(one["dev_map"])) for one in found]
    peak, last = (np.mean([choose(one["dev_map"]) for one in found]) for choose in (max, lambda values: values[-1]))
    epochs = [" / ".join(map(str, sorted(turns))) for turns in (losses, best)]
    return [titles()[model], f"iteration {PAPER[model]}", *epochs, f"{peak:.3f}", f"{last:.3f}", str(len(found))]


EXPERIMENT = Experiment("overfitting", "at which epoch LSTM + Att and NASM turn", runs, table)
