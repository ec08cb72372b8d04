"""Going on from a fitted model with new documents, and new words if asked, so that topics stay where they are.

The documents of before need not be there. What they would say against a change of the topics is known to second order:
moving the word directions by D changes the words of a document by a KL of

    1/2 Var_w(h^T D_w) per word, which for h ~ N(0, I) is on average    1/2 sum_k Var_w(D_wk)

with the variance over words by frequency. So n new documents are learned under a pull of n_before / n times that
towards the directions of before: each document of before still has its say. Words that they did not have are free.

Besides: no KL warm-up, which would forget what h carries; half the learning rate; of all rounds, and of the
model as it was, the one that is best on held-out new documents is kept; and the axes that users see are turned to where
they were, h being free to turn (`latent/rotation.py`).
"""

import copy
import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch
from varitext.corpora.document_input import DocumentInput, learn_from_words, unwrap
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import Counts, ShardedCounts, blocks_of, some_rows
from varitext.documents.fitting import choose_recipe, hold_out, without_empty
from varitext.documents.growing import grown, place_new_words
from varitext.documents.task import DocumentTask
from varitext.errors import InputError
from varitext.evaluation.topic_alignment import TopicAlignmentRecord, TopicSpace, topic_alignment_record
from varitext.evaluation.vectors import unit_rows
from varitext.models.documents.axes import axes_towards
from varitext.models.documents.base import DocumentNetwork, LearnsDirectly
from varitext.models.documents.recipe import Recipe
from varitext.runtime.threads import running_on
from varitext.text import Vocabulary
from varitext.training.settings import Progress, StepLoss, TrainingSettings, TrainingState
from varitext.training.trainer import Trainer

if TYPE_CHECKING:
    from varitext.documents.model import DocumentModel

SLOWER = 2  # the learning rate of a first fit is divided by
LEARNING_RATE_WARM_UP = 0.1  # Adam's first steps know nothing of the size of gradients
COMPARED = 2000  # documents whose vectors are compared before and after


@dataclass(frozen=True)
class UpdateRecord:
    """What one update did; a model folder lists them in `config.json`."""

    documents: int
    new_words: int
    alignment: TopicAlignmentRecord
    same_vectors: float  # mean cosine of the vectors of held-out documents before and after
    perplexity_before: float  # of the held-out new documents
    perplexity_after: float
    seconds: float
    stopped: str
    corpus: dict[str, str] | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Anchor:
    """The pull towards the word directions of before."""

    def __init__(self, network: DocumentNetwork, strength: float):
        """The first words of any network that is pulled are those of `network`."""
        self.directions = network.word_directions().detach().clone()  # [V, K]
        self.shares = torch.softmax(network.word_log_frequencies, 0)[:, None]  # [V, 1]
        self.strength = strength

    def cost(self, network: DocumentNetwork) -> Tensor:
        """In nats per word."""
        moved = network.word_directions()[: len(self.directions)] - self.directions
        variance = (self.shares * moved.square()).sum(0) - (self.shares * moved).sum(0).square()  # [K]
        return 0.5 * self.strength * variance.sum()


class UpdateTask(DocumentTask):
    """Learning new documents, with the documents of before as an anchor."""

    def __init__(self, train: Counts, dev: Counts, recipe: Recipe, device: str, anchor: Anchor, start: str):
        super().__init__(train, dev, recipe.training, recipe.objective, device)
        self.anchor = anchor
        self.start = start

    @property
    def fingerprint(self) -> str:
        """A checkpoint belongs to its documents and to the model that it went on from."""
        return f"{super().fingerprint} after {self.start}"

    def loss(self, model: DocumentNetwork, batch: CountBatch, kl_weight: float) -> StepLoss:
        step = super().loss(model, batch, kl_weight)
        return step._replace(loss=step.loss + self.anchor.cost(model))


def refuse_if_it_cannot_go_on(model: "DocumentModel") -> None:
    if isinstance(model.network_, LearnsDirectly):
        raise InputError(f"{model.model} learns from all documents at once and cannot go on from a model: use fit")


