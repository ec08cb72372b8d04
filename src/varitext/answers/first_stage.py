"""The first stage of a ranker, before counts and position join: a network or a scorer, behind one small interface.

A network is trained by gradients on batches of word numbers. A scorer is fitted directly on the questions themselves.
"""

import dataclasses
import time
from pathlib import Path
from typing import Any, Protocol

import torch
from scipy.special import expit
from torch import Tensor

from varitext.answers.derived_settings import answer_objective, training_settings
from varitext.answers.network_inputs import network_inputs
from varitext.answers.prediction import PREDICTION_PAIRS, Prediction, predict
from varitext.answers.settings import AnswerSettings
from varitext.answers.task import AnswerTask
from varitext.answers.training_data import TrainingData
from varitext.answers.training_run import TrainingRun
from varitext.batches.pairs import PairBatches, PairInputs
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.scorer import AnswerScorer
from varitext.runtime.devices import check_device
from varitext.runtime.randomness import seeded, stream
from varitext.store import load_weights
from varitext.text import Vocabulary
from varitext.training.settings import TrainingState
from varitext.training.trainer import Trainer

FIXED_VECTORS = "word_vectors.fixed"


class Training(Protocol):
    """`Trainer`, or what stands in its place."""

    @property
    def state(self) -> TrainingState: ...

    def train(self, resume: bool = False) -> TrainingState: ...


class FirstStage(Protocol):
    """A model of answers, and what a ranker asks of it."""

    @property
    def architecture(self) -> dict[str, Any]:
        """What the model is built with, as the model folder keeps it."""

    @property
    def model(self) -> AnswerNetwork | AnswerScorer: ...

    def trainer(self, settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> "Training":
        """Its training, before the first step."""

    def ready(self) -> None:
        """Training is over: from now on it predicts."""

    def training_record(self, settings: AnswerSettings, epochs: int) -> dict[str, Any]:
        """The settings that count for its training, for the model folder."""

    def predict(
        self, question_answers: QuestionAnswers, samples: int, seed: int, attention: bool = False
    ) -> Prediction:
        """What it says of every pair, and what it looked at if the model has `attention`; labels are not looked at."""

    def move_to(self, device: str) -> None: ...

    def stored_weights(self) -> dict[str, Tensor]: ...

    def restore(self, weights: dict[str, Tensor], folder: Path) -> None: ...


def build_stage(name: str, architecture: dict[str, Any], overlap: Overlap, device: str, seed: int = 0) -> FirstStage:
    kind = model_class(name)
    if issubclass(kind, AnswerScorer):
        return ScorerStage(kind, architecture, overlap.vocabulary)
    return NetworkStage(kind, architecture, overlap, device, seed)


class NetworkStage:
    def __init__(
        self, kind: type[AnswerNetwork], architecture: dict[str, Any], overlap: Overlap, device: str, seed: int
    ):
        check_device(device)
        with seeded(stream(seed, "initial weights")):
            self.model = kind(**architecture).to(device)
        self.architecture, self.overlap, self.device = architecture, overlap, device

    def trainer(self, settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> Trainer:
        if data.words.start is not None and not self.model.pretrained:
            self.model.word_vectors.start_from(torch.from_numpy(data.words.start))
        training, words = training_settings(settings, data.epochs), self.overlap.vocabulary
        objective = answer_objective(settings)
        task = AnswerTask(data.train, data.dev, words, training, objective, self.device, self._inputs)
        return Trainer(self.model, task, training, run.checkpoint, run.progress)

    def training_record(self, settings: AnswerSettings, epochs: int) -> dict[str, Any]:
        training, objective = training_settings(settings, epochs), answer_objective(settings)
        return dataclasses.asdict(training) | dataclasses.asdict(objective)

    def predict(
        self, question_answers: QuestionAnswers, samples: int, seed: int, attention: bool = False
    ) -> Prediction:
        inputs, words = self._inputs(question_answers), self.overlap.vocabulary
        batches = PairBatches(question_answers, words, PREDICTION_PAIRS, self.device, inputs=inputs)
        return predict(self.model, batches, samples, seed, attention)

    def ready(self) -> None:
        self.model.eval().requires_grad_(False)

    def move_to(self, device: str) -> None:
        self.device = device
        self.model.to(device)

    def stored_weights(self) -> dict[str, Tensor]:
        weights = self.model.state_dict()
        return weights | {FIXED_VECTORS: weights[FIXED_VECTORS].half()}  # exact: `learn_words` has rounded them

    def restore(self, weights: dict[str, Tensor], folder: Path) -> None:
        load_weights(self.model, weights | {FIXED_VECTORS: weights[FIXED_VECTORS].float()}, folder)
        self.model.eval().requires_grad_(False)

    def _inputs(self, question_answers: QuestionAnswers) -> PairInputs:
        return network_inputs(self.model, question_answers, self.overlap)


class ScorerStage:
    def __init__(self, kind: type[AnswerScorer], architecture: dict[str, Any], vocabulary: Vocabulary):
        sizes = {name: value for name, value in architecture.items() if name != "vocabulary_size"}
        self.model = kind(vocabulary, **sizes)
        named = self.model.named_features
        # by name, so that a folder does not depend on what a later version takes without `features`
        self.architecture = architecture | ({} if named is None else {"features": list(named)})

    def trainer(self, settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> "DirectFit":
        return DirectFit(self.model, data, settings.seed)

    def training_record(self, settings: AnswerSettings, epochs: int) -> dict[str, Any]:
        return {}

    def predict(
        self, question_answers: QuestionAnswers, samples: int, seed: int, attention: bool = False
    ) -> Prediction:
        probability = expit(self.model.log_odds(question_answers))  # [P]
        return Prediction(probability, probability[None])  # without a latent all samples are one

    def ready(self) -> None:
        self.model.eval()

    def move_to(self, device: str) -> None:
        """Its numbers are numpy's: they stay."""

    def stored_weights(self) -> dict[str, Tensor]:
        return self.model.state_dict()

    def restore(self, weights: dict[str, Tensor], folder: Path) -> None:
        load_weights(self.model, weights, folder)


class DirectFit:
    """In the place of `Trainer`, for a model without steps: there is no checkpoint, and Ctrl-C ends it at once."""

    def __init__(self, scorer: AnswerScorer, data: TrainingData, seed: int):
        self.model, self.data, self.seed = scorer, data, seed
        self.state = TrainingState()

    def train(self, resume: bool = False) -> TrainingState:
        """Learn, and take the dev MAP; there is nothing to `resume`."""
        started, dev = time.monotonic(), self.data.dev
        self.model.learn(self.data.train, dev, self.data.words, self.seed)
        ranking = ranking_record(self.model.log_odds(dev), dev.labels, dev.groups)
        self.state = TrainingState(
            seconds=time.monotonic() - started,
            best=-ranking.map,
            stopped="fitted",
            history=[{"step": 0, "dev_map": ranking.map, "dev_mrr": ranking.mrr}],
        )
        return self.state
