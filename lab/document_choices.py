"""What the choices of `nvdm_dcm` and `nvdm` are worth: one change at a time, the bound on later training documents.

    python benchmarks/document_choices.py [--json results/document_choices.json] [--seeds 0 1 2] [--only NAME...]

Each is fitted to the earlier training documents of 20newsgroups-nvdm, K = 50, one thread, a twentieth of which choose
when to stop, and evaluated on those held out by date (`held_out_by_date.py`); test documents are not looked at. Changes
of prediction alone share the weights of the model as it is. Every figure is written as it comes; those that the file
already has are kept.
"""

import argparse
import dataclasses
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from scipy.sparse import csr_matrix

from lab.held_out_by_date import split_by_date
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer, hold_out
from varitext.documents.posterior import perplexity_of
from varitext.documents.settings import DocumentSettings
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.files import write_json
from varitext.latent import FullGaussian
from varitext.models.documents.base import DocumentNetwork
from varitext.models.documents.nvdm_dcm import NVDMDCM, Encoding
from varitext.reproduce.provenance import provenance
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
    """Of NVDM: q refined, with the std of the inference network, as its vectors have it."""
    found = network.evaluate_round(counts, SAMPLES, seed)
    return per_document_perplexity(found.elbo, found.lengths)


def as_it_is(network: DocumentNetwork) -> None:
    pass


def without_lengths(network: NVDMDCM) -> None:
    network.decoder.length_weights.requires_grad_(False)  # they begin at 0


def with_diagonal_covariance(network: NVDMDCM) -> None:
    """q with the same variances, and none between dimensions; the Newton step keeps the whole curvature."""
    whole = network.posterior

    def posterior(encoding: Encoding) -> FullGaussian:
        q = whole(encoding)
        return q._replace(root=q.root.square().sum(1).sqrt().diag_embed())

    network.posterior = posterior


@dataclasses.dataclass(frozen=True)
class Choice:
    """One change against a model as it is: of its recipe, of the network before training, or of what is measured."""

    model: str = "nvdm_dcm"
    training: dict[str, Any] = dataclasses.field(default_factory=dict)
    length_exponent: float | None = None
    groups: int | None = None
    change: Callable[[Any], None] = as_it_is
    measure: Callable[[DocumentNetwork, csr_matrix, int], float] = bound

    def fitted(self, seed: int) -> DocumentNetwork:
        changes = json.dumps(self.training), self.length_exponent, self.groups
        return fitted(self.model, *changes, self.change, seed)


@cache  # choices of prediction share the weights
def fitted(
    model: str,
    training: str,
    length_exponent: float | None,
    groups: int | None,
    change: Callable[[Any], None],
    seed: int,
) -> DocumentNetwork:
    train, dev = hold_out(split_by_date().earlier, 0.05, seed)
    recipe = choose_recipe(model, DocumentSettings(model, LATENT_DIM, seed=seed), train)
    recipe = dataclasses.replace(recipe, training=dataclasses.replace(recipe.training, **json.loads(training)))
    if length_exponent is not None:
        recipe = dataclasses.replace(
            recipe, objective=dataclasses.replace(recipe.objective, length_exponent=length_exponent)
        )
    if groups is not None:
        recipe = dataclasses.replace(recipe, architecture=recipe.architecture | {"groups": groups})
    network = build_network(model, recipe, train, seed, "cpu")
    change(network)
    choose_trainer(network, recipe, train, dev, "cpu").train()
    return network.eval().requires_grad_(False)


CHOICES = {
    "nvdm_dcm, as it is": Choice(),
    "one urn for all words": Choice(groups=1),
    "100 groups of words": Choice(groups=100),
    "500 groups of words": Choice(groups=500),
    "masses that do not depend on the length": Choice(change=without_lengths),
    "diagonal covariance of q": Choice(change=with_diagonal_covariance),
    "no refinement in prediction": Choice(measure=unrefined),
    "KL warm-up over a fifth of the steps": Choice(training={"kl_warm_up": 0.2}),
    "documents weighted by N^-0.7": Choice(length_exponent=0.7),
    "documents weighted by N^-0.5": Choice(length_exponent=0.5),
    "plain mean over documents": Choice(length_exponent=0.0),
    "two samples a step": Choice(training={"samples": 2}),
    "learning rate .003": Choice(training={"learning_rate": 0.003}),
    "batches of 64, rate .0035": Choice(training={"batch_size": 64, "learning_rate": 0.0035}),
    "batches of 256, rate .007": Choice(training={"batch_size": 256, "learning_rate": 0.007}),
    "nvdm, as it is: refined, whole covariance of q": Choice("nvdm"),
    "nvdm, refined, diagonal covariance": Choice("nvdm", measure=diagonal),
    "nvdm, not refined": Choice("nvdm", measure=unrefined),
    "nvdm, as it is, importance-weighted": Choice("nvdm", measure=importance_weighted),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--only", nargs="*", default=list(CHOICES), choices=CHOICES)
    options = parser.parse_args()
    found = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    later = split_by_date().later
    with running_on(1):
        for seed in options.seeds:
            for name in options.only:
                row = found.setdefault(name, {})
                if str(seed) in row:
                    continue
                choice = CHOICES[name]
                value = choice.measure(choice.fitted(seed), later, seed)
                row[str(seed)] = {"perplexity": round(value, 2)} | provenance()
                print(f"{name}, seed {seed}: {value:.1f}", flush=True)
                if options.json:
                    write_json(options.json, found)


if __name__ == "__main__":
    main()
