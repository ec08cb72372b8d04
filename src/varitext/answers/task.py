"""Fitting answers, as a `Task` for the training loop: batches of questions, the bound, held-out MAP under the prior.

The bound and its KL come from `latent/bound.py::elbo`. Results do not depend on the order of a file: questions and
candidates are in `canonical_order`.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from varitext.answers.network_prediction import PREDICTION_PAIRS, prior_samples
from varitext.answers.settings import PREDICTION_SAMPLES
from varitext.batches.pairs import PairBatch, PairBatches, PairInputs
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.calibration import log_loss
from varitext.evaluation.ranking import ranking_record
from varitext.latent import choose_estimator, elbo
from varitext.models.answers.network import AnswerNetwork
from varitext.runtime.randomness import stream
from varitext.text import Vocabulary
from varitext.training.settings import Score, StepLoss, TrainingSettings

POSTERIOR_SAMPLES = 5  # for the posterior-prior gap, a mean over all dev pairs
ACTIVE = 0.01  # nats: a latent dimension with a larger KL is active


@dataclass(frozen=True)
class AnswerObjective:
    """What is minimised: the mean over pairs of beta max(KL, free bits) - log likelihood.

    A pair is weighted by the number of candidates it stands for. A network with an importance-weighted
    `estimator` is trained on that bound instead, without beta and free bits.
    """

    free_bits: float = 0.0
    """Nats of KL per pair that cost nothing, against posterior collapse."""
    most_wrong: int | None = None
    """Wrong answers per question and epoch, drawn again in each epoch; None: all of them."""


class AnswerTask:
    """Learn which answers are right; stop by the MAP of dev questions under samples of the prior.

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
        inputs: Callable[[QuestionAnswers], PairInputs | None] = lambda _: None,
    ):
        self.dev, self.settings, self.objective = dev, settings, objective
        self.train_batches = PairBatches(
            train, vocabulary, settings.batch_size, device, objective.most_wrong, inputs(train)
        )
        self.dev_batches = PairBatches(dev, vocabulary, PREDICTION_PAIRS, device, inputs=inputs(dev))
        self.steps_per_epoch = len(self.train_batches)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.objective).encode())
        for batches in (self.train_batches, self.dev_batches):
            answers = [answer for answers in batches.answers for answer in answers]
            columns = np.zeros(0) if batches.inputs.columns is None else batches.inputs.columns
            gains = [] if batches.gains is None else [batches.gains]
            words = [values for pair in batches.inputs.words or () for values in pair] or [np.zeros(0)]
            for arrays in (batches.questions, answers, [*batches.labels, *gains], [batches.sizes], [columns], words):
                digest.update(np.array([len(array) for array in arrays]).tobytes())
                digest.update(np.concatenate(arrays).tobytes())
        return digest.hexdigest()

    def batches(self, epoch: int) -> Iterator[PairBatch]:
        return self.train_batches.shuffled((stream(self.settings.seed, "shuffles"), epoch))

    def loss(self, model: nn.Module, batch: PairBatch, kl_weight: float) -> StepLoss:
        network = cast("AnswerNetwork", model)
        if network.estimator != "reparameterised":
            return self._importance_weighted_loss(network, batch)
        bound = elbo(network, batch, self.settings.samples)
        paid = bound.kl.clamp(min=self.objective.free_bits) if self.objective.free_bits else bound.kl
        loss = mean_over_pairs(kl_weight * paid - bound.log_likelihood, batch, network.latent_of_question)
        if network.listwise:
            listwise = listwise_loss(network.logits(bound.draws.h, bound.draws.encoding).mean(0), batch)
            loss = network.listwise * listwise + network.cross_entropy * loss
        with torch.no_grad():
            return StepLoss(loss, bound.elbo.mean(), bound.kl.mean())

    def _importance_weighted_loss(self, network: AnswerNetwork, batch: PairBatch) -> StepLoss:
        estimate = choose_estimator(network.estimator)(network, batch, self.settings.samples)
        loss = mean_over_pairs(-estimate.surrogate, batch, network.latent_of_question)
        return StepLoss(loss, estimate.bound.elbo.mean(), estimate.bound.kl.mean())

    @torch.no_grad()
    def score(self, model: nn.Module) -> Score:
        network, seed = cast("AnswerNetwork", model), stream(self.settings.seed, "dev noise")
        parts = [_held_out(network, batch, seed) for batch in self.dev_batches.in_order()]
        found = _HeldOut(*(np.concatenate(values) for values in zip(*parts, strict=True)))
        if not all(np.isfinite(values).all() for values in found):
            return Score(float("inf"), {})
        ranking = ranking_record(found.probability, self.dev.labels, self.dev.groups)
        shuffled = ranking_record(found.shuffled, self.dev.labels, self.dev.groups)
        metrics = {
            "dev_map": ranking.map,
            "dev_mrr": ranking.mrr,
            "dev_log_loss": log_loss(found.probability, self.dev.labels),
            "dev_kl": float(found.kl.sum(1).mean()),
            "active_units": int((found.kl.mean(0) > ACTIVE).sum()),
            "posterior_prior_gap": float((found.posterior_log_likelihood - found.prior_log_likelihood).mean()),
            "dev_map_shuffled_h": shuffled.map,
        }
        return Score(-ranking.map, metrics)


