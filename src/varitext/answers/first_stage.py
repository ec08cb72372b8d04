"""The first stage of a ranker, before counts and position join: a network or a scorer, behind one small interface.

A network is trained by gradients on batches of word numbers. A scorer learns in one go from the questions themselves.
"""

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from varitext.answers.fitting import Lesson, answer_objective, training_settings
from varitext.answers.task import PREDICTION_PAIRS, AnswerTask, prior_samples, sampled_probabilities
from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.scorer import AnswerScorer
from varitext.runtime.devices import check_device, seeded
from varitext.store import load_weights
from varitext.text import Vocabulary
from varitext.training.settings import TrainingState
from varitext.training.trainer import Trainer

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker

FIXED_VECTORS = "word_vectors.fixed"


class FirstStage(Protocol):
    """A model of answers, and what a ranker asks of it."""

    model: AnswerNetwork | AnswerScorer
    architecture: dict[str, Any]  # what the model is built with, as the model folder keeps it

    def trainer(self, chosen: "AnswerRanker", lesson: Lesson) -> "Trainer | OneGo":
        """Its training with these settings, before the first step."""

    def training_record(self, chosen: "AnswerRanker") -> dict[str, Any]:
        """The settings that count for its training, for the model folder."""

    def sampled(self, question_answers: QuestionAnswers, samples: int, seed: int) -> np.ndarray:
        """The probability of every pair for every sample of the prior, [S, P]; labels are not looked at."""

    def attention(self, question_answers: QuestionAnswers, samples: int, seed: int) -> np.ndarray | None:
        """The weight of every word of one question's candidates under the same h, [S, P, T]; None without attention."""

    def move_to(self, device: str) -> None: ...

    def stored_weights(self) -> dict[str, Tensor]: ...

    def restore(self, weights: dict[str, Tensor], folder: Path) -> None: ...


def build_stage(name: str, architecture: dict[str, Any], overlap: Overlap, device: str, seed: int = 0) -> FirstStage:
    kind = model_class(name)
    if not kind.trained_by_gradient:
        return ScorerStage(kind, architecture, overlap.vocabulary)
    return NetworkStage(kind, architecture, overlap, device, seed)


class NetworkStage:
    def __init__(
        self, kind: type[AnswerNetwork], architecture: dict[str, Any], overlap: Overlap, device: str, seed: int
    ):
        check_device(device)
        with seeded(seed):
            self.model = kind(**architecture).to(device)
        self.architecture, self.overlap, self.device = architecture, overlap, device

    def trainer(self, chosen: "AnswerRanker", lesson: Lesson) -> Trainer:
        if lesson.words.start is not None:
            self.model.word_vectors.start_from(torch.from_numpy(lesson.words.start))
        settings, words = training_settings(chosen), self.overlap.vocabulary
        objective = answer_objective(chosen)
        task = AnswerTask(lesson.train, lesson.dev, words, settings, objective, self.device, self._pair_columns)
        return Trainer(self.model, task, settings, lesson.checkpoint, lesson.progress)

    def training_record(self, chosen: "AnswerRanker") -> dict[str, Any]:
        return dataclasses.asdict(training_settings(chosen)) | dataclasses.asdict(answer_objective(chosen))

    def sampled(self, question_answers: QuestionAnswers, samples: int, seed: int) -> np.ndarray:
        return sampled_probabilities(self.model, self._batches(question_answers), samples, seed)

    def attention(self, question_answers: QuestionAnswers, samples: int, seed: int) -> np.ndarray | None:
        batch = self._batches(question_answers).batch([0])
        with torch.no_grad():
            encoding = self.model.encode(batch)
            h = prior_samples(self.model, encoding, batch, samples, seed).index_select(1, batch.question_of)
            weights = self.model.attention_given(h, encoding)
        return None if weights is None else weights.double().cpu().numpy()

    def move_to(self, device: str) -> None:
        self.device = device
        self.model.to(device)

    def stored_weights(self) -> dict[str, Tensor]:
        weights = self.model.state_dict()
        return weights | {FIXED_VECTORS: weights[FIXED_VECTORS].half()}  # exact: `learn_words` has rounded them

    def restore(self, weights: dict[str, Tensor], folder: Path) -> None:
        load_weights(self.model, weights | {FIXED_VECTORS: weights[FIXED_VECTORS].float()}, folder)
        self.model.eval().requires_grad_(False)

    def _batches(self, question_answers: QuestionAnswers) -> PairBatches:
        columns = self._pair_columns(question_answers)
        words = self.overlap.vocabulary
        return PairBatches(question_answers, words, PREDICTION_PAIRS, self.device, features=columns)

    def _pair_columns(self, question_answers: QuestionAnswers) -> np.ndarray | None:
        """The counts that the network reads beside the words, [P, F]."""
        if not self.model.pair_columns:
            return None
        return self.overlap.features(question_answers).only(self.model.pair_columns).values


class ScorerStage:
    def __init__(self, kind: type[AnswerScorer], architecture: dict[str, Any], vocabulary: Vocabulary):
        sizes = {name: value for name, value in architecture.items() if name != "vocabulary_size"}
        self.model = kind(vocabulary, **sizes)
        named = self.model.named_features
        # by name, so that a folder does not depend on what a later version takes without `features`
        self.architecture = architecture | ({} if named is None else {"features": list(named)})

    def trainer(self, chosen: "AnswerRanker", lesson: Lesson) -> "OneGo":
        return OneGo(self.model, lesson, chosen.seed)

    def training_record(self, chosen: "AnswerRanker") -> dict[str, Any]:
        return {}

    def sampled(self, question_answers: QuestionAnswers, samples: int, seed: int) -> np.ndarray:
        return expit(self.model.log_odds(question_answers))[None]  # [1, P]: without a latent all samples are one

    def attention(self, question_answers: QuestionAnswers, samples: int, seed: int) -> None:
        return None

    def move_to(self, device: str) -> None:
        """Its numbers are numpy's: they stay."""

    def stored_weights(self) -> dict[str, Tensor]:
        return self.model.state_dict()

    def restore(self, weights: dict[str, Tensor], folder: Path) -> None:
        load_weights(self.model, weights, folder)


class OneGo:
    """In the place of `training.Trainer`, for a model without steps: there is no checkpoint, and Ctrl-C ends it."""

    def __init__(self, scorer: AnswerScorer, lesson: Lesson, seed: int):
        self.model, self.lesson, self.seed = scorer, lesson, seed
        self.state = TrainingState()

    def train(self, resume: bool = False) -> TrainingState:
        """Learn, and take the dev MAP; there is nothing to `resume`."""
        started, dev = time.monotonic(), self.lesson.dev
        self.model.learn(self.lesson.train, dev, self.lesson.words, self.seed)
        ranking = ranking_record(self.model.log_odds(dev), dev.labels, dev.groups)
        self.state = TrainingState(
            seconds=time.monotonic() - started,
            best=-ranking.map,
            stopped="fitted",
            history=[{"step": 0, "dev_map": ranking.map, "dev_mrr": ranking.mrr}],
        )
        return self.state
