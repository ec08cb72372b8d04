"""The paper's tables and figures, one file each: settings, the paper's values, and our measurements.

`varitext reproduce NAME` runs one. Modules are imported when they are needed: the names are known without torch.
"""

import importlib
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.reproduce.engine import Experiment

EXPERIMENTS = {  # as typed: the module
    "table1a": "varitext.reproduce.table1a",
    "table1b": "varitext.reproduce.table1b",
    "table2": "varitext.reproduce.table2",
    "tsne": "varitext.reproduce.tsne",
    "table3": "varitext.reproduce.table3",
    "table4": "varitext.reproduce.table4",
    "map-by-samples": "varitext.reproduce.map_by_samples",
    "attention": "varitext.reproduce.attention",
    "hinton": "varitext.reproduce.hinton",
    "question-types": "varitext.reproduce.question_types",
    "overfitting": "varitext.reproduce.overfitting",
    "complexity": "varitext.reproduce.complexity",
}


def experiment_named(name: str) -> "Experiment":
    if name not in EXPERIMENTS:
        raise InputError(f"Unknown experiment {name!r}. Experiments: {', '.join(EXPERIMENTS)}.")
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment
