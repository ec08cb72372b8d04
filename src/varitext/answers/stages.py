"""The first stage of a ranker, before counts and position join: networks (`networks.py`), or a scorer.

A scorer is fitted on the questions themselves, without gradients. It ranks without torch, so what needs torch is
imported only where a network is built or a model is fitted.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from varitext.answers.prediction import Prediction
from varitext.answers.settings import AnswerSettings
from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.evaluation.ranking import ranking_record
from varitext.layers.functions import expit
from varitext.layers.shapes import check_numbers, check_shapes
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.model import AnswerModel
from varitext.models.answers.scorer import AnswerScorer
from varitext.text import Vocabulary
from varitext.training.settings import TrainingState

if TYPE_CHECKING:
    from varitext.answers.networks import NetworkStage
    from varitext.answers.training_data import TrainingData, TrainingRun


class ScorerStage:
    """The methods of `NetworkStage` for a scorer, which is fitted without gradients and stays on the CPU."""

    def __init__(self, kind: type[AnswerScorer], architecture: dict[str, Any], vocabulary: Vocabulary):
        sizes = {name: value for name, value in architecture.items() if name != "vocabulary_size"}
        self.model = kind(vocabulary, **sizes)
        named = self.model.named_features
        # by name: the folder must not depend on the default of a later version
        self.architecture = architecture | ({} if named is None else {"features": list(named)})

    def trainer(self, settings: AnswerSettings, data: "TrainingData", run: "TrainingRun") -> "ScorerTraining":
        from varitext.training.optimizer import ADAMW

        if run.optimization != ADAMW:
            raise InputError(f"{settings.model} learns without gradients: leave out optimizer and schedule")
        return ScorerTraining(self.model, data, settings.seed)

    def training_record(self, settings: AnswerSettings, epochs: int) -> dict[str, Any]:
        return {}

    def predict(
        self, question_answers: QuestionAnswers, samples: int, seed: int, attention: bool = False
    ) -> Prediction:
        probability = expit(self.model.log_odds(question_answers))  # [P]
        return Prediction(probability, probability[None])  # no latent variable: one sample

    def ready(self) -> None: ...

    def move_to(self, device: str) -> None: ...

    def stored_weights(self) -> dict[str, np.ndarray]:
        return self.model.state_dict()

    def restore(self, weights: Mapping[str, np.ndarray], folder: Path) -> None:
        check_shapes(self.model.state_dict(), weights, folder)
        self.model.load_state_dict(weights)


class ScorerTraining:
    """Takes the place of `Trainer`: there are no steps, nothing to resume, and Ctrl-C ends it at once."""

    def __init__(self, scorer: AnswerScorer, data: "TrainingData", seed: int):
        self.model, self.data, self.seed = scorer, data, seed
        self.state = TrainingState()

    def train(self, resume: bool = False) -> TrainingState:
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


def check_class(kind: object) -> None:
    """Refuse what `build_stage` cannot build."""
    if not (isinstance(kind, type) and issubclass(kind, AnswerModel)):
        raise InputError(f"a subclass of AnswerNetwork or AnswerScorer is needed, not {kind!r}")


def build_stage(
    kind: type[AnswerModel],
    architecture: dict[str, Any],
    overlap: Overlap,
    device: str,
    seed: int = 0,
    members: int = 1,
) -> "NetworkStage | ScorerStage":
    """The model with its initial weights, or that many networks."""
    if issubclass(kind, AnswerScorer):
        return ScorerStage(kind, architecture, overlap.vocabulary)
    from varitext.answers.networks import NetworkStage
    from varitext.models.answers.network import AnswerNetwork

    if issubclass(kind, AnswerNetwork):
        return NetworkStage(kind, architecture, overlap, device, seed, members)
    raise InputError(f"a subclass of AnswerNetwork or AnswerScorer is needed, not {kind!r}")


def stored_stage(
    kind: type[AnswerModel],
    architecture: dict[str, Any],
    overlap: Overlap,
    device: str,
    weights: Mapping[str, np.ndarray],
    folder: Path,
) -> "NetworkStage | ScorerStage":
    """The first stage of a model folder. An architecture that does not match the weights is refused."""
    if not issubclass(kind, AnswerScorer):
        from varitext.answers.networks import stored_networks

        return stored_networks(kind, architecture, overlap, device, weights, folder)
    check_numbers(architecture, folder)
    stage = ScorerStage(kind, architecture, overlap.vocabulary)
    stage.restore(weights, folder)
    return stage
