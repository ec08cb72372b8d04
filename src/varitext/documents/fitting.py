"""From settings and counts to a trained network: hold documents out, choose a recipe, build the network, train it.

Most models learn by gradients (`training.Trainer` with a `DocumentTask`). A model may instead have

    fit_without_gradients(train, settings)

a generator. After every round it yields the share of the work that is done, from 0 to 1; the model then holds what it
has learned so far. `DirectTrainer` adds what every fit does between rounds: the held-out score, the history, the time
limit, Ctrl-C.
"""

import hashlib
import inspect
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from varitext.batches.counts import CountBatch, CountBatches
from varitext.corpora.document_vectors import VectorOrigin, vectors_of
from varitext.corpora.repeats import count_repeats
from varitext.corpora.sharded_counts import Counts, ShardedCounts, blocks_of, in_memory, some_rows
from varitext.documents.input import TrainingDocuments
from varitext.documents.posterior import kl_per_dimension, means_of
from varitext.documents.settings import DocumentSettings, default_document_model
from varitext.documents.topics import Regions
from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import LatentSpace
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.latent.estimators import Reparameterised, check_samples
from varitext.models.documents import DOCUMENT_MODELS, check_preset, model_class
from varitext.models.documents.base import DocumentNetwork, DocumentObjective, FitsWithoutGradients, Recipe, varimax
from varitext.models.registry import stored_name, with_network_arguments
from varitext.runtime.devices import check_device, note_cpu_only
from varitext.runtime.interruption import Interruption
from varitext.runtime.processes import ALONE, World, working_on
from varitext.runtime.randomness import seeded, stream
from varitext.text import TokenRules, Vocabulary, VocabularyRules
from varitext.text.boilerplate import Boilerplate
from varitext.training.optimizer import ADAMW, Optimization
from varitext.training.settings import Progress, Score, StepLoss, TrainingSettings, TrainingState
from varitext.training.trainer import Trainer

AXES_FROM = 4000  # documents used to find the readable axes and the information in each
OVERRIDES = ("epochs", "batch_size", "learning_rate", "samples", "updates", "kl_schedule", "kl_warm_up", "time_limit")
WARM_UPS = {"linear": 0.2, "cyclical": 0.5}  # of a KL schedule that is named without a warm-up
DEV_SAMPLES = 5  # enough to tell two rounds apart; the final evaluation uses 20
ACTIVE = 0.01  # nats: a latent dimension with a smaller KL is inactive


@dataclass(frozen=True)
class FittedDocuments:
    """A trained network and how it came about: `DocumentModel.fitted_`."""

    model: str  # its name in the registry, or `package.module:Class` of a plug-in
    network: DocumentNetwork
    architecture: dict[str, Any]  # the arguments that build the network
    training: dict[str, Any]  # the settings of training and objective that were used
    vocabulary: Vocabulary
    token_rules: TokenRules
    vocabulary_rules: VocabularyRules
    corpus: dict[str, str] | None  # name, part and sha256, so that `varitext evaluate` finds its test part
    kl_per_dimension: np.ndarray  # [K] nats per training document
    history: list[dict[str, float]]  # one record per round: metrics.jsonl
    stopped: str  # why training ended
    fit_seconds: float
    dev_perplexity: float
    n_training_documents: int
    n_dev_documents: int
    n_empty_documents: int
    n_repeated_documents: int  # held-out documents that are also training documents, word for word
    updates: list[dict[str, Any]]  # one `UpdateRecord` per call of `partial_fit`
    regions: Regions | None = None  # the topics; None after an interrupted fit
    boilerplate: Boilerplate | None = None  # what is removed from texts; None: nothing
    notes: tuple[str, ...] = ()  # what was done to the texts of the fit
    passages: int | None = None  # words of a passage; None: documents are read whole
    vectors: VectorOrigin | None = None  # where the sentence vectors come from that it was fitted with

    def latent_space(self) -> LatentSpace:
        """What latent dimensions are ranked by and compared with those of another fit by."""
        frequencies = self.network.word_log_frequencies.double().exp().cpu().numpy()
        word_vectors = self.network.word_vectors.cpu().numpy()
        return LatentSpace(word_vectors, frequencies, self.vocabulary.words, self.kl_per_dimension)


