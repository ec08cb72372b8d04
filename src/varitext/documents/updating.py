"""Update a fitted model with new documents and, if requested, new words, so that topics stay where they are.

The earlier documents are not needed: an anchor stands in for them. The learning rate is halved, and there is no KL
warm-up, which would lose what h has learned. The best round on held-out new documents is kept, or the model as it was
if that is better. The axes that users see are rotated back to where they were (`models/documents/base.py`).

**The anchor.** How much worse changed topics would fit the earlier documents is known to second order: moving the word
directions by D changes the word distribution of a document by a KL of

    1/2 Var_w(h^T D_w) per word, which for h ~ N(0, I) is on average    1/2 sum_k Var_w(D_wk)

with the variance over words by frequency. So n new documents are learned with a penalty of n_earlier / n times that on
moving away from the earlier directions: each earlier document still counts. New words are not penalised.

**New words.** A network over V words has tensors with one dimension of length V. The larger network is built as for a
first fit, and the old values go to the first V places. A new word starts where a word of its frequency would start in a
first fit, moved by the average change of the old words since: like an ordinary word of no topic. If words come from
softmax(h R + b), one Newton step on log p(X | h) then moves a new word towards its documents, by less the rarer it is.
h_d is the vector that the old network gives document d, f_w the word's frequency:

    R_w  +=  sum_d (x_dw - N_d f_w) (h_d - mean h) / (1 + sum_d N_d f_w)
"""

import copy
import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch, CountBatches
from varitext.corpora.repeats import count_repeats
from varitext.corpora.sharded_counts import Counts, blocks_of, some_rows
from varitext.documents.fitting import DocumentTask, FittedDocuments, choose_recipe, split_off
from varitext.documents.posterior import BLOCK, kl_per_dimension, means_of
from varitext.documents.settings import DocumentSettings
from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import AlignmentRecord, alignment_record
from varitext.evaluation.vectors import unit_rows
from varitext.models.documents.base import DocumentNetwork, FitsWithoutGradients, Recipe, procrustes
from varitext.records import DictRecord
from varitext.runtime.randomness import seeded, stream
from varitext.text import Vocabulary
from varitext.training.settings import Progress, StepLoss
from varitext.training.trainer import Trainer

SLOWER = 2  # divides the learning rate of a first fit
LEARNING_RATE_WARM_UP = 0.1  # in its first steps Adam does not know the scale of the gradients
COMPARED = 2000  # documents whose vectors are compared before and after


@dataclass(frozen=True)
class UpdateSettings:
    """How to update a model; None means half the passes of a first fit, at half its learning rate."""

    epochs: int | None = None
    learning_rate: float | None = None
    anchor: float = 1.0  # at 0 topics move freely; at 1 an earlier document counts as much as a new one


@dataclass(frozen=True)
class UpdateRecord(DictRecord):
    """The effects of one update; a model folder lists them in `config.json`."""

    documents: int  # number of new documents learned
    new_words: int  # added to the vocabulary
    alignment: AlignmentRecord  # of the latent dimensions before and after
    same_vectors: float  # mean cosine of the vectors of held-out documents before and after
    perplexity_before: float | None  # of the held-out new documents
    perplexity_after: float
    seconds: float
    stopped: str  # why training ended
    corpus: dict[str, str] | None  # name, part and sha256


