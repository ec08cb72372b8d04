"""The joint model of a ranker and where to abstain, from questions that the ranker was not trained on.

These are the dev questions, and those training questions without a right answer that training left out. The latter are
many and never seen, but alone of their kind: they and the dev questions without an answer together weigh as much as
such questions do among all questions that were given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varitext.answers.calibration import log_odds
from varitext.answers.joint import JointModel

PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # for which a threshold is kept


@dataclass(frozen=True)
class JointPicture:
    parameters: tuple[float, ...]
    thresholds: dict[str, float | None]
    """For a share of answered questions whose top candidate is right: the P(right) below which to abstain."""
    n_questions: int
    n_without_answer: int
    share_without_answer: float | None = None  # of all questions given; None: as among those it was fitted on

    @classmethod
    def fit(
        cls, probability: np.ndarray, labels: np.ndarray, question_of: np.ndarray, share: float | None = None
    ) -> "JointPicture":
        """`share` of questions have no right answer, if that is known from more than these; numbers from 0."""
        scores, answerable = log_odds(probability), np.bincount(question_of, labels == 1) > 0
        weights = question_weights(answerable, share)
        model = JointModel.fit(scores, labels, question_of, weights)
        right = model.posterior(scores, question_of).right
        first = _first_of_each(scores, question_of)
        top, is_right = right[first], labels[first] == 1
        thresholds = {str(one): abstention_threshold(top, is_right, one, weights) for one in PRECISIONS}
        n_without = int((~answerable).sum())
        return cls(model.parameters, thresholds, len(answerable), n_without, share)

    @property
    def model(self) -> JointModel:
        return JointModel(self.parameters)


def question_weights(answerable: np.ndarray, share: float | None) -> np.ndarray:
    """Of questions, so that those without a right answer have this `share` of the weight; answerable ones weigh 1."""
    n_with, n_without = int(answerable.sum()), int((~answerable).sum())
    if share is None or not (n_with and n_without and 0 < share < 1):
        return np.ones(len(answerable))
    return np.where(answerable, 1.0, n_with * share / (1 - share) / n_without)


def abstention_threshold(
    top: Sequence[float] | np.ndarray,
    is_right: Sequence[bool] | np.ndarray,
    precision: float,
    weights: np.ndarray | None = None,
) -> float | None:
    """The lowest P(right) of a top candidate at which those at or above it are right in `precision` of cases.

    `top`, `is_right` and `weights` are of questions. None if no threshold reaches it.
    """
    order = np.argsort(-np.asarray(top), kind="stable")
    probability, right = np.asarray(top)[order], np.asarray(is_right, float)[order]
    weight = np.ones(len(order)) if weights is None else weights[order]
    reached = np.cumsum(right * weight) / np.cumsum(weight) >= precision
    last = np.append(probability[1:] < probability[:-1], True)  # equal ones are answered together or not at all
    found = np.flatnonzero(reached & last)
    return float(probability[found[-1]]) if len(found) else None


def _first_of_each(scores: np.ndarray, question_of: np.ndarray) -> np.ndarray:
    """Where the highest score of each question is, [Q]."""
    order = np.lexsort((-scores, question_of))
    return np.asarray(order[np.unique(question_of[order], return_index=True)[1]])