def go_on(
    model: "DocumentModel",
    X: DocumentInput,
    dev: DocumentInput | None = None,
    new_words: bool = False,
    epochs: int | None = None,
    learning_rate: float | None = None,
    anchor: float = 1.0,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> None:
    """Learn from new documents. The model changes at the end, all at once, or, if training failed, not at all."""
    refuse_if_it_cannot_go_on(model)
    after = copy.copy(model)
    if new_words:
        after.vocabulary_ = _widened_vocabulary(model, X)
        after.n_features_in_ = len(after.vocabulary_)
    counts = without_empty(after.count(X))
    if counts.shape[0] < 2:
        raise InputError(f"{counts.shape[0]} new document(s) with known words: going on needs at least 2")
    if dev is None:
        train, held_out = hold_out(counts, model.dev_share, model.seed)
    else:
        train, held_out = counts, without_empty(after.count(dev))
    recipe = recipe_for_going_on(choose_recipe(model, train), train.shape[0], epochs, learning_rate)
    # fresh noise at every call
    recipe = replace(recipe, training=replace(recipe.training, seed=model.seed + len(model.history_)))
    with running_on(model.threads):
        after.network_ = _starting_network(model, after, train)
        before = model.n_training_documents_
        pull = Anchor(model.move_to(model.device).network_, anchor * before / train.shape[0])
        task = UpdateTask(train, held_out, recipe, model.device, pull, _hash_of(after.network_))
        trainer = Trainer(after.network_.train().requires_grad_(True), task, recipe.training, checkpoint, progress)
        try:
            trainer.train(resume)
        finally:  # also when training gave up: the best weights so far are in place
            if trainer.state.stopped:
                _record(model, after, trainer.state, recipe.training, train, held_out, X)
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")


def recipe_for_going_on(recipe: Recipe, documents: int, epochs: int | None, learning_rate: float | None) -> Recipe:
    """Half the passes of a first fit, at half its learning rate, the KL at its full weight."""
    epochs = epochs or max(1, round(recipe.training.epochs / 2))
    training = replace(
        recipe.training,
        epochs=epochs,
        learning_rate=learning_rate or recipe.training.learning_rate / SLOWER,
        learning_rate_warm_up=LEARNING_RATE_WARM_UP,
        kl_warm_up=0,
        batch_size=min(recipe.training.batch_size, documents),
        patience=max(3, epochs // 4),
    )
    return replace(recipe, training=training)


def _widened_vocabulary(model: "DocumentModel", X: DocumentInput) -> Vocabulary:
    """The words of the model, then those that the new documents add by its rules."""
    counted = learn_from_words(X, model.token_rules_, model.vocabulary_rules_, model.processes)
    if counted is not None:
        words = counted.vocabulary.words
    else:
        X, given = unwrap(X)
        given = X.vocabulary if isinstance(X, ShardedCounts) else given
        if given is None:
            raise InputError("these counts do not say which words their columns are: no new words can be learned")
        words = given.words
    known = model.vocabulary_.index
    return Vocabulary(model.vocabulary_.words + tuple(word for word in words if word not in known))


def _starting_network(model: "DocumentModel", after: "DocumentModel", train: Counts) -> DocumentNetwork:
    """A copy of the model's network that knows the new frequencies, and the new words if there are any."""
    old = model.move_to(model.device).network_
    frequencies = _joint_log_frequencies(old, train, model.n_training_documents_).to(model.device)
    if len(after.vocabulary_) == len(model.vocabulary_):
        network = copy.deepcopy(old)
        network.word_log_frequencies.copy_(frequencies)
        return network
    network = grown(old, model.architecture_, frequencies, model.seed)
    place_new_words(network.eval(), old, train)
    return network


def _joint_log_frequencies(network: DocumentNetwork, train: Counts, before: int) -> Tensor:
    """Of the documents before and now, each by how many they are; add-one for what is new."""
    counts = sum(np.asarray(block.sum(0), np.float64).ravel() for block in blocks_of(train)) + 1
    shares = np.zeros(len(counts))
    old = network.word_log_frequencies.double().exp().cpu().numpy()
    shares[: len(old)] = old
    joint = before * shares + train.shape[0] * counts / counts.sum()
    return torch.from_numpy(np.log(joint / joint.sum())).float()


def _record(
    model: "DocumentModel",
    after: "DocumentModel",
    state: TrainingState,
    settings: TrainingSettings,
    train: Counts,
    held_out: Counts,
    X: DocumentInput,
) -> None:
    """Turn the axes to where they were, see what changed, and let the model be what it has become."""
    after.network_.eval().requires_grad_(False)
    known, network = len(model.vocabulary_), after.network_
    space = topic_space(model)
    if network.free_axes:
        directions = network.word_directions()[:known].detach().cpu().numpy()
        axes = axes_towards(directions, space.word_vectors, space.frequencies)
        network.axes.copy_(torch.from_numpy(axes))
    after.architecture_ = model.architecture_ | {"vocabulary_size": len(after.vocabulary_)}
    after.training_ = model.training_ | asdict(settings)
    after.history_ = model.history_ + state.history[1:]
    after.stopped_, after.dev_perplexity_ = state.stopped, state.best
    after.fit_seconds_ = model.fit_seconds_ + state.seconds
    after.n_training_documents_ = model.n_training_documents_ + train.shape[0]
    after.n_dev_documents_ = held_out.shape[0]
    sample = train[some_rows(np.random.default_rng((model.seed, 2)), train.shape[0], 2 * COMPARED)]
    share = train.shape[0] / after.n_training_documents_
    after.kl_per_dimension_ = (1 - share) * model.kl_per_dimension_ + share * after.kl_per_unit(sample)
    record = UpdateRecord(
        documents=train.shape[0],
        new_words=len(after.vocabulary_) - known,
        alignment=topic_alignment_record(space, topic_space(after)),
        same_vectors=_same_vectors(model, after, held_out[:COMPARED]),
        perplexity_before=state.first_score,
        perplexity_after=state.best,
        seconds=round(state.seconds, 1),
        stopped=state.stopped,
        corpus={"name": X.name, "part": X.part, "sha256": X.sha256} if isinstance(X, Documents) else None,
    )
    after.updates_ = [*model.updates_, record.as_dict()]
    model.__dict__.update(after.__dict__)


def topic_space(model: "DocumentModel") -> TopicSpace:
    frequencies = model.network_.word_log_frequencies.double().exp().cpu().numpy()
    return TopicSpace(model.word_vectors_, frequencies, model.vocabulary_.words, model.kl_per_dimension_)


def _same_vectors(model: "DocumentModel", after: "DocumentModel", counts: Counts) -> float:
    """Mean cosine of documents' vectors; those without a word of the old model have none to compare."""
    old_words = counts[:, : len(model.vocabulary_)].tocsr()
    known = np.flatnonzero(np.diff(old_words.indptr))
    before, now = model.transform(old_words[known]), after.transform(counts[known])
    return float((unit_rows(before) * unit_rows(now)).sum(1).mean()) if len(known) else 0.0


def _hash_of(network: DocumentNetwork) -> str:
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()