class DocumentUpdate:
    """A copy of a fitted network, ready to learn new documents. After training, `result` returns what was learned.

    `earlier` does not change. `vocabulary` has its words, then new ones, if any; `counts` are over these words and have
    no empty documents.
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
            raise InputError(
                f"{counts.shape[0]} new document(s) with known words: an update needs at least 2 documents"
            )
        self.earlier, self.vocabulary, self.corpus, self.seed = earlier, vocabulary, corpus, settings.seed
        self.train, self.held_out = split_off(counts, held_out, settings)
        seed = settings.seed + len(earlier.history)  # fresh noise for every update
        first = choose_recipe(type(earlier.network), settings, self.train)
        recipe = update_recipe(first, self.train.shape[0], chosen)
        self.recipe = replace(recipe, training=replace(recipe.training, seed=seed))
        self.network = with_new_documents(earlier, self.train, settings.seed)
        anchor = Anchor(earlier.network, chosen.anchor * earlier.n_training_documents / self.train.shape[0])
        start = _hash_of(self.network)
        task = UpdateTask(self.train, self.held_out, self.recipe, settings.device, anchor, start)
        trained = self.network.train().requires_grad_(True)
        self.trainer = Trainer(trained, task, self.recipe.training, checkpoint, progress)

    def result(self) -> FittedDocuments:
        """What was learned, with the axes rotated back to where they were, and a record of what changed."""
        earlier, state, documents = self.earlier, self.trainer.state, self.train.shape[0]
        network = self.network.eval().requires_grad_(False)
        if (
            network.free_axes
        ):  # rotate the axes that users see so that word vectors lie as close as possible to where they were
            space = earlier.latent_space()
            directions = network.word_directions()[: len(space.words)].detach().cpu().numpy()
            network.axes.copy_(torch.from_numpy(procrustes(directions, space.word_vectors, space.frequencies)))
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
        record = UpdateRecord(
            documents=documents,
            new_words=len(self.vocabulary) - len(earlier.vocabulary),
            alignment=alignment_record(earlier.latent_space(), fitted.latent_space()),
            same_vectors=_mean_cosine(earlier.network, network, self.held_out[:COMPARED]),
            perplexity_before=state.first_score,
            perplexity_after=state.best,
            seconds=round(state.seconds, 1),
            stopped=state.stopped,
            corpus=self.corpus,
        )
        return replace(fitted, updates=[*earlier.updates, record.as_dict()])


def check_can_update(name: str, network: DocumentNetwork) -> None:
    if isinstance(network, FitsWithoutGradients):
        raise InputError(f"{name} learns from all documents at once and cannot be updated: call fit on all documents")


def update_recipe(recipe: Recipe, documents: int, chosen: UpdateSettings) -> Recipe:
    """The recipe of an update: half the passes of a first fit, half its learning rate, the KL at full weight."""
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


def _mean_cosine(earlier: DocumentNetwork, network: DocumentNetwork, counts: Any) -> float:
    """Mean cosine of documents' vectors before and after; documents without an earlier word are left out."""
    counts = scipy.sparse.csr_matrix(counts)  # words alone: an earlier vocabulary has other columns
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


class Anchor:
    """The penalty on moving away from the word directions of a network."""

    def __init__(self, network: DocumentNetwork, strength: float):
        """The words of `network` must be the first words of any network that is penalised."""
        self.directions = network.word_directions().detach().clone()  # [V, K]
        self.shares = torch.softmax(network.word_log_frequencies, 0)[:, None]  # [V, 1]
        self.strength = strength

    def cost(self, network: DocumentNetwork) -> Tensor:
        """The penalty in nats per word."""
        moved = network.word_directions()[: len(self.directions)] - self.directions
        variance = (self.shares * moved.square()).sum(0) - (self.shares * moved).sum(0).square()  # [K]
        return 0.5 * self.strength * variance.sum()


class UpdateTask(DocumentTask):
    """Learning new documents, anchored to what was learned from earlier ones."""

    def __init__(self, train: Counts, dev: Counts, recipe: Recipe, device: str, anchor: Anchor, start: str):
        super().__init__(train, dev, recipe.training, recipe.objective, device)
        self.anchor = anchor
        self.start = start

    @property
    def fingerprint(self) -> str:
        """A checkpoint belongs to its documents and to the model that was updated."""
        return f"{super().fingerprint} after {self.start}"

    def loss(self, model: DocumentNetwork, batch: CountBatch, kl_weight: float) -> StepLoss:
        step = super().loss(model, batch, kl_weight)
        return step._replace(loss=step.loss + self.anchor.cost(model))


