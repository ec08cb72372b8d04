"""From a network to one probability per pair, by samples of the prior.

A question's samples of h come from noise that depends on its words and the seed only, not on its batch or place.
"""

import zlib

import numpy as np
import torch
from torch import Tensor

from varitext.answers.prediction import Prediction
from varitext.batches.pairs import PairBatch, PairBatches
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.runtime.randomness import stream

PREDICTION_PAIRS = 512  # per batch, where there are no gradients to keep


@torch.no_grad()
def predict(model: AnswerNetwork, batches: PairBatches, samples: int, seed: int, attention: bool = False) -> Prediction:
    """Labels are not read. A model without a latent variable has one sample, as all would be the same."""
    found: list[Tensor] = []
    weights: list[np.ndarray] = []
    for batch in batches.in_order():
        encoding = model.encode(batch)
        h = prior_samples(model, encoding, batch, samples if model.has_latent else 1, seed)  # [S, Q, K]
        h = h.index_select(1, batch.question_of)  # [S, P, K]
        # in double precision: float32 rounds values near 1 to 1, which would tie answers that differ
        found.append(model.logits(h, encoding).double().sigmoid().cpu())
        if attention and (given := model.attention_given(h, encoding)) is not None:
            weights += _of_each_pair(given, batch)
    sampled = torch.cat(found, 1).numpy()  # [S, P]
    return Prediction(sampled.mean(0), sampled, weights or None)


def prior_samples(model: AnswerNetwork, encoding: Encoding, batch: PairBatch, samples: int, seed: int) -> Tensor:
    """h of the prior for every question, [S, Q, K]; shared by its candidates."""
    prior = model.prior_by_question(encoding)
    noise = torch.cat([_noise(one, samples, prior.mean.shape[1]) for one in question_seeds(batch, seed)], 1)
    return prior.mean + prior.std * noise.to(prior.mean)


def question_seeds(batch: PairBatch, seed: int) -> list[int]:
    rows = zip(batch.questions.tokens.cpu().numpy(), batch.questions.mask.cpu().numpy(), strict=True)
    start = stream(seed, "evaluation noise")
    return [zlib.crc32(tokens[mask].tobytes(), start) for tokens, mask in rows]


def _noise(seed: int, samples: int, latent_dim: int) -> Tensor:
    """Drawn on the CPU, whatever the device: a question's samples are the same everywhere."""
    return torch.randn(samples, 1, latent_dim, generator=torch.Generator().manual_seed(seed), device="cpu")


def _of_each_pair(weights: Tensor, batch: PairBatch) -> list[np.ndarray]:
    """From `weights` [S, P, T], those of each answer's own words, [S, T]."""
    lengths = batch.answers.mask.sum(1).tolist()
    every = weights.double().cpu().numpy()
    return [every[:, row, :length] for row, length in enumerate(lengths)]
