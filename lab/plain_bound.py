"""How near does the paper's own objective come to its 836? Trials of NVDM's `paper` preset on 20 Newsgroups, K = 50.

    python benchmarks/plain_bound.py [--json results/plain_bound.json] [--only NAME...] [--test NAME...]

All trials have the paper's networks and the plain bound: no weights by length, no word dropout. They differ in what the
paper does not state, and are chosen on training documents held out by date (`held_out_by_date.py`), which no trial
trains on. Only the names after --test are also fitted to all training documents and evaluated on the test documents.
*Refined*: the same weights, with q improved for each document by gradient ascent and given its full covariance; what is
between the two is the inference network's own loss. Every trial is written as it comes; those that the file already has
are kept.
"""

import argparse
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse
import torch
from torch import nn

from lab.held_out_by_date import CORPUS, split_by_date
from varitext.corpora import load_documents
from varitext.documents.fitting import build_network, choose_trainer, hold_out
from varitext.documents.posterior import perplexity_of
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.files import write_json
from varitext.models.documents.base import DocumentObjective, Recipe
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce.provenance import provenance
from varitext.runtime.devices import running_on

LATENT_DIM, SEED = 50, 0
REFINEMENT_STEPS = 4  # as the preset `recommended` has
START = {"epochs": 60, "batch_size": 64, "learning_rate": 1e-3, "patience": 15}
TRIALS: dict[str, dict[str, Any]] = {
    "joint updates, 60 epochs of 64, rate 1e-3": {},
    "alternating updates": {"updates": "alternating"},
    "rate 5e-4": {"learning_rate": 5e-4},
    "rate 2e-3": {"learning_rate": 2e-3},
    "batches of 256, rate 2e-3": {"batch_size": 256, "learning_rate": 2e-3},
    "5 samples": {"samples": 5},
    "25 epochs": {"epochs": 25},
    "weights averaged, .999 a step": {"averaging": 0.999},
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
    "Glorot's start of all weights": {"start": "glorot"},
    "biases of words start at 0": {"start": "no_frequencies"},
    "word vectors start ten times as large": {"start": "large_word_vectors"},
    "weight decay .3": {"weight_decay": 0.3},
    "batches of 256, rate 2e-3, 5 samples, averaged": {
        "batch_size": 256, "learning_rate": 2e-3, "samples": 5, "averaging": 0.99,
    },
}  # fmt: skip


def plain_recipe(words: int, changes: dict[str, Any]) -> Recipe:
    paper = NVDM.recipe("paper", 0, 0)
    training = dataclasses.replace(paper.training, seed=SEED, updates="joint", **START)
    sizes = {"vocabulary_size": words, "latent_dim": LATENT_DIM}
    settings = {name: value for name, value in changes.items() if name != "start"}
    return Recipe(paper.architecture | sizes, dataclasses.replace(training, **settings), DocumentObjective())


def plain_network(recipe: Recipe, train: scipy.sparse.csr_matrix, changes: dict[str, Any]) -> NVDM:
    network = build_network("nvdm", recipe, train, SEED, "cpu")
    assert isinstance(network, NVDM)
    with torch.no_grad():
        STARTS[changes.get("start", "as_it_is")](network)
    return network


def glorot(network: NVDM) -> None:
    """But for the head's log std, which starts at zero as in the paper, and frequencies of words."""
    torch.manual_seed(SEED)
    for name, weights in network.named_parameters():
        if weights.dim() == 2 and "log_std" not in name:
            nn.init.xavier_uniform_(weights)


STARTS: dict[str, Callable[[NVDM], object]] = {
    "as_it_is": lambda network: None,
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
    """As `fit` does it: a random share of the training documents chooses when to stop."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=list(TRIALS), choices=TRIALS)
    parser.add_argument("--test", nargs="*", default=[], choices=TRIALS)
    options = parser.parse_args()
    found = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    with running_on(1):
        for name in options.only:
            result = found.setdefault(name, {})
            if "dev_perplexity" not in result:
                result |= trial(TRIALS[name]) | provenance()
            if name in options.test and "test_perplexity" not in result:
                result |= on_test(TRIALS[name])
            print(name, {key: value for key, value in result.items() if key != "changes"}, flush=True)
            if options.json:
                write_json(options.json, found)


if __name__ == "__main__":
    main()