def with_new_documents(earlier: FittedDocuments, train: Counts, seed: int) -> DocumentNetwork:
    """Copy the network, with the frequencies of earlier and new documents, and with new words if there are any."""
    network = earlier.network
    # frequencies in earlier and new documents, weighted by the number of each; add-one for the new ones
    counts, shares = _word_counts(train) + 1, np.zeros(train.shape[1])
    shares[: len(network.word_log_frequencies)] = network.word_log_frequencies.double().exp().cpu().numpy()
    joint = earlier.n_training_documents * shares + train.shape[0] * counts / counts.sum()
    frequencies = torch.from_numpy(np.log(joint / joint.sum())).float().to(network.device)
    if train.shape[1] == len(earlier.vocabulary):
        same = copy.deepcopy(network)
        same.word_log_frequencies.copy_(frequencies)
        return same
    larger = grown(network, earlier.architecture, frequencies, seed)
    place_new_words(larger.eval(), network, train)
    larger.initialize_new_words(len(earlier.vocabulary))
    return larger


def grown(
    network: DocumentNetwork, architecture: dict[str, Any], log_frequencies: Tensor, seed: int
) -> DocumentNetwork:
    """The network over as many words as there are frequencies, [V]; its own words come first, in their order."""
    with seeded(stream(seed, "initial weights")):
        larger = type(network)(**architecture | {"vocabulary_size": len(log_frequencies)})
    larger.word_log_frequencies.copy_(log_frequencies)
    larger.initialize_from_frequencies()
    larger.to(log_frequencies.device)
    started, shares = larger.state_dict(), torch.softmax(log_frequencies[: len(network.word_log_frequencies)], 0)
    for name, old in network.state_dict().items():
        if name != "word_log_frequencies":
            started[name].copy_(_widened(name, old, started[name], shares))
    return larger


def _widened(name: str, old: Tensor, started: Tensor, shares: Tensor) -> Tensor:
    """The old values in the first places, and initial values for new words in the others."""
    differing = [place for place, pair in enumerate(zip(old.shape, started.shape, strict=True)) if pair[0] != pair[1]]
    if not differing:
        return old
    if len(differing) > 1 or old.shape[differing[0]] != len(shares):
        raise InputError(f"this kind of network cannot learn new words: {name} does not have a place for each")
    words = differing[0]
    was = started.narrow(words, 0, len(shares))
    new = started.narrow(words, len(shares), started.shape[words] - len(shares))
    moved = torch.tensordot(old - was, shares.to(old), ([words], [0])).unsqueeze(words)
    return torch.cat([old, new + moved], words)


@torch.no_grad()
def place_new_words(network: DocumentNetwork, old: DocumentNetwork, counts: Counts) -> None:
    """Take the Newton step if the network has a linear decoder; `counts` are over the words of `network`."""
    if (decoder := network.linear_decoder()) is None:
        return
    known = len(old.word_log_frequencies)
    frequencies = network.word_log_frequencies[known:].double().exp().cpu().numpy()  # [new]
    by_word, by_length, summed = 0.0, 0.0, 0.0  # of h: weighted by x_dw [new, K], by N_d [K], plain [K]
    for block in blocks_of(counts):
        batches = CountBatches(block[:, :known], old.device).in_order(BLOCK)
        means = torch.cat([old.document_means(batch) for batch in batches]).double()
        h = (
            (means @ old.axes.T.double() if old.free_axes else means).cpu().numpy()
        )  # [B, K]   on the axes of the network
        lengths = np.asarray(block.sum(1), np.float64)  # [B, 1]
        by_word, by_length = by_word + block[:, known:].T @ h, by_length + (lengths * h).sum(0)
        summed = summed + h.sum(0)
    word_counts = _word_counts(counts)
    words = float(word_counts.sum())
    mean = summed / counts.shape[0]
    pulled = by_word - np.outer(word_counts[known:], mean) - np.outer(frequencies, by_length - words * mean)
    step = pulled / (1 + words * frequencies)[:, None]
    decoder.weight[known:] += torch.from_numpy(step).to(decoder.weight)


def _word_counts(counts: Counts) -> np.ndarray:
    """How often each word occurs, [V]."""
    total = np.zeros(counts.shape[1])
    for block in blocks_of(counts):
        total += np.asarray(block.sum(0), np.float64).ravel()
    return total
