"""The steps between counts and a trained network: hold documents out, choose settings, build, choose a trainer."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from varitext.corpora.sharded_counts import Counts, ShardedCounts, blocks_of, in_memory, some_rows
from varitext.documents.direct import DirectTrainer
from varitext.documents.task import DocumentTask
from varitext.errors import InputError
from varitext.models.documents import check_preset, model_class
from varitext.models.documents.base import DocumentNetwork, LearnsDirectly
from varitext.models.documents.recipe import Recipe
from varitext.runtime.devices import check_device, seeded
from varitext.runtime.processes import ALONE, World
from varitext.training.settings import Progress
from varitext.training.trainer import Trainer

if TYPE_CHECKING:
    from varitext.documents.model import DocumentModel

OVERRIDES = ("epochs", "batch_size", "learning_rate", "samples", "updates", "time_limit")


def without_empty(counts: Counts) -> Counts:
    if isinstance(counts, ShardedCounts):
        return counts.without_empty()
    kept = np.flatnonzero(np.asarray(counts.sum(1)).ravel() > 0)
    if not len(kept):
        raise InputError(f"none of the {counts.shape[0]} documents has a word of the vocabulary")
    return counts[kept] if len(kept) < counts.shape[0] else counts


def hold_out(counts: Counts, share: float, seed: int) -> tuple[Counts, Counts]:
    """Training and held-out documents, at random: `share` of them, at least 20 if that leaves enough, at most 2,000."""
    if not 0 < share < 1:
        raise InputError(f"dev_share is a share of the documents, between 0 and 1, not {share}")
    size = counts.shape[0]
    held_out = max(1, min(max(round(share * size), min(20, size // 5)), 2000, size // 2))
    rows = some_rows(np.random.default_rng((seed, 1)), size, held_out)
    if isinstance(counts, ShardedCounts):
        return counts.without(rows), counts[rows]
    return counts[np.delete(np.arange(size), rows)], counts[rows]


def choose_recipe(chosen: "DocumentModel", counts: Counts) -> Recipe:
    """The preset's recipe for a corpus of this size; what the user has set goes before."""
    check_preset(chosen.model, chosen.preset)
    if chosen.fractional_counts and model_class(chosen.model).whole_counts:
        raise InputError(f"{chosen.model} reads whole counts only: leave fractional_counts at False")
    documents, words = counts.shape
    words_per_document = sum(float(block.sum()) for block in blocks_of(counts)) / documents
    recipe = model_class(chosen.model).recipe(chosen.preset, documents, words_per_document)
    overrides = {name: getattr(chosen, name) for name in OVERRIDES if getattr(chosen, name) is not None}
    architecture = {"vocabulary_size": words, "latent_dim": chosen.latent_dim} | recipe.architecture
    for name in ("estimator", "softmax"):
        if (value := getattr(chosen, name)) is not None:
            if name not in architecture:
                raise InputError(f"{chosen.model} has no choice of {name}: leave it at None")
            architecture[name] = value
    settings = dataclasses.replace(recipe.training, seed=chosen.seed, **overrides)
    # only whole counts can lose words
    objective = (
        dataclasses.replace(recipe.objective, word_dropout=0.0) if chosen.fractional_counts else recipe.objective
    )
    return Recipe(architecture, settings, objective)


def build_network(name: str, recipe: Recipe, train: Counts, seed: int, device: str) -> DocumentNetwork:
    check_device(device)
    with seeded(seed):
        network = model_class(name)(**recipe.architecture)
    word_counts = sum(np.asarray(block.sum(0), np.float64).ravel() for block in blocks_of(train))
    network.learn_frequencies(torch.from_numpy(word_counts))
    return network.to(device)


def choose_trainer(
    network: DocumentNetwork,
    recipe: Recipe,
    train: Counts,
    held_out: Counts,
    device: str,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    world: World = ALONE,
) -> Trainer | DirectTrainer:
    """Gradients, unless the model has a way of its own."""
    direct = isinstance(network, LearnsDirectly)  # such a model holds all documents itself
    if world.size > 1 and (direct or not network.rows_draw_alone):
        raise InputError(f"{type(network).__name__} learns in one process only: its documents do not draw alone")
    train = in_memory(train) if direct else train
    task = DocumentTask(train, held_out, recipe.training, recipe.objective, device, world)
    if direct:
        return DirectTrainer(network, task, recipe.training, progress)
    return Trainer(network, task, recipe.training, checkpoint, progress, world)
