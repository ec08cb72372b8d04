"""Several networks of the same shape, each trained from a seed of its own, as one first stage: their mean log odds.

What networks agree on they learned from the questions; what they differ in came from the seed. So the mean ranks better
than any of them, and each of them is one more sample of how the candidates may rank.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from torch import Tensor

from varitext.answers.calibration import log_odds
from varitext.answers.first_stage import FIXED_VECTORS, FirstStage, Training, build_stage
from varitext.answers.prediction import Prediction
from varitext.answers.settings import AnswerSettings
from varitext.answers.training_data import TrainingData
from varitext.answers.training_run import TrainingRun
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.scorer import AnswerScorer
from varitext.training.settings import TrainingState

MEMBERS = "members"  # in the architecture: how many networks there are


def build_stages(
    name: str, architecture: dict[str, Any], overlap: Overlap, device: str, seed: int = 0, members: int = 1
) -> FirstStage:
    """One model, or an ensemble of as many as `members` says."""
    own = {key: value for key, value in architecture.items() if key != MEMBERS}
    stages = [build_stage(name, own, overlap, device, seed + number) for number in range(members)]
    return stages[0] if members == 1 else EnsembleStage(stages)


class EnsembleStage:
    def __init__(self, members: list[FirstStage]):
        self.members = members

    @property
    def architecture(self) -> dict[str, Any]:
        return self.members[0].architecture | {MEMBERS: len(self.members)}

    @property
    def model(self) -> AnswerNetwork | AnswerScorer:
        """The first: what is the same for all can be asked of it."""
        return self.members[0].model

    def trainer(self, settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> "EnsembleTraining":
        return EnsembleTraining(self, settings, data, run)

    def training_record(self, settings: AnswerSettings, epochs: int) -> dict[str, Any]:
        return self.members[0].training_record(settings, epochs)

    def predict(
        self, question_answers: QuestionAnswers, samples: int, seed: int, attention: bool = False
    ) -> Prediction:
        found = [member.predict(question_answers, samples, seed, attention) for member in self.members]
        mean = log_odds(np.stack([one.probability for one in found])).mean(0)  # [P]
        looked_at = [one.attention for one in found if one.attention is not None]
        together = [np.concatenate(pair) for pair in zip(*looked_at, strict=True)]  # P times [members * S, T]
        return Prediction(expit(mean), np.concatenate([one.sampled for one in found]), together or None)

    def ready(self) -> None:
        for member in self.members:
            member.ready()

    def move_to(self, device: str) -> None:
        for member in self.members:
            member.move_to(device)

    def stored_weights(self) -> dict[str, Tensor]:
        """Under the number of each; word vectors that nobody learned are the same for all, and kept once."""
        weights = [member.stored_weights() for member in self.members]
        fixed = {FIXED_VECTORS: weights[0][FIXED_VECTORS]}
        own = [{name: one[name] for name in one.keys() - fixed.keys()} for one in weights]
        return fixed | {f"{number}.{name}": value for number, one in enumerate(own) for name, value in one.items()}

    def restore(self, weights: dict[str, Tensor], folder: Path) -> None:
        fixed = {FIXED_VECTORS: weights[FIXED_VECTORS]}
        for number, member in enumerate(self.members):
            prefix = f"{number}."
            own = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
            member.restore(own | fixed, folder)


class EnsembleTraining:
    """In the place of `Trainer`: one after another, each with its own checkpoint."""

    def __init__(self, stage: EnsembleStage, settings: AnswerSettings, data: TrainingData, run: TrainingRun):
        self.stage, self.settings, self.data, self.run = stage, settings, data, run
        self.states: list[TrainingState] = []

    def train(self, resume: bool = False) -> TrainingState:
        """Train all; one that was interrupted is the last, and those after it are left out."""
        members = self.stage.members
        for number, member in enumerate(members):
            self.run.note(f"network {number + 1} of {len(members)}")
            trainer = self._trainer(number, member)
            try:
                trainer.train(resume)
            finally:
                self.states.append(trainer.state)
                self.stage.members = members[: number + 1]
            if trainer.state.stopped == "interrupted":
                break
        return self.state

    def _trainer(self, number: int, member: FirstStage) -> Training:
        settings = replace(self.settings, seed=self.settings.seed + number)
        trainer = member.trainer(settings, self.data, self.run.of_member(number, len(self.stage.members)))
        return trainer

    @property
    def state(self) -> TrainingState:
        """As of one long run; its last record is the ensemble's own."""
        self.stage.ready()
        found = self.stage.predict(self.data.dev, self.settings.prediction_samples, self.settings.seed).probability
        ranking = ranking_record(found, self.data.dev.labels, self.data.dev.groups)
        history, begun = [], 0
        for number, one in enumerate(self.states):
            history += [record | {"network": number, "step": begun + record["step"]} for record in one.history]
            begun += one.step + 1
        history.append({"step": begun, "dev_map": ranking.map, "dev_mrr": ranking.mrr, "networks": len(self.states)})
        seconds = sum(one.seconds for one in self.states)
        stopped = self.states[-1].stopped
        return TrainingState(begun, seconds, -ranking.map, begun, stopped=stopped, history=history)
