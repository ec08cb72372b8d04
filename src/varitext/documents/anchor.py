"""What keeps topics where they are while new documents are learned.

How much worse a change of the topics would fit the earlier documents is known to second order: moving the word
directions by D changes the words of a document by a KL of

    1/2 Var_w(h^T D_w) per word, which for h ~ N(0, I) is on average    1/2 sum_k Var_w(D_wk)

with the variance over words by frequency. So n new documents are learned with a penalty of n_earlier / n times that on
moving away from the earlier directions: each earlier document still counts. Words that they did not have are free.
"""

import torch
from torch import Tensor

from varitext.batches.counts import CountBatch
from varitext.corpora.sharded_counts import Counts
from varitext.documents.task import DocumentTask
from varitext.models.documents.base import DocumentNetwork
from varitext.models.documents.recipe import Recipe
from varitext.training.settings import StepLoss


class Anchor:
    """The penalty on moving away from the word directions of a network."""

    def __init__(self, network: DocumentNetwork, strength: float):
        """The first words of any network that is penalised are those of `network`."""
        self.directions = network.word_directions().detach().clone()  # [V, K]
        self.shares = torch.softmax(network.word_log_frequencies, 0)[:, None]  # [V, 1]
        self.strength = strength

    def cost(self, network: DocumentNetwork) -> Tensor:
        """In nats per word."""
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
