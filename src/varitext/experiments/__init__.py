"""The tables and figures of the paper, each one file: its settings, the paper's values, ours.

`varitext reproduce NAME` runs one. Modules are imported when they are asked for: their names are known without torch.
"""

import importlib
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.experiments.runs import Experiment

EXPERIMENTS = {  # what is typed, and the file
    "table1a": "table1a",
    "table1b": "table1b",
    "table2": "table2",
    "tsne": "tsne",
    "document-evaluation": "document_measures",
    "likelihoods": "likelihoods",
    "generality": "generality",
    "table3": "table3",
    "table4": "table4",
    "default-ranker": "default_ranker",
    "minilm": "pretrained_rankers",
    "feature-groups": "feature_groups",
    "map-by-samples": "map_by_samples",
    "attention": "attention",
    "hinton": "hinton",
    "living-latent": "living_latent",
    "question-types": "question_types",
    "overfitting": "overfitting",
    "complexity": "complexity",
    "recipes": "recipes",
    "starts": "starts",
    "updating": "continued_fits",
    "topics": "topics",
}


def experiment_named(name: str) -> "Experiment":
    if name not in EXPERIMENTS:
        raise InputError(f"no experiment is called {name!r}; there are: {', '.join(EXPERIMENTS)}")
    module = importlib.import_module(f"varitext.experiments.{EXPERIMENTS[name]}")
    experiment: Experiment = module.EXPERIMENT
    return experiment