class DocumentFit:
    """A network ready to be trained. After training, even if interrupted, `result` returns what was learned.

    Held-out documents decide when to stop: `held_out` or, if it is None, a share of the documents.
    """

    def __init__(
        self,
        settings: DocumentSettings,
        documents: TrainingDocuments,
        held_out: Counts | None = None,
        checkpoint: Path | None = None,
        progress: Progress | None = None,
        world: World = ALONE,
        optimization: Optimization = ADAMW,
    ):
        self.seed, self.documents = settings.seed, documents
        vectors = vectors_of(documents.counts)
        self.model = settings.model or default_document_model(settings, documents.counts.shape[1], vectors is not None)
        self.train, self.held_out = split_off(documents.counts, held_out, settings)
        self.recipe = choose_recipe(self.model, settings, self.train)
        self.network = build_network(self.model, self.recipe, self.train, settings.seed, settings.device)
        self.trainer = choose_trainer(
            self.network,
            self.recipe,
            self.train,
            self.held_out,
            settings.device,
            checkpoint,
            progress,
            world,
            optimization,
        )

    def result(self) -> FittedDocuments:
        """What was learned, with readable axes if the model leaves their choice free."""
        network, state, documents = self.network.eval().requires_grad_(False), self.trainer.state, self.documents
        generator = np.random.default_rng(stream(self.seed, "documents for axes"))
        sample = self.train[some_rows(generator, self.train.shape[0], AXES_FROM)]
        if network.free_axes:
            network.axes.copy_(torch.from_numpy(varimax(means_of(network, sample))))
        return FittedDocuments(
            model=stored_name(self.model, DOCUMENT_MODELS),
            network=network,
            architecture=self.recipe.architecture,
            training=asdict(self.recipe.training) | asdict(self.recipe.objective),
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
            boilerplate=documents.boilerplate,
            notes=documents.notes,
            passages=documents.passage_words,
            vectors=documents.vectors,
        )


def split_off(counts: Counts, held_out: Counts | None, settings: DocumentSettings) -> tuple[Counts, Counts]:
    """Training and held-out documents: those that the user has held out, or a random share."""
    seed = settings.seed if settings.dev_seed is None else settings.dev_seed
    return hold_out(counts, settings.dev_share, seed) if held_out is None else (counts, held_out)


