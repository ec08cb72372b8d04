"""What a ranker believes of a question's candidates: P(right), P(best), P(none) and the ranks each may have.

All come from one joint model of the labels (`joint.py`) where the ranker has one. Rankers of older folders have none:
theirs come from each candidate's own probability under samples of h, as if labels were independent given h.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from varitext.answers.calibration import log_odds
from varitext.answers.joint import JointModel
from varitext.answers.prediction import Prediction
from varitext.corpora.question_answers import Question, QuestionAnswers
from varitext.evaluation.posterior_ranks import (
    RankIntervals,
    best_probability,
    draws_for,
    intervals_of,
    rank_intervals,
    ranks_given,
)


@dataclass(frozen=True, eq=False)
class RankingPosterior:
    """Of pairs, in the order of the corpus; of questions, in theirs."""

    right: np.ndarray  # [P] the probability of being right
    best: np.ndarray  # [P] of being the highest right one: with `none` it sums to one over a question's candidates
    none: np.ndarray | None  # [Q] that none is right; None: nothing is known of that, and `best` is given an answer
    intervals: RankIntervals  # [P] of ranks, given that some candidate is right
    question_of: np.ndarray  # [P]

    def given_answer(self) -> "RankingPosterior":
        """The same once it is known that every question has a right answer among its candidates."""
        if self.none is None:
            return self
        some = np.maximum(1 - self.none, np.finfo(float).tiny)[self.question_of]
        right, best = (np.minimum(values / some, 1.0) for values in (self.right, self.best))
        return RankingPosterior(right, best, None, self.intervals, self.question_of)


def ranking_posterior(
    joint: JointModel | None, prediction: Prediction, question_answers: QuestionAnswers
) -> RankingPosterior:
    """A candidate with probability 0 is one that cannot be right."""
    question_of = question_answers.groups
    if joint is None:
        parts = [prediction.sampled[:, rows] for rows in _rows(question_of)]
        best = np.concatenate([best_probability(part) for part in parts])
        drawn = [rank_intervals(*one) for one in zip(parts, map(_draws_for, question_answers.questions), strict=True)]
        return RankingPosterior(prediction.probability, best, None, _joined(drawn), question_of)
    scores = np.where(prediction.probability > 0, log_odds(prediction.probability), -np.inf)
    found = joint.posterior(scores, question_of)
    return RankingPosterior(*found, _intervals(joint, scores, question_answers), question_of)


def _intervals(joint: JointModel, scores: np.ndarray, question_answers: QuestionAnswers) -> RankIntervals:
    drawn = []
    every = joint.label_distributions(scores, question_answers.groups)
    for question, rows, labels_of in zip(
        question_answers.questions, _rows(question_answers.groups), every, strict=True
    ):
        generator = _draws_for(question)
        labels = labels_of.sample(draws_for(len(rows)), generator, answerable=True)
        drawn.append(intervals_of(ranks_given(scores[rows], labels, generator)))
    return _joined(drawn)


def _rows(question_of: np.ndarray) -> list[np.ndarray]:
    """The pairs of each question."""
    return np.split(np.arange(len(question_of)), np.cumsum(np.bincount(question_of))[:-1])


def _joined(parts: list[RankIntervals]) -> RankIntervals:
    return RankIntervals(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _draws_for(question: Question) -> np.random.Generator:
    """Of labels; the same for the same question."""
    return np.random.default_rng(zlib.crc32(" ".join(question.words).encode()))
