"""How close the paper's own objective comes to its perplexity of 836: NVDM's `paper` preset on 20 Newsgroups, K = 50.

All trials have the paper's networks and the plain bound: no weights by length, no word dropout. They differ in what the
paper does not state, and are compared on training documents held out by date. *Refined*: the same weights, with q
improved for each document by gradient ascent and given its full covariance; the difference is the amortisation gap.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import scipy.sparse
import torch
from torch import nn

from lab.experiments.held_out_by_date import CORPUS, split_by_date
from varitext.corpora import load_documents
from varitext.documents.fitting import build_network, choose_trainer, hold_out
from varitext.documents.posterior import perplexity_of
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.models.documents.base import DocumentObjective, Recipe
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table
from varitext.runtime.devices import running_on

LATENT_DIM, SEED = 50, 0
REFINEMENT_STEPS = 4  # as the preset `recommended` has
BASE = {"epochs": 60, "batch_size": 64, "learning_rate": 1e-3, "patience": 15}
TESTED = (  # trials that are also evaluated on the test documents
    *("joint updates, 60 epochs of 64, rate 1e-3", "alternating updates", "weights averaged, .999 per step"),
    *("no KL warm-up", "averaged, no KL warm-up", "120 epochs", "120 epochs, 5 samples"),
)
TRIALS: dict[str, dict[str, Any]] = {
    "joint updates, 60 epochs of 64, rate 1e-3": {},
    "alternating updates": {"updates": "alternating"},
    "rate 5e-4": {"learning_rate": 5e-4},
    "rate 2e-3": {"learning_rate": 2e-3},
    "batches of 256, rate 2e-3": {"batch_size": 256, "learning_rate": 2e-3},
    "5 samples": {"samples": 5},
    "25 epochs": {"epochs": 25},
    "weights averaged, .999 per step": {"averaging": 0.999},
    "no KL warm-up": {"kl_warm_up": 0.0},
    "averaged, no KL warm-up": {"averaging": 0.999, "kl_warm_up": 0.0},
    "alternating, averaged": {"updates": "alternating", "averaging": 0.999},
    "alternating, averaged, no KL warm-up": {"updates": "alternating", "averaging": 0.999, "kl_warm_up": 0.0},
    "alternating, 10 steps each": {"updates": "alternating", "alternate_every": 10},
    "alternating, an epoch each": {"updates": "alternating", "alternate_every": 160},
    "120 epochs": {"epochs": 120},
    "120 epochs, 5 samples": {"epochs": 120, "samples": 5},
    "alternating, 120 epochs": {"updates": "alternating", "epochs": 120},
    "240 epochs, 5 samples": {"epochs": 240, "samples": 5, "patience": 30},
    "Glorot initialization": {"start": "glorot"},
    "word biases initialized to 0": {"start": "no_frequencies"},
    "word vectors initialized ten times as large": {"start": "large_word_vectors"},
    "weight decay .3": {"weight_decay": 0.3},
    "batches of 256, rate 2e-3, 5 samples, averaged": {
        "batch_size": 256, "learning_rate": 2e-3, "samples": 5, "averaging": 0.99,
    },
}  # fmt: skip


def plain_recipe(words: int, changes: dict[str, Any]) -> Recipe:
    paper = NVDM.recipe("paper", 0, 0)
    training = dataclasses.replace(paper.training, seed=SEED, updates="joint", **BASE)
    sizes = {"vocabulary_size": words, "latent_dim": LATENT_DIM}
    settings = {name: value for name, value in changes.items() if name != "start"}
    return Recipe(paper.architecture | sizes, dataclasses.replace(training, **settings), DocumentObjective())


def plain_network(recipe: Recipe, train: scipy.sparse.csr_matrix, changes: dict[str, Any]) -> NVDM:
    network = build_network("nvdm", recipe, train, SEED, "cpu")
    assert isinstance(network, NVDM)
    with torch.no_grad():
        INITIALIZATIONS[changes.get("start", "default")](network)
    return network


def glorot(network: NVDM) -> None:
    """All weights but the log std, which starts at zero as in the paper, and the word frequencies."""
    torch.manual_seed(SEED)
    for name, weights in network.named_parameters():
        if weights.dim() == 2 and "log_std" not in name:
            nn.init.xavier_uniform_(weights)


INITIALIZATIONS: dict[str, Callable[[NVDM], object]] = {
    "default": lambda network: None,
    "glorot": glorot,
    "no_frequencies": lambda network: network.decoder.bias.zero_(),
    "large_word_vectors": lambda network: network.decoder.weight.mul_(10),
}


def trial(changes: dict[str, Any]) -> dict[str, Any]:
    train, dev = split_by_date()
    recipe = plain_recipe(train.shape[1], changes)
    network = plain_network(recipe, train, changes)
    state = choose_trainer(network, recipe, train, dev, "cpu").train()
    best = {"dev_perplexity": state.best, "dev_kl": state.best_record["dev_kl"], "epoch": state.best_record["epoch"]}
    refined = {"dev_refined": refined_record(network, dev).per_document_perplexity}
    return {"changes": changes, **best, **refined, "stopped": state.stopped, "seconds": state.seconds}


def on_test(changes: dict[str, Any]) -> dict[str, Any]:
    """Fitted as `fit` does: a random share of the training documents decides when to stop."""
    documents, test = load_documents(CORPUS, "train"), load_documents(CORPUS, "test")
    recipe = plain_recipe(documents.counts.shape[1], changes)
    train, dev = hold_out(documents.counts, 0.05, SEED)
    network = plain_network(recipe, train, changes)
    choose_trainer(network, recipe, train, dev, "cpu").train()
    record = perplexity_of(network.eval().requires_grad_(False), test.counts, 20, SEED)
    return {
        "test_perplexity": record.per_document_perplexity,
        "test_iwae": record.iwae_per_document_perplexity,
        "test_refined": refined_record(network, test.counts).per_document_perplexity,
    }


def refined_record(network: NVDM, counts: scipy.sparse.csr_matrix) -> PerplexityRecord:
    network.refinement_steps = REFINEMENT_STEPS
    return perplexity_of(network.eval().requires_grad_(False), counts, 20, SEED)


COLUMNS = {  # key: heading, digits
    "dev_perplexity": ("held-out training documents", 1),
    "dev_refined": ("q refined", 1),
    "dev_kl": ("KL", 1),
    "epoch": ("epoch kept", 0),
    "test_perplexity": ("test", 1),
    "test_refined": ("q refined", 1),
    "test_iwae": ("importance-weighted", 1),
}


def runs(plan: Plan) -> Iterator[Run]:
    for name in TRIALS:
        yield Run({"trial": name}, partial(measure, name, plan))


def measure(name: str, plan: Plan) -> dict[str, Any]:
    changes = TRIALS[name] | ({"epochs": 1} if plan.quick else {})
    with running_on(1):
        return trial(changes) | (on_test(changes) if name in TESTED else {})


def table(records: list[Record]) -> str:
    found = {record["settings"]["trial"]: record["result"] for record in records}
    rows = [
        [
            name,
            *(f"{found[name][key]:.{digits}f}" if key in found[name] else "" for key, (_, digits) in COLUMNS.items()),
        ]
        for name in TRIALS
        if name in found
    ]
    return markdown_table(["trial", *(heading for heading, _ in COLUMNS.values())], rows)


EXPERIMENT = Experiment("plain-bound", "NVDM with the paper's own objective, trials of its settings", runs, table)
