"""Fitting documents, as a `Task` for the training loop: batches of counts, the weighted loss, the held-out bound."""

import hashlib
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch

from varitext.batches.counts import CountBatch, CountBatches
from varitext.corpora.sharded_counts import Counts, ShardedCounts, blocks_of, in_memory
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.models.documents.base import DocumentNetwork
from varitext.models.documents.recipe import DocumentObjective
from varitext.runtime.processes import ALONE, World, working_on
from varitext.runtime.randomness import stream
from varitext.training.settings import Score, StepLoss, TrainingSettings

DEV_SAMPLES = 5  # enough to tell two rounds apart; the final evaluation uses 20
ACTIVE = 0.01  # nats: a latent unit with a smaller KL is inactive


class DocumentTask:
    """Learn documents; choose by the un-annealed bound of held-out ones."""

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
        # the loss in nats per word of an ordinary document: one learning rate then fits titles and long articles
        self.loss_scale = 1 / _mean_power_of_lengths(train, 1 - objective.length_exponent)

    @cached_property
    def fingerprint(self) -> str:
        if isinstance(self.train, ShardedCounts):
            return self.train.sha256
        digest = hashlib.sha256()
        for part in (self.train.indptr, self.train.indices, self.train.data):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def batches(self, epoch: int) -> Iterator[CountBatch]:
        batches = CountBatches(self.train, self.device)
        seed, word_dropout = (stream(self.settings.seed, "shuffles"), epoch), self.objective.word_dropout
        return batches.shuffled(self.settings.batch_size, seed, word_dropout, self.world)

    def loss(self, model: DocumentNetwork, batch: CountBatch, kl_weight: float) -> StepLoss:
        share = batch.share or ALONE.share(len(batch))
        with working_on(share):
            surrogate, bound = model.objective(batch, self.settings.samples, kl_weight)
        weights = batch.lengths.pow(-self.objective.length_exponent) * self.loss_scale
        loss = -share.mean(weights * surrogate)
        with torch.no_grad():
            return StepLoss(loss, share.mean(bound.elbo / batch.lengths), share.mean(bound.kl))

    def score(self, model: DocumentNetwork) -> Score:
        bounds = model.evaluate_round(self.dev, DEV_SAMPLES, stream(self.settings.seed, "dev noise"))
        perplexity = per_document_perplexity(bounds.elbo, bounds.lengths)
        metrics = {"dev_perplexity": perplexity, "dev_elbo_per_word": float((bounds.elbo / bounds.lengths).mean())}
        if bounds.kl.any():  # a model without draws of h has none
            active = int((bounds.kl_by_dimension > ACTIVE).sum())
            metrics |= {"dev_kl": float(bounds.kl.mean()), "active_units": active}
        return Score(perplexity, metrics)


def _mean_power_of_lengths(counts: Counts, exponent: float) -> float:
    """The mean over documents of a power of their length."""
    mean = 0.0
    for block in blocks_of(counts):
        lengths = np.asarray(block.sum(1)).ravel()
        mean += block.shape[0] / counts.shape[0] * float((lengths**exponent).mean())
    return mean
