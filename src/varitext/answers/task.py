"""Fitting answers, as a `Task` for the training loop: batches of questions, the bound, held-out MAP under the prior.

Nothing here depends on the order of a file: `arrange` puts questions and candidates into an order of their own, and a
question's samples of h are drawn from noise that belongs to its words.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.calibration import log_loss
from varitext.evaluation.ranking import ranking_record
from varitext.latent import DiagonalGaussian, elbo
from varitext.latent.bound import draw_encoded
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.text import Vocabulary
from varitext.training.settings import Score, StepLoss, TrainingSettings

PREDICTION_SAMPLES = 20  # the paper's
POSTERIOR_SAMPLES = 5  # for the leak alone: a mean over all dev pairs needs no more
PREDICTION_PAIRS = 512  # per batch, where there are no gradients to keep
ACTIVE = 0.01  # nats: a latent unit with a smaller KL carries nothing


@dataclass(frozen=True)
class AnswerObjective:
    """What is minimised: the mean over pairs of beta max(KL, free bits) - log likelihood.

    A pair weighs as many candidates as it stands for.
    """

    free_bits: float = 0.0
    """Nats of KL per pair that cost nothing: what may keep a latent alive that would not pay for itself."""
    most_wrong: int | None = None
    """Of each question, at most so many wrong answers per pass, drawn anew; None for all of them."""


class AnswerTask:
    """Learn which answers are right; choose by the MAP of dev questions under samples of the prior.

    Not by the bound: the posterior sees the label, and prediction does not.
    """

    def __init__(
        self,
        train: QuestionAnswers,
        dev: QuestionAnswers,
        vocabulary: Vocabulary,
        settings: TrainingSettings,
        objective: AnswerObjective,
        device: str = "cpu",
        features: Callable[[QuestionAnswers], np.ndarray | None] = lambda _: None,
    ):
        self.dev, self.settings, self.objective = dev, settings, objective
        self.train_batches = PairBatches(
            train, vocabulary, settings.batch_size, device, objective.most_wrong, features(train)
        )
        self.dev_batches = PairBatches(dev, vocabulary, PREDICTION_PAIRS, device, features=features(dev))
        self.steps_per_epoch = len(self.train_batches)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.objective).encode())
        for batches in (self.train_batches, self.dev_batches):
            answers = [answer for answers in batches.answers for answer in answers]
            for arrays in (
                batches.questions,
                answers,
                batches.labels,
                [batches.sizes],
                batches.features or [np.zeros(0)],
            ):
                digest.update(np.array([len(array) for array in arrays]))
                digest.update(np.concatenate(arrays))
        return digest.hexdigest()

    def batches(self, epoch: int) -> Iterator[PairBatch]:
        return self.train_batches.shuffled((self.settings.seed, epoch))

    def loss(self, model: nn.Module, batch: PairBatch, kl_weight: float) -> StepLoss:
        bound = elbo(model, batch, self.settings.samples)
        paid = bound.kl.clamp(min=self.objective.free_bits) if self.objective.free_bits else bound.kl
        loss = (batch.weights * (kl_weight * paid - bound.log_likelihood)).mean() / batch.weights.mean()
        with torch.no_grad():
            return StepLoss(loss, bound.elbo.mean(), bound.kl.mean())

    @torch.no_grad()
    def score(self, model: nn.Module) -> Score:
        paths = [_paths(model, batch, self.settings.seed) for batch in self.dev_batches.in_order()]
        found = _Paths(*(torch.cat(parts).double().cpu().numpy() for parts in zip(*paths, strict=True)))
        if not all(np.isfinite(values).all() for values in found):
            return Score(float("inf"), {})
        ranking = ranking_record(found.probability, self.dev.labels, self.dev.groups)
        exchanged = ranking_record(found.exchanged, self.dev.labels, self.dev.groups)
        metrics = {
            "dev_map": ranking.map,
            "dev_mrr": ranking.mrr,
            "dev_log_loss": log_loss(found.probability, self.dev.labels),
            "dev_kl": float(found.kl.sum(1).mean()),
            "active_units": int((found.kl.mean(0) > ACTIVE).sum()),
            "leak": float((found.posterior_log_likelihood - found.prior_log_likelihood).mean()),
            "dev_map_exchanged": exchanged.map,
        }
        return Score(-ranking.map, metrics)


class _Paths(NamedTuple):
    """What held-out pairs look like by h of the prior, by h of the posterior, and by another question's h."""

    probability: Tensor  # [P]
    exchanged: Tensor  # [P]   the probability under h of the prior of another question
    prior_log_likelihood: Tensor  # [P]   E_p[log p(y | h)]
    posterior_log_likelihood: Tensor  # [P]   E_q[log p(y | h)]
    kl: Tensor  # [P, K]


def _paths(model: AnswerNetwork, batch: PairBatch, seed: int) -> _Paths:
    encoding = model.encode(batch)
    h = prior_samples(model, encoding, batch, PREDICTION_SAMPLES, seed)  # [S, Q, K]
    # half round the batch: questions stand in the order of their words, so that neighbours are often alike
    other = h.roll(max(1, h.shape[1] // 2), 1)
    posterior = draw_encoded(model, encoding, POSTERIOR_SAMPLES).elbo()
    prior = model.log_likelihood(h.index_select(1, batch.question_of), encoding)  # [S, P]
    exchanged = model.logits(other.index_select(1, batch.question_of), encoding)  # [S, P]
    right = torch.where(batch.labels == 1, prior.exp(), -torch.expm1(prior))  # [S, P] p(y = 1 | h)
    return _Paths(
        right.mean(0), exchanged.sigmoid().mean(0), prior.mean(0), posterior.log_likelihood, posterior.kl_per_dimension
    )


# Prediction


def prior_samples(model: AnswerNetwork, encoding: Encoding, batch: PairBatch, samples: int, seed: int) -> Tensor:
    """h of the prior for every question, [S, Q, K]; to be shared by its candidates."""
    prior: DiagonalGaussian = model.prior_by_question(encoding)
    noise = torch.cat([_noise(one, samples, prior.mean.shape[1]) for one in question_seeds(batch, seed)], 1)
    return prior.mean + prior.std * noise.to(prior.mean)


def question_seeds(batch: PairBatch, seed: int) -> list[int]:
    """A number for each question that depends on its words and `seed` alone, not on its batch or place."""
    rows = zip(batch.questions.tokens.cpu().numpy(), batch.questions.mask.cpu().numpy(), strict=True)
    return [zlib.crc32(tokens[mask].tobytes(), seed & 0xFFFFFFFF) for tokens, mask in rows]


def _noise(seed: int, samples: int, latent_dim: int) -> Tensor:
    """From the CPU, whatever the device: a question's samples are the same everywhere."""
    return torch.randn(samples, 1, latent_dim, generator=torch.Generator().manual_seed(seed), device="cpu")


@torch.no_grad()
def sampled_probabilities(model: AnswerNetwork, batches: PairBatches, samples: int, seed: int) -> np.ndarray:
    """p(y = 1 | q, a, h) of every pair for every sample of the prior, [S, P]."""
    found = []
    for batch in batches.in_order():
        encoding = model.encode(batch)
        h = prior_samples(model, encoding, batch, samples, seed).index_select(1, batch.question_of)
        # in double precision: a float32 so near to 1 that it is 1 would tie answers that differ
        found.append(model.logits(h, encoding).double().sigmoid().cpu())
    return torch.cat(found, 1).numpy()


# Order and length