def hold_out(counts: Counts, share: float, seed: int) -> tuple[Counts, Counts]:
    """Hold out a random `share` of the documents: at least 20 if that leaves enough to train on, at most 2,000."""
    if not 0 < share < 1:
        raise InputError(f"dev_share must lie between 0 and 1, not {share}")
    size = counts.shape[0]
    held_out = max(1, min(max(round(share * size), min(20, size // 5)), 2000, size // 2))
    rows = some_rows(np.random.default_rng(stream(seed, "hold-out")), size, held_out)
    if isinstance(counts, ShardedCounts):
        return counts.without(rows), counts[rows]
    return counts[np.delete(np.arange(size), rows)], counts[rows]


def choose_recipe(model: str | type[DocumentNetwork], settings: DocumentSettings, counts: Counts) -> Recipe:
    """The preset's recipe for a corpus of this size, overridden by what the user has set."""
    kind = model_class(model)
    if not (isinstance(kind, type) and issubclass(kind, DocumentNetwork)):
        raise InputError(f"model: a name or a subclass of DocumentNetwork is needed, not {kind!r}")
    check_preset(model, settings.preset)
    if settings.fractional_counts and kind.whole_counts:
        name = stored_name(model, DOCUMENT_MODELS)
        raise InputError(f"{name} needs whole counts: set fractional_counts=False")
    documents, words = counts.shape
    words_per_document = sum(float(block.sum()) for block in blocks_of(counts)) / documents
    recipe = kind.recipe(settings.preset, documents, words_per_document)
    overrides = {name: getattr(settings, name) for name in OVERRIDES if getattr(settings, name) is not None}
    if settings.kl_schedule in WARM_UPS and settings.kl_warm_up is None:
        overrides["kl_warm_up"] = WARM_UPS[settings.kl_schedule]
    training = replace(recipe.training, seed=settings.seed, **overrides)
    objective = replace(recipe.objective, free_bits=settings.free_bits)
    if settings.fractional_counts:  # only whole counts can lose words
        objective = replace(objective, word_dropout=0.0)
    sizes = {"vocabulary_size": words, "latent_dim": min(settings.latent_dim, words)}
    if (vectors := vectors_of(counts)) is not None:
        if not kind.reads_vectors:
            name = stored_name(model, DOCUMENT_MODELS)
            raise InputError(f"{name} does not read sentence vectors: leave out vectors, or set model='nvdm_vectors'")
        sizes["sentence_dim"] = vectors.shape[1]
    architecture = with_network_arguments(kind, sizes | recipe.architecture, settings.network, reserved=sizes)
    for name in ("estimator", "softmax"):
        if (value := getattr(settings, name)) is not None:
            if name not in inspect.signature(kind).parameters:
                raise InputError(f"{stored_name(kind, DOCUMENT_MODELS)} has no choice of {name}: leave it at None")
            architecture[name] = value
    check_samples(architecture.get("estimator", ""), training.samples)
    return Recipe(architecture, training, objective)


def build_network(
    model: str | type[DocumentNetwork], recipe: Recipe, train: Counts, seed: int, device: str
) -> DocumentNetwork:
    check_device(device)
    with seeded(stream(seed, "initial weights")):
        network = model_class(model)(**recipe.architecture)
    word_counts = sum(np.asarray(block.sum(0), np.float64).ravel() for block in blocks_of(train))
    if isinstance(network, FitsWithoutGradients):
        note_cpu_only(type(network).__name__, device)
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
    optimization: Optimization = ADAMW,
) -> "Trainer | DirectTrainer":
    """A trainer that uses gradients, unless the model has `fit_without_gradients`."""
    direct = isinstance(network, FitsWithoutGradients)
    analytic = isinstance(network.estimator, Reparameterised) and type(network).objective is DocumentNetwork.objective
    if recipe.objective.free_bits and (direct or not analytic):
        raise InputError(
            f"{type(network).__name__}: free_bits needs a Gaussian h and the estimator reparameterised: leave it at 0"
        )
    if world.size > 1 and (direct or not network.independent_noise):
        raise InputError(f"{type(network).__name__} learns in one process only: use one process")
    task = DocumentTask(train, held_out, recipe.training, recipe.objective, device, world)
    if direct and optimization != ADAMW:
        raise InputError(f"{type(network).__name__} learns without gradients: leave out optimizer and schedule")
    if direct:
        return DirectTrainer(network, task, recipe.training, progress)
    return Trainer(network, task, recipe.training, checkpoint, progress, world, optimization)


class DocumentTask:
    """A `Task` for the training loop: batches of counts, the weighted loss, the un-annealed held-out bound."""

    def __init__(
        self,
        train: Counts,
        dev: Counts,
        settings: TrainingSettings,
        objective: DocumentObjective,
        device: str = "cpu",
        world: World = ALONE,
    ):
        self.world = world
        self.train, self.dev, self.settings, self.device = train, in_memory(dev), settings, device
        self.objective = objective
        self.steps_per_epoch = -(-train.shape[0] // settings.batch_size)
        # the loss in nats per word of an average document: one learning rate then fits titles and long articles
        mean = 0.0
        for block in blocks_of(train):
            powers = np.asarray(block.sum(1)).ravel() ** (1 - objective.length_exponent)
            mean += block.shape[0] / train.shape[0] * float(powers.mean())
        self.loss_scale = 1 / mean

    @cached_property
    def fingerprint(self) -> str:
        if isinstance(self.train, ShardedCounts):
            return self.train.sha256
        digest = hashlib.sha256()
        for part in (self.train.indptr, self.train.indices, self.train.data):
            digest.update(np.ascontiguousarray(part).data)
        if (vectors := vectors_of(self.train)) is not None:
            digest.update(np.ascontiguousarray(vectors).data)
        return digest.hexdigest()

    def batches(self, epoch: int) -> Iterator[CountBatch]:
        batches = CountBatches(self.train, self.device)
        seed, objective = (stream(self.settings.seed, "shuffles"), epoch), self.objective
        size, word_dropout = self.settings.batch_size, objective.word_dropout
        return batches.shuffled(size, seed, word_dropout, self.world, objective.vector_dropout)

    def loss(self, model: DocumentNetwork, batch: CountBatch, kl_weight: float) -> StepLoss:
        share = batch.share or ALONE.share(len(batch))
        weights = batch.lengths.pow(-self.objective.length_exponent) * self.loss_scale
        with working_on(share):
            if not self.objective.free_bits:
                in_loss = weights * (-share.weight / share.whole)
                if bound := model.set_gradients(batch, in_loss, self.settings.samples, kl_weight):
                    loss = (in_loss * bound.weighted(kl_weight)).sum()
                    return StepLoss(loss, share.mean(bound.elbo / batch.lengths), share.mean(bound.kl))
            surrogate, bound = model.objective(batch, self.settings.samples, kl_weight)
        if self.objective.free_bits:  # a smaller KL is raised to the free bits, so it costs the same whatever q is
            raised = (self.objective.free_bits - bound.kl_per_dimension).clamp(min=0)
            surrogate = surrogate - kl_weight * raised.sum(-1)
        loss = -share.mean(weights * surrogate)
        with torch.no_grad():
            return StepLoss(loss, share.mean(bound.elbo / batch.lengths), share.mean(bound.kl))

    def score(self, model: DocumentNetwork) -> Score:
        bounds = model.evaluate_round(self.dev, DEV_SAMPLES, stream(self.settings.seed, "dev noise"))
        perplexity = per_document_perplexity(bounds.elbo, bounds.lengths)
        metrics = {"dev_perplexity": perplexity, "dev_elbo_per_word": float((bounds.elbo / bounds.lengths).mean())}
        if bounds.kl.any():  # a model without draws of h has no KL
            active = int((bounds.kl_by_dimension > ACTIVE).sum())
            metrics |= {"dev_kl": float(bounds.kl.mean()), "active_units": active}
        return Score(perplexity, metrics)


class DirectTrainer:
    """Replaces `training.Trainer`; afterwards the model holds what scored best on the held-out documents."""

    def __init__(
        self,
        model: DocumentNetwork,
        task: DocumentTask,
        settings: TrainingSettings,
        progress: Progress | None = None,
    ):
        if not isinstance(model, FitsWithoutGradients):
            raise TypeError(f"{type(model).__name__} has no fit_without_gradients")
        self.learner = model
        self.model, self.task, self.settings, self.progress = model, task, settings, progress
        self.state = TrainingState()

    def train(self, resume: bool = False) -> TrainingState:
        """Run to the end. The global random state is restored afterwards."""
        if resume and self.progress:
            self.progress.note("this model keeps no checkpoint: starting from the beginning")
        with seeded(stream(self.settings.seed, "training noise"), self.task.device), Interruption() as interruption:
            started = time.monotonic()
            for share in self.learner.fit_without_gradients(in_memory(self.task.train), self.settings):
                self.state.step += 1
                self.state.seconds = time.monotonic() - started
                self._round(share)
                limit = self.settings.time_limit
                if interruption.requested or (limit is not None and self.state.seconds >= limit):
                    self.state.stopped = "interrupted" if interruption.requested else "time"
                    break
        self.state.stopped = self.state.stopped or "finished"
        self.model.load_state_dict(self.best_weights)
        return self.state

    def _round(self, share: float) -> None:
        self.model.eval()
        score, state = self.task.score(self.model), self.state
        if score.loss < state.best or state.step == 1:
            state.best, state.best_step = score.loss, state.step
            self.best_weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        record = {"step": state.step, "epoch": round(share * self.settings.epochs, 3)}
        state.history.append(record | {"seconds": round(state.seconds, 3)} | score.metrics)
        if self.progress:
            self.progress.step(share, score.metrics["dev_elbo_per_word"], score.metrics.get("dev_kl", 0.0))
            self.progress.round(state.history[-1])
