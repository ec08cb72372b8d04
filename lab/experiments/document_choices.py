"""Design choices of `nvdm_dcm`, `nvdm` and `nvdm_gsm`, one change at a time: the bound on later training documents.

Models are fitted to the earlier training documents of 20newsgroups-nvdm, K = 50, one thread, and evaluated on those
held out by date; test documents are not used. Changes that affect only prediction share the weights of the default
model.
"""

import dataclasses
import json
import statistics
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from scipy.sparse import csr_matrix

from lab.experiments.held_out_by_date import split_by_date
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer, hold_out
from varitext.documents.posterior import perplexity_of
from varitext.documents.settings import DocumentSettings
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.latent import FullGaussian
from varitext.models.documents.base import DocumentNetwork
from varitext.models.documents.nvdm_dcm import NVDMDCM, Encoding
from varitext.models.documents.nvdm_gsm import GSM
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table
from varitext.runtime.devices import running_on

LATENT_DIM, SAMPLES = 50, 20


def bound(network: DocumentNetwork, counts: csr_matrix, seed: int) -> float:
    return perplexity_of(network, counts, SAMPLES, seed).per_document_perplexity


def importance_weighted(network: DocumentNetwork, counts: csr_matrix, seed: int) -> float:
    return perplexity_of(network, counts, SAMPLES, seed).iwae_per_document_perplexity


def unrefined(network: DocumentNetwork, counts: csr_matrix, seed: int) -> float:
    with network.refining(False):
        return bound(network, counts, seed)


def diagonal(network: DocumentNetwork, counts: csr_matrix, seed: int) -> float:
    """NVDM with a refined mean of q and the inference network's standard deviation."""
    found = network.evaluate_round(counts, SAMPLES, seed)
    return per_document_perplexity(found.elbo, found.lengths)


def unchanged(network: DocumentNetwork) -> None:
    pass


def without_lengths(network: NVDMDCM) -> None:
    network.decoder.length_weights.requires_grad_(False)  # they begin at 0


def with_diagonal_covariance(network: NVDMDCM) -> None:
    """q with the same variances and no covariances; the Newton step keeps the full curvature."""
    full = network.posterior

    def posterior(encoding: Encoding) -> FullGaussian:
        q = full(encoding)
        return q._replace(root=q.root.square().sum(1).sqrt().diag_embed())

    network.posterior = posterior


def with_random_topics(network: GSM) -> None:
    torch.nn.init.normal_(network.topic_logits, std=0.3)
    network.initialize_from_frequencies()


@dataclasses.dataclass(frozen=True)
class Choice:
    """One change of the default model: of its recipe, of the network before training, or of what is measured."""

    model: str = "nvdm_dcm"
    training: dict[str, Any] = dataclasses.field(default_factory=dict)
    length_exponent: float | None = None
    architecture: dict[str, Any] = dataclasses.field(default_factory=dict)
    change: Callable[[Any], None] = unchanged
    measure: Callable[[DocumentNetwork, csr_matrix, int], float] = bound

    def fitted(self, seed: int, epochs: int | None = None) -> DocumentNetwork:
        changes = json.dumps(self.training), self.length_exponent, json.dumps(self.architecture)
        return fitted(self.model, *changes, self.change, seed, epochs)


@cache  # choices of prediction share the weights
def fitted(
    model: str,
    training: str,
    length_exponent: float | None,
    architecture: str,
    change: Callable[[Any], None],
    seed: int,
    epochs: int | None,
) -> DocumentNetwork:
    train, dev = hold_out(split_by_date().earlier, 0.05, seed)
    recipe = choose_recipe(model, DocumentSettings(model, LATENT_DIM, seed=seed, epochs=epochs), train)
    recipe = dataclasses.replace(recipe, training=dataclasses.replace(recipe.training, **json.loads(training)))
    if length_exponent is not None:
        recipe = dataclasses.replace(
            recipe, objective=dataclasses.replace(recipe.objective, length_exponent=length_exponent)
        )
    recipe = dataclasses.replace(recipe, architecture=recipe.architecture | json.loads(architecture))
    network = build_network(model, recipe, train, seed, "cpu")
    change(network)
    choose_trainer(network, recipe, train, dev, "cpu").train()
    return network.eval().requires_grad_(False)


CHOICES = {
    "nvdm_dcm": {
        "default": Choice(),
        "one group of words": Choice(architecture={"groups": 1}),
        "100 groups of words": Choice(architecture={"groups": 100}),
        "500 groups of words": Choice(architecture={"groups": 500}),
        "concentration independent of document length": Choice(change=without_lengths),
        "diagonal covariance of q": Choice(change=with_diagonal_covariance),
        "no refinement in prediction": Choice(measure=unrefined),
        "KL warm-up over a fifth of the steps": Choice(training={"kl_warm_up": 0.2}),
        "documents weighted by N^-0.7": Choice(length_exponent=0.7),
        "documents weighted by N^-0.5": Choice(length_exponent=0.5),
        "plain mean over documents": Choice(length_exponent=0.0),
        "two samples per step": Choice(training={"samples": 2}),
        "learning rate .003": Choice(training={"learning_rate": 0.003}),
        "batches of 64, rate .0035": Choice(training={"batch_size": 64, "learning_rate": 0.0035}),
        "batches of 256, rate .007": Choice(training={"batch_size": 256, "learning_rate": 0.007}),
    },
    "nvdm": {
        "default: refined, full covariance of q": Choice("nvdm"),
        "refined, diagonal covariance": Choice("nvdm", measure=diagonal),
        "not refined": Choice("nvdm", measure=unrefined),
        "default, importance-weighted": Choice("nvdm", measure=importance_weighted),
    },
    "nvdm_gsm": {
        "default: topics from clusters of documents": Choice("nvdm_gsm"),
        "random topics": Choice("nvdm_gsm", change=with_random_topics),
        "inference network on the counts of all words": Choice("nvdm_gsm", architecture={"inference": "words"}),
        "default, importance-weighted": Choice("nvdm_gsm", measure=importance_weighted),
    },
}


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(3):
        for model, choices in CHOICES.items():
            for name, choice in choices.items():
                yield Run({"model": model, "choice": name, "seed": seed}, partial(measure, choice, seed, plan))


def measure(choice: Choice, seed: int, plan: Plan) -> dict[str, Any]:
    with running_on(1):
        value = choice.measure(choice.fitted(seed, 1 if plan.quick else None), split_by_date().later, seed)
    return {"perplexity": round(value, 2)}


def table(records: list[Record]) -> str:
    return "\n\n".join(model_table(records, model) for model in CHOICES)


def model_table(records: list[Record], model: str) -> str:
    """All seeds, sorted, and the mean change from the default over pairs of the same seed."""
    found: dict[str, dict[int, float]] = {choice: {} for choice in CHOICES[model]}
    for record in records:
        settings = record["settings"]
        if settings["model"] == model:
            found[settings["choice"]][settings["seed"]] = record["result"]["perplexity"]
    default = next(iter(found.values()))
    rows = []
    for number, (choice, by_seed) in enumerate(found.items()):
        values = " / ".join(f"{value:.1f}" for value in sorted(by_seed.values()))
        changes = [value - default[seed] for seed, value in by_seed.items() if seed in default]
        change = f"{statistics.mean(changes):+.1f}" if number and changes else ""
        rows.append([f"**{choice}**" if not number else choice, values, change])
    return markdown_table([f"`{model}`", "perplexity", "change"], rows)


EXPERIMENT = Experiment("document-choices", "effect of the design choices of nvdm_dcm, nvdm and nvdm_gsm", runs, table)
