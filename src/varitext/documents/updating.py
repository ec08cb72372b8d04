"""Updating a fitted model with new documents, and new words if asked, so that topics stay where they are.

The earlier documents need not be there: an anchor stands for them (`anchor.py`). There is no KL warm-up, which would
lose what h has learned; half the learning rate; of all rounds, and of the model as it was, the one that is best on
held-out new documents is kept; and the axes that users see are turned to where they were, since h may have turned
(`models/documents/axes.py`).
"""

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from varitext.corpora.repeats import count_repeats
from varitext.corpora.sharded_counts import Counts, some_rows
from varitext.documents.anchor import Anchor, UpdateTask
from varitext.documents.fitted import FittedDocuments
from varitext.documents.fitting import choose_recipe, split_off
from varitext.documents.growing import with_new_documents
from varitext.documents.posterior import kl_per_dimension, means_of
from varitext.documents.settings import DocumentSettings
from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import AlignmentRecord, alignment_record
from varitext.evaluation.vectors import unit_rows
from varitext.models.documents.axes import axes_towards
from varitext.models.documents.base import DocumentNetwork, LearnsDirectly
from varitext.models.documents.recipe import Recipe
from varitext.runtime.randomness import stream
from varitext.text import Vocabulary
from varitext.training.settings import Progress
from varitext.training.trainer import Trainer

SLOWER = 2  # the learning rate of a first fit is divided by
LEARNING_RATE_WARM_UP = 0.1  # Adam's first steps know nothing of the size of gradients
COMPARED = 2000  # documents whose vectors are compared before and after


@dataclass(frozen=True)
class UpdateSettings:
    """None: half the passes of a first fit, at half its learning rate."""

    epochs: int | None = None
    learning_rate: float | None = None
    anchor: float = 1.0  # 0 would let topics move freely; at 1 an earlier document counts as much as a new one


@dataclass(frozen=True)
class UpdateRecord:
    """What one update did; a model folder lists them in `config.json`."""

    documents: int
    new_words: int
    alignment: AlignmentRecord
    same_vectors: float  # mean cosine of the vectors of held-out documents before and after
    perplexity_before: float | None  # of the held-out new documents
    perplexity_after: float
    seconds: float
    stopped: str
    corpus: dict[str, str] | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class DocumentUpdate:
    """A copy of a fitted network ready to learn new documents. After training, `result` has what was learned.

    `earlier`, on its device, stays as it is. `vocabulary` has its words and then new ones, if any; `counts` are over
    these and without empty documents.
    """

    def __init__(
        self,
        settings: DocumentSettings,
        chosen: UpdateSettings,
        earlier: FittedDocuments,
        vocabulary: Vocabulary,
        counts: Counts,
        held_out: Counts | None = None,
        corpus: dict[str, str] | None = None,
        checkpoint: Path | None = None,
        progress: Progress | None = None,
    ):
        if counts.shape[0] < 2:
            raise InputError(f"{counts.shape[0]} new document(s) with known words: an update needs at least 2")
        self.earlier, self.vocabulary, self.corpus, self.seed = earlier, vocabulary, corpus, settings.seed
        self.train, self.held_out = split_off(counts, held_out, settings)
        seed = settings.seed + len(earlier.history)  # fresh noise for every update
        recipe = update_recipe(
            choose_recipe(replace(settings, model=earlier.model), self.train), self.train.shape[0], chosen
        )
        self.recipe = replace(recipe, training=replace(recipe.training, seed=seed))
        self.network = with_new_documents(earlier, self.train, settings.seed)
        anchor = Anchor(earlier.network, chosen.anchor * earlier.n_training_documents / self.train.shape[0])
        start = _hash_of(self.network)
        task = UpdateTask(self.train, self.held_out, self.recipe, settings.device, anchor, start)
        trained = self.network.train().requires_grad_(True)
        self.trainer = Trainer(trained, task, self.recipe.training, checkpoint, progress)

    def result(self) -> FittedDocuments:
        """With the axes turned to where they were, and a record of what changed."""
        earlier, state, documents = self.earlier, self.trainer.state, self.train.shape[0]
        network = self.network.eval().requires_grad_(False)
        if network.free_axes:
            _turn_back(network, earlier)
        rows = some_rows(np.random.default_rng(stream(self.seed, "documents for axes")), documents, 2 * COMPARED)
        share = documents / (earlier.n_training_documents + documents)
        kl = (1 - share) * earlier.kl_per_dimension + share * kl_per_dimension(network, self.train[rows])
        fitted = replace(
            earlier,
            network=network,
            vocabulary=self.vocabulary,
            architecture=earlier.architecture | {"vocabulary_size": len(self.vocabulary)},
            training=earlier.training | asdict(self.recipe.training),
            kl_per_dimension=kl,
            history=earlier.history + state.history[1:],
            stopped=state.stopped,
            fit_seconds=earlier.fit_seconds + state.seconds,
            dev_perplexity=state.best,
            n_training_documents=earlier.n_training_documents + documents,
            n_dev_documents=self.held_out.shape[0],
            n_repeated_documents=count_repeats(self.held_out, self.train),
        )
        return replace(fitted, updates=[*earlier.updates, self._record(fitted).as_dict()])

    def _record(self, fitted: FittedDocuments) -> UpdateRecord:
        state = self.trainer.state
        return UpdateRecord(
            documents=self.train.shape[0],
            new_words=len(self.vocabulary) - len(self.earlier.vocabulary),
            alignment=alignment_record(self.earlier.latent_space(), fitted.latent_space()),
            same_vectors=_mean_cosine(self.earlier.network, fitted.network, self.held_out[:COMPARED]),
            perplexity_before=state.first_score,
            perplexity_after=state.best,
            seconds=round(state.seconds, 1),
            stopped=state.stopped,
            corpus=self.corpus,
        )


def check_can_update(name: str, network: DocumentNetwork) -> None:
    if isinstance(network, LearnsDirectly):
        raise InputError(f"{name} learns from all documents at once and cannot be updated: use fit")


def update_recipe(recipe: Recipe, documents: int, chosen: UpdateSettings) -> Recipe:
    """Half the passes of a first fit, at half its learning rate, the KL at its full weight."""
    epochs = chosen.epochs or max(1, round(recipe.training.epochs / 2))
    training = replace(
        recipe.training,
        epochs=epochs,
        learning_rate=chosen.learning_rate or recipe.training.learning_rate / SLOWER,
        learning_rate_warm_up=LEARNING_RATE_WARM_UP,
        kl_warm_up=0,
        batch_size=min(recipe.training.batch_size, documents),
        patience=max(3, epochs // 4),
    )
    return replace(recipe, training=training)


def _turn_back(network: DocumentNetwork, earlier: FittedDocuments) -> None:
    """Turn the axes on which users see h until the word vectors lie, as nearly as they can, where they were."""
    space = earlier.latent_space()
    directions = network.word_directions()[: len(space.words)].detach().cpu().numpy()
    network.axes.copy_(torch.from_numpy(axes_towards(directions, space.word_vectors, space.frequencies)))


def _mean_cosine(earlier: DocumentNetwork, network: DocumentNetwork, counts: Any) -> float:
    """Of documents' vectors before and after; those without a word that the earlier network knows have none."""
    old_words = counts[:, : len(earlier.word_log_frequencies)].tocsr()
    known = np.flatnonzero(np.diff(old_words.indptr))
    if not len(known):
        return 0.0
    before, after = means_of(earlier, old_words[known]), means_of(network, counts[known])
    return float((unit_rows(before) * unit_rows(after)).sum(1).mean())


def _hash_of(network: DocumentNetwork) -> str:
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()
