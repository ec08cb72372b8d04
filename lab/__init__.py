"""Measurements of varitext that are not part of the package: `python -m lab` lists them.

experiments/   ablations and comparisons beyond the paper, on the engine of `varitext.reproduce`
benchmark/     speed, perplexity and memory beside other topic models, and growth of cost with size
speed/         timings and single measurements; each writes `results/NAME.json`
faults/        kills, damaged files, hostile input, full disks
mutants/       small changes of the code, and whether a test notices
pages/         fills the tables of README.md and docs/ from `results/`
"""

import importlib

from varitext.errors import InputError
from varitext.reproduce import EXPERIMENTS as PAPER_EXPERIMENTS
from varitext.reproduce.engine import Experiment

ABLATIONS = {  # as typed: the module, whose EXPERIMENT the engine runs
    "document-evaluation": "lab.experiments.document_evaluation",
    "likelihoods": "lab.experiments.likelihoods",
    "document-choices": "lab.experiments.document_choices",
    "plain-bound": "lab.experiments.plain_bound",
    "generality": "lab.experiments.generality",
    "topics": "lab.experiments.topics",
    "updating": "lab.experiments.updating",
    "default-ranker": "lab.experiments.default_ranker",
    "minilm": "lab.experiments.minilm",
    "feature-groups": "lab.experiments.feature_groups",
    "question-latent": "lab.experiments.question_latent",
    "recipes": "lab.experiments.recipes",
    "initialization": "lab.experiments.initialization",
    "benchmark": "lab.benchmark.compare",
    "growth": "lab.benchmark.growth",
    "peer-settings": "lab.benchmark.peer_settings",
}
EXPERIMENTS = PAPER_EXPERIMENTS | ABLATIONS
MEASUREMENTS = {  # as typed: the module, whose `measure(quick)` gives the content of results/NAME.json
    "nvdm": "lab.speed.nvdm",
    "nasm": "lab.speed.nasm",
    "default_ranker": "lab.speed.default_ranker",
    "hot_paths": "lab.speed.hot_paths",
    "counting": "lab.speed.counting",
    "coherence": "lab.speed.coherence",
    "minilm_untrained": "lab.speed.minilm_untrained",
    "rounding": "lab.speed.rounding",
    "large_corpus": "lab.speed.large_corpus",
    "scaling_estimate": "lab.speed.scaling_estimate",
}
TOOLS = {  # as typed: the module, whose `main(arguments)` reads its own options
    "serve_load": "lab.speed.serve_load",
    "faults": "lab.faults.trying",
    "mutations": "lab.mutants.sample",
    "outdated": "lab.outdated",
    "pages": "lab.pages",
}


def experiment_named(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InputError(f"Unknown experiment {name!r}. Experiments: {', '.join(EXPERIMENTS)}.")
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment
