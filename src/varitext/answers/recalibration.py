"""Fit probabilities to the scores of some labelled questions; the order of every ranking is kept.

Scores become log odds by Platt scaling, and these go into the joint model of a question's candidates. Fifty questions
are few for its nine parameters, so a Gaussian prior holds them near the values that they had: levels (b and r_c) are
free, since how many answers are right differs most between domains, and slopes less so. `SPREAD` was chosen by
transfer between training questions of WikiQA and QASent, both ways; `python -m lab calibrate_any` measures the choice.

The reported figures, the thresholds and the answer sets come from cross-validation: every question is predicted by a
fit to the others.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from varitext.answers.joint import INITIAL, JointModel, JointPosterior, ParameterPrior
from varitext.answers.prediction import Calibration
from varitext.errors import InputError
from varitext.evaluation.calibration import calibration_record, no_answer_calibration, top_answers
from varitext.evaluation.conformal import HeldOutQuestions, mass_above
from varitext.layers.functions import expit
from varitext.records import DictRecord

SPREAD = (1.0, 3.0, 0.5, 1.0, 3.0, 1.0, 3.0, 1.0, 0.5)  # standard deviations of the prior, in the order of `INITIAL`
MIN_QUESTIONS = 10
FOLDS = 10
MIN_SCALE = 0.1  # a flatter regression tells nothing about the candidates of one question: scores stay as they are
UNCHANGED = Calibration(1.0, 0.0)


class LabelledScores(NamedTuple):
    """Candidates, [P], with scores (higher is better), labels (1 for right) and questions (numbered from 0)."""

    scores: np.ndarray
    labels: np.ndarray
    question_of: np.ndarray

    @property
    def answerable(self) -> np.ndarray:
        """Whether each question has a right answer, [Q]."""
        return np.asarray(np.bincount(self.question_of, self.labels) > 0)

    def of(self, questions: np.ndarray) -> "LabelledScores":
        """The questions that are chosen, [Q]."""
        rows = questions[self.question_of]
        return LabelledScores(
            self.scores[rows], self.labels[rows], np.unique(self.question_of[rows], return_inverse=True)[1]
        )

    def check(self) -> None:
        """Refuse data that is not enough to learn from."""
        n_questions, what = len(self.answerable), "calibration needs questions with right and with wrong candidates"
        if n_questions < MIN_QUESTIONS:
            raise InputError(f"{n_questions} labelled questions are too few: calibration needs {MIN_QUESTIONS}")
        if self.labels.min() == self.labels.max():
            kind = "right" if self.labels.max() else "wrong"
            raise InputError(f"every candidate of the {n_questions} questions is {kind}: {what}")


@dataclass(frozen=True)
class ScoreModel:
    """From scores to probabilities."""

    platt: Calibration
    joint: JointModel

    @classmethod
    def fit(cls, data: LabelledScores, parameters: tuple[float, ...] = INITIAL) -> "ScoreModel":
        """`parameters` of the joint model are the mean of their prior."""
        platt = Calibration.fit(expit(data.scores), data.labels)
        platt = UNCHANGED if platt is None or platt.scale < MIN_SCALE else platt
        scores = platt.log_odds(data.scores)
        return cls(platt, JointModel.fit(scores, *data[1:], prior=ParameterPrior(parameters, SPREAD)))

    def posterior(self, scores: np.ndarray, question_of: np.ndarray) -> JointPosterior:
        return self.joint.posterior(self.platt.log_odds(scores), question_of)


@dataclass(frozen=True)
class ProbabilityQuality(DictRecord):
    """Quality of probabilities on labelled questions."""

    log_loss: float  # nats per candidate
    ece: float  # of P(right)
    mean_probability_none: float
    none_ece: float

    @classmethod
    def of(cls, posterior: JointPosterior, data: LabelledScores) -> "ProbabilityQuality":
        pairs = calibration_record(posterior.right, data.labels, data.question_of)
        questions = no_answer_calibration(posterior.none, ~data.answerable)
        return cls(pairs.log_loss, pairs.ece, questions.mean_probability_none, questions.none_ece)


class CrossValidated(NamedTuple):
    quality: ProbabilityQuality
    held_out: HeldOutQuestions


def cross_validated(data: LabelledScores, parameters: tuple[float, ...] = INITIAL) -> CrossValidated:
    """Predict every question by a fit to the other folds; both kinds of questions are spread evenly over the folds."""
    order = np.lexsort((np.random.default_rng(0).permutation(len(data.answerable)), data.answerable))
    fold_of = np.empty(len(order), np.int64)
    fold_of[order] = np.arange(len(order)) % FOLDS
    right, best, none = np.zeros(len(data.scores)), np.zeros(len(data.scores)), np.zeros(len(order))
    for fold in range(FOLDS):
        held_out = fold_of == fold
        found = ScoreModel.fit(data.of(~held_out), parameters).posterior(*_unlabelled(data.of(held_out)))
        rows = held_out[data.question_of]
        right[rows], best[rows], none[held_out] = found
    posterior = JointPosterior(right, best, none)
    return CrossValidated(ProbabilityQuality.of(posterior, data), held_out_questions(posterior, data))


def held_out_questions(posterior: JointPosterior, data: LabelledScores) -> HeldOutQuestions:
    top = top_answers(posterior.right, data.labels, data.question_of)
    above = np.where(data.labels == 1, mass_above(posterior.best, posterior.none, *_unlabelled(data)), np.inf)
    highest = np.full(len(data.answerable), np.inf)
    np.minimum.at(highest, data.question_of, above)
    kept = (top.confidence, top.right, highest[data.answerable], posterior.none[~data.answerable])
    return HeldOutQuestions(*(tuple(values.tolist()) for values in kept))


def _unlabelled(data: LabelledScores) -> tuple[np.ndarray, np.ndarray]:
    return data.scores, data.question_of


@dataclass(frozen=True)
class CalibrationReport(DictRecord):
    """The questions that a ranker was calibrated on, and the quality of its probabilities there."""

    corpus: str
    part: str
    sha256: str
    n_questions: int
    n_without_answer: int
    before: ProbabilityQuality
    after: ProbabilityQuality  # cross-validated

    @classmethod
    def from_stored(cls, before: dict[str, float], after: dict[str, float], **source: Any) -> "CalibrationReport":
        """From the fields in a model folder."""
        return cls(**source, before=ProbabilityQuality(**before), after=ProbabilityQuality(**after))
