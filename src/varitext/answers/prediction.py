"""What a network says of pairs: their probabilities and attention under samples of the prior, from one encoding.

A question's samples of h are drawn from noise that belongs to its words: neither its batch nor its place counts.
"""

import zlib
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.evaluation.columns import merge_ties
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.runtime.randomness import stream

PREDICTION_PAIRS = 512  # per batch, where there are no gradients to keep


class Prediction(NamedTuple):
    """One entry per pair, in the order of the corpus."""

    probability: np.ndarray  # [P] that the answer is right
    sampled: np.ndarray  # [S, P] the same for every sample of the prior
    attention: list[np.ndarray] | None = None  # P times [S, T]: the weight of each word of the answer in each sample

    def with_ties(self, question_of: np.ndarray) -> "Prediction":
        """Candidates of a question, [P], that only rounding tells apart are equal."""
        return self._replace(
            probability=merge_ties(self.probability, question_of), sampled=merge_ties(self.sampled, question_of)
        )

    def with_zero(self, unknown: np.ndarray) -> "Prediction":
        """Candidates that are `unknown`, [P], are right with probability 0."""
        return self._replace(
            probability=np.where(unknown, 0.0, self.probability), sampled=np.where(unknown, 0.0, self.sampled)
        )


@torch.no_grad()
def predict(model: AnswerNetwork, batches: PairBatches, samples: int, seed: int, attention: bool = False) -> Prediction:
    """Labels are not looked at. A model without a latent has one sample, as all would be the same.

    `attention` is None for a model without.
    """
    found: list[Tensor] = []
    weights: list[np.ndarray] = []
    for batch in batches.in_order():
        encoding = model.encode(batch)
        h = prior_samples(model, encoding, batch, samples if model.has_latent else 1, seed)  # [S, Q, K]
        h = h.index_select(1, batch.question_of)  # [S, P, K]
        # in double precision: a float32 so near to 1 that it is 1 would tie answers that differ
        found.append(model.logits(h, encoding).double().sigmoid().cpu())
        if attention and (given := model.attention_given(h, encoding)) is not None:
            weights += _of_each_pair(given, batch)
    sampled = torch.cat(found, 1).numpy()  # [S, P]
    return Prediction(sampled.mean(0), sampled, weights or None)


def prior_samples(model: AnswerNetwork, encoding: Encoding, batch: PairBatch, samples: int, seed: int) -> Tensor:
    """h of the prior for every question, [S, Q, K]; to be shared by its candidates."""
    prior = model.prior_by_question(encoding)
    noise = torch.cat([_noise(one, samples, prior.mean.shape[1]) for one in question_seeds(batch, seed)], 1)
    return prior.mean + prior.std * noise.to(prior.mean)


def question_seeds(batch: PairBatch, seed: int) -> list[int]:
    """A number for each question that depends on its words and `seed` alone, not on its batch or place."""
    rows = zip(batch.questions.tokens.cpu().numpy(), batch.questions.mask.cpu().numpy(), strict=True)
    start = stream(seed, "evaluation noise")
    return [zlib.crc32(tokens[mask].tobytes(), start) for tokens, mask in rows]


def _noise(seed: int, samples: int, latent_dim: int) -> Tensor:
    """From the CPU, whatever the device: a question's samples are the same everywhere."""
    return torch.randn(samples, 1, latent_dim, generator=torch.Generator().manual_seed(seed), device="cpu")


def _of_each_pair(weights: Tensor, batch: PairBatch) -> list[np.ndarray]:
    """Of `weights` [S, P, T], those of each answer's own words, [S, T]."""
    lengths = batch.answers.mask.sum(1).tolist()
    every = weights.double().cpu().numpy()
    return [every[:, row, :length] for row, length in enumerate(lengths)]
