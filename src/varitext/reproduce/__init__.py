"""The paper's tables and figures, one file each: settings, the paper's values, and our measurements.

`varitext reproduce NAME` runs one. Modules are imported when they are needed: the names are known without torch.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.reproduce.engine import Experiment

NAMES = (
    *("table1a", "table1b", "table2", "tsne", "table3", "table4", "map-by-samples", "attention", "hinton"),
    *("question-types", "overfitting", "gradients", "stochastic-attention", "kl-term", "complexity"),
)
EXPERIMENTS = {name: f"varitext.reproduce.{name.replace('-', '_')}" for name in NAMES}  # as typed: the module


def experiment_named(name: str, known: Mapping[str, str] = EXPERIMENTS) -> "Experiment":
    if name not in known:
        raise InputError(f"Unknown experiment {name!r}. Experiments: {', '.join(known)}.")
    experiment: Experiment = importlib.import_module(known[name]).EXPERIMENT
    return experiment
