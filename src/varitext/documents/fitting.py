"""From settings and counts to a trained network: hold documents out, choose a recipe, build, choose a trainer."""

import dataclasses
from pathlib import Path

import numpy as np
import torch

from varitext.corpora.repeats import count_repeats
from varitext.corpora.sharded_counts import Counts, ShardedCounts, blocks_of, some_rows
from varitext.documents.default_model import model_for
from varitext.documents.direct import DirectTrainer
from varitext.documents.fitted import FittedDocuments
from varitext.documents.input import TrainingDocuments
from varitext.documents.posterior import kl_per_dimension, means_of
from varitext.documents.settings import DocumentSettings
from varitext.documents.task import DocumentTask
from varitext.errors import InputError
from varitext.models.documents import check_preset, model_class
from varitext.models.documents.base import DocumentNetwork, LearnsDirectly
from varitext.models.documents.recipe import Recipe
from varitext.runtime.devices import check_device
from varitext.runtime.processes import ALONE, World
from varitext.runtime.randomness import seeded, stream
from varitext.training.settings import Progress
from varitext.training.trainer import Trainer

AXES_FROM = 4000  # documents that readable axes, and the information in each, are found from
OVERRIDES = ("epochs", "batch_size", "learning_rate", "samples", "updates", "time_limit")


class DocumentFit:
    """A network ready to be trained. After training, also after one that was cut short, `result` has what was learned.

    Without `held_out` counts a share of the documents is held out; they choose when to stop.
    """

    def __init__(
        self,
        settings: DocumentSettings,
        documents: TrainingDocuments,
        held_out: Counts | None = None,
        checkpoint: Path | None = None,
        progress: Progress | None = None,
        world: World = ALONE,
    ):
        self.model = model_for(settings, documents.counts.shape[1])
        self.settings, self.documents = settings, documents
        self.train, self.held_out = split_off(documents.counts, held_out, settings)
        self.recipe = choose_recipe(settings, self.train)
        self.network = build_network(self.model, self.recipe, self.train, settings.seed, settings.device)
        self.trainer = choose_trainer(
            self.network, self.recipe, self.train, self.held_out, settings.device, checkpoint, progress, world
        )

    def result(self) -> FittedDocuments:
        """With the axes on which topics and vectors are shown, if the model leaves a choice of them."""
        network, state, documents = self.network.eval().requires_grad_(False), self.trainer.state, self.documents
        generator = np.random.default_rng(stream(self.settings.seed, "documents for axes"))
        rows = some_rows(generator, self.train.shape[0], AXES_FROM)
        sample = self.train[rows]
        if network.free_axes:
            network.turn_axes(means_of(network, sample))
        return FittedDocuments(
            model=self.model,
            network=network,
            architecture=self.recipe.architecture,
            training=dataclasses.asdict(self.recipe.training) | dataclasses.asdict(self.recipe.objective),
            vocabulary=documents.vocabulary,
            token_rules=documents.token_rules,
            vocabulary_rules=documents.vocabulary_rules,
            corpus=documents.corpus,
            kl_per_dimension=kl_per_dimension(network, sample),
            history=state.history,
            stopped=state.stopped,
            fit_seconds=state.seconds,
            dev_perplexity=state.best,
            n_training_documents=self.train.shape[0],
            n_dev_documents=self.held_out.shape[0],
            n_empty_documents=documents.n_empty,
            n_repeated_documents=count_repeats(self.held_out, self.train),
            updates=[],
        )


def split_off(counts: Counts, held_out: Counts | None, settings: DocumentSettings) -> tuple[Counts, Counts]:
    """Training and held-out documents: those that the user has held out, or else a share."""
    return hold_out(counts, settings.dev_share, settings.seed) if held_out is None else (counts, held_out)


def hold_out(counts: Counts, share: float, seed: int) -> tuple[Counts, Counts]:
    """Training and held-out documents, at random: `share` of them, at least 20 if that leaves enough, at most 2,000."""
    if not 0 < share < 1:
        raise InputError(f"dev_share is a share of the documents, between 0 and 1, not {share}")
    size = counts.shape[0]
    held_out = max(1, min(max(round(share * size), min(20, size // 5)), 2000, size // 2))
    rows = some_rows(np.random.default_rng(stream(seed, "hold-out")), size, held_out)
    if isinstance(counts, ShardedCounts):
        return counts.without(rows), counts[rows]
    return counts[np.delete(np.arange(size), rows)], counts[rows]


def choose_recipe(settings: DocumentSettings, counts: Counts) -> Recipe:
    """The preset's recipe for a corpus of this size; what the user has set goes before."""
    model = model_for(settings, counts.shape[1])
    check_preset(model, settings.preset)
    kind = model_class(model)
    if settings.fractional_counts and kind.whole_counts:
        raise InputError(f"{model} reads whole counts only: leave fractional_counts at False")
    documents, words = counts.shape
    words_per_document = sum(float(block.sum()) for block in blocks_of(counts)) / documents
    recipe = kind.recipe(settings.preset, documents, words_per_document)
    overrides = {name: getattr(settings, name) for name in OVERRIDES if getattr(settings, name) is not None}
    architecture = {"vocabulary_size": words, "latent_dim": settings.latent_dim} | recipe.architecture
    for name in ("estimator", "softmax"):
        if (value := getattr(settings, name)) is not None:
            if name not in architecture:
                raise InputError(f"{model} has no choice of {name}: leave it at None")
            architecture[name] = value
    training = dataclasses.replace(recipe.training, seed=settings.seed, **overrides)
    # only whole counts can lose words
    objective = (
        dataclasses.replace(recipe.objective, word_dropout=0.0) if settings.fractional_counts else recipe.objective
    )
    return Recipe(architecture, training, objective)


def build_network(name: str, recipe: Recipe, train: Counts, seed: int, device: str) -> DocumentNetwork:
    check_device(device)
    with seeded(stream(seed, "initial weights")):
        network = model_class(name)(**recipe.architecture)
    word_counts = sum(np.asarray(block.sum(0), np.float64).ravel() for block in blocks_of(train))
    network.learn_frequencies(torch.from_numpy(word_counts))
    network.learn_cooccurrence(train)
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
    direct = isinstance(network, LearnsDirectly)
    if world.size > 1 and (direct or not network.rows_draw_alone):
        raise InputError(f"{type(network).__name__} learns in one process only: its documents do not draw alone")
    task = DocumentTask(train, held_out, recipe.training, recipe.objective, device, world)
    if direct:
        return DirectTrainer(network, task, recipe.training, progress)
    return Trainer(network, task, recipe.training, checkpoint, progress, world)
