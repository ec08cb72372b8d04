"""Experiments beyond the paper: ablations and comparisons that support the defaults, on the engine of `reproduce`."""

import importlib

from varitext.errors import InputError
from varitext.reproduce import EXPERIMENTS as PAPER_EXPERIMENTS
from varitext.reproduce.engine import Experiment

ABLATIONS = {  # as typed: the module
    "document-evaluation": "lab.experiments.document_evaluation",
    "likelihoods": "lab.experiments.likelihoods",
    "generality": "lab.experiments.generality",
    "topics": "lab.experiments.topics",
    "updating": "lab.experiments.updating",
    "default-ranker": "lab.experiments.default_ranker",
    "minilm": "lab.experiments.minilm",
    "feature-groups": "lab.experiments.feature_groups",
    "question-latent": "lab.experiments.question_latent",
    "recipes": "lab.experiments.recipes",
    "initialization": "lab.experiments.initialization",
}
EXPERIMENTS = PAPER_EXPERIMENTS | ABLATIONS


def experiment_named(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InputError(f"Unknown experiment {name!r}. Experiments: {', '.join(EXPERIMENTS)}.")
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment
