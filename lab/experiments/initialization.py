"""How LSTM, LSTM + Att and NASM start (`models/answers/recurrent.py`), evaluated on WikiQA's training questions.

Not a table of the paper, but the evidence for a default: three-fold cross-validation as in `recipes.py`. No test
question is looked at.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from lab.experiments.recipes import cross_validated
from varitext.reproduce.answer_fits import OWN_MODELS, titles
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

SEEDS = 3
CHANGES: dict[str, dict[str, Any]] = {
    "PyTorch's": {"initialization": "pytorch"},
    "forget bias": {"initialization": "forget_bias"},
    "forget bias, same LSTMs, identity": {"initialization": "identity"},
    "forget bias, patience 10": {"initialization": "forget_bias", "patience": 10},
    "forget bias, 26 passes": {"initialization": "forget_bias", "epochs": 26},
}
SHARED_CHANGES = tuple(CHANGES)[:3]  # the other changes are of NASM alone


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        for change, chosen in CHANGES.items():
            for model in OWN_MODELS if change in SHARED_CHANGES else ("nasm",):
                settings = {"model": model, "change": change, "seed": seed}
                yield Run(settings, partial(cross_validated, {"model": model, "seed": seed} | chosen, plan))


def table(records: list[Record]) -> str:
    head = ["", "start", "alone", "+ Cnt", "+ Cnt + position", "dev MAP", "seeds"]
    rows = []
    for model in OWN_MODELS:
        for change in CHANGES:
            named = {"model": model, "change": change}
            found = [one["result"] for one in records if named.items() <= one["settings"].items()]
            if found:
                names = ("alone", "counts", "counts_position", "dev_map")
                means = [f"{np.mean([one[name] for one in found]):.4f}" for name in names]
                rows.append([titles()[model], change, *means, str(len(found))])
    return markdown_table(head, rows)


EXPERIMENT = Experiment("initialization", "how the paper's networks start, on training questions", runs, table)