def mean_over_pairs(cost: Tensor, batch: PairBatch, of_questions: bool) -> Tensor:
    """The mean over pairs [P], weighted by the candidates each stands for; or, of questions [Q], over their pairs."""
    if of_questions:
        return cost.sum() / batch.weights.sum()
    return (batch.weights * cost).mean() / batch.weights.mean()


def listwise_loss(logits: Tensor, batch: PairBatch) -> Tensor:
    """The mean over questions with a right answer of -log p(a right one), p the softmax of their candidates' logits.

    With several right answers it is the mean over them, weighted by their gains. Shifting the logits, [P], of
    all candidates of a question changes nothing: it is a loss of rankings. A wrong answer is weighted by the number it
    stands for.
    """
    gains, n_questions = batch.labels if batch.gains is None else batch.gains, len(batch.questions)
    shifted = logits + batch.weights.log()
    highest = shifted.new_full((n_questions,), -torch.inf)
    highest = highest.scatter_reduce(0, batch.question_of, shifted.detach(), "amax")
    total = shifted.new_zeros(n_questions).index_add(0, batch.question_of, (shifted - highest[batch.question_of]).exp())
    log_share = logits - (highest + total.log())[batch.question_of]  # [P]
    of_question = gains.new_zeros(n_questions).index_add(0, batch.question_of, gains)  # [Q]
    each = gains / torch.where(of_question > 0, of_question, 1.0)[batch.question_of]  # [P]
    return -(each * log_share).sum() / (of_question > 0).sum().clamp(min=1)


class _HeldOut(NamedTuple):
    """Values for held-out pairs under h of the prior, of the posterior, and of another question.

    B examples are the pairs, or the questions if all pairs of one share its h.
    """

    probability: np.ndarray  # [P]
    shuffled: np.ndarray  # [P]   the probability under h of the prior of another question
    prior_log_likelihood: np.ndarray  # [B]   E_p[log p(y | h)]
    posterior_log_likelihood: np.ndarray  # [B]   E_q[log p(y | h)]
    kl: np.ndarray  # [B, K]


def _held_out(model: AnswerNetwork, batch: PairBatch, seed: int) -> _HeldOut:
    posterior = elbo(model, batch, POSTERIOR_SAMPLES)
    encoding = posterior.draws.encoding
    h = prior_samples(model, encoding, batch, PREDICTION_SAMPLES, seed)  # [S, Q, K]
    # half a batch away: questions are in the order of their words, so neighbours are often similar
    other = h.roll(max(1, h.shape[1] // 2), 1)
    of_pairs = model.log_likelihood_of_pairs(h.index_select(1, batch.question_of), encoding)  # [S, P]
    shuffled = model.logits(other.index_select(1, batch.question_of), encoding)  # [S, P]
    right = torch.where(batch.labels == 1, of_pairs.exp(), -torch.expm1(of_pairs))  # [S, P] p(y = 1 | h)
    prior = model.log_likelihood(h, encoding) if model.latent_of_question else of_pairs  # [S, B]
    means = (right.mean(0), shuffled.sigmoid().mean(0), prior.mean(0))
    found = (*means, posterior.log_likelihood, posterior.kl_per_dimension)
    return _HeldOut(*(values.double().cpu().numpy() for values in found))
