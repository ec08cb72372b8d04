"""What the paper's own objective needs to reach its perplexity: NVDM's `paper` preset, one change at a time.

20 Newsgroups, K = 50, the plain bound: no weights by length, no word dropout. Every trial runs for the same number of
passes without early stopping, and is compared on training documents held out by date; no test document is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lab.experiments.held_out_by_date import split_by_date
from varitext.documents.fitting import build_network, choose_trainer
from varitext.models.documents.base import Recipe
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, rounded
from varitext.runtime.devices import running_on

LATENT_DIM, SEED = 50, 0
PASSES, SHOWN = 120, (30, 60, 90, 120)


@dataclass(frozen=True)
class Change:
    """Changes that a trial makes to the preset."""

    architecture: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)


TRIALS = {
    "preset `paper`": Change(),
    "log counts, scaled to one norm": Change({"inference": "words"}),
    "two ReLU layers, as in the paper's text": Change({"hidden_layers": 2, "activation": "relu"}),
    "both sides updated in every step": Change({}, {"updates": "joint"}),
    "sides alternate at every step": Change({}, {"alternate_every": 1}),
    "learning rate 5e-5, as in the authors' code": Change({}, {"learning_rate": 5e-5}),
    "learning rate 1e-3": Change({}, {"learning_rate": 1e-3}),
    "learning rate falls along a cosine": Change({}, {"learning_rate_schedule": "cosine"}),
    "weights averaged, .999 per step": Change({}, {"averaging": 0.999}),
    "log counts, joint updates, rate 1e-3": Change({"inference": "words"}, {"updates": "joint", "learning_rate": 1e-3}),
}


def changed_recipe(change: Change, documents: int, words: int, passes: int) -> Recipe:
    paper = NVDM.recipe("paper", documents, 0)
    sizes = {"vocabulary_size": words, "latent_dim": LATENT_DIM}
    unstopped = {"epochs": passes, "patience": passes, "seed": SEED}
    training = replace(paper.training, **unstopped | change.training)
    return Recipe(paper.architecture | sizes | change.architecture, training, paper.objective)


def runs(plan: Plan) -> Iterator[Run]:
    for name in TRIALS:
        yield Run({"trial": name}, partial(measure, name, plan))


def measure(name: str, plan: Plan) -> dict[str, Any]:
    train, dev = split_by_date()
    recipe = changed_recipe(TRIALS[name], *train.shape, 2 if plan.quick else PASSES)
    with running_on(1):
        network = build_network("nvdm", recipe, train, SEED, "cpu")
        state = choose_trainer(network, recipe, train, dev, "cpu").train()
    by_pass = [record["dev_perplexity"] for record in state.history]
    return {"dev_perplexity": rounded(by_pass, 1), "dev_kl": state.best_record["dev_kl"], "seconds": state.seconds}


def table(records: list[Record]) -> str:
    found = {record["settings"]["trial"]: record["result"] for record in records}
    rows = []
    for name in TRIALS:
        if name in found:
            by_pass = found[name]["dev_perplexity"]
            shown = [f"{by_pass[number]:.0f}" if number < len(by_pass) else "" for number in SHOWN]
            rows.append([name, *shown, f"{found[name]['dev_kl']:.1f}"])
    return markdown_table(["", *(f"after {number} passes" for number in SHOWN), "KL"], rows)


EXPERIMENT = Experiment("plain-bound", "NVDM with the paper's own objective, changes of its settings", runs, table)
