"""The posterior over rankings: what the ranking would be if the labels were known.

Known labels put the right answers first, and the more probable first among right and among wrong ones.

Ranks are whole numbers, so no interval of them has exactly 90 % of the draws, and one rank alone may have more. Among
the shortest intervals with at least 90 % and those one rank shorter, we take the one whose share is nearest to 90 %,
and record that share.
"""

import math
from typing import NamedTuple

import numpy as np

from varitext.evaluation.columns import SharedRanks, merge_ties

DRAWS = 1000  # of labels, over all samples of h
MIN_DRAWS, MAX_DRAWN = 200, 200_000  # labels in all, of a question with very many candidates
INTERVAL = 0.9


def draws_for(n_candidates: int) -> int:
    return max(MIN_DRAWS, min(DRAWS, MAX_DRAWN // n_candidates))


class RankIntervals(NamedTuple):
    """The rank interval of every candidate, [P]."""

    low: np.ndarray
    high: np.ndarray
    share: np.ndarray  # of the draws that the interval holds: its nominal probability

    def holds(self, ranks: np.ndarray) -> np.ndarray:
        inside: np.ndarray = (self.low <= ranks) & (ranks <= self.high)
        return inside


def intervals_of(ranks: np.ndarray) -> RankIntervals:
    """The intervals of drawn ranks, [draws, P]."""
    draws, n_candidates = ranks.shape
    held, rising = math.ceil(INTERVAL * draws), np.sort(ranks, 0)
    begin = (rising[held - 1 :] - rising[: draws - held + 1]).argmin(0)  # [P] of the shortest that holds enough
    every = np.arange(n_candidates)
    found = _interval(ranks, rising[begin, every], rising[begin + held - 1, every])
    for low, high in ((found.low + 1, found.high), (found.low, found.high - 1)):
        shorter = _interval(ranks, low, high)
        nearer = (low <= high) & (np.abs(shorter.share - INTERVAL) < np.abs(found.share - INTERVAL))
        found = RankIntervals(*(np.where(nearer, one, other) for one, other in zip(shorter, found, strict=True)))
    return found


def _interval(ranks: np.ndarray, low: np.ndarray, high: np.ndarray) -> RankIntervals:
    return RankIntervals(low, high, ((ranks >= low) & (ranks <= high)).mean(0))


def ranks_given(scores: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Ranks of one question's candidates under drawn labels, [draws, P]; right ones first, by their scores, [P].

    Equal candidates are shuffled at every draw.
    """
    if len(np.unique(scores)) == len(scores):
        order = np.broadcast_to(np.argsort(-scores), labels.shape)
    else:
        order = np.lexsort((generator.random(labels.shape), np.broadcast_to(-scores, labels.shape)), axis=1)
    return ranks_in(order, np.take_along_axis(labels, order, 1).astype(bool))


class RankCalibration(NamedTuple):
    """Whether rankings are well calibrated, over questions that have a right answer."""

    top_probability_best: float  # mean P(best) of the top answers
    top_is_right: float  # the share of them that are right: about equal to it if the model is calibrated
    rank_interval_coverage: float  # how often the interval of a candidate holds its rank under the true labels
    nominal_coverage: float  # how often it should, by the intervals' own probabilities


def rank_calibration(
    scores: np.ndarray, best: np.ndarray, intervals: RankIntervals, labels: np.ndarray, question_of: np.ndarray
) -> RankCalibration:
    """All arguments are of pairs, [P]: ranking scores, P(best) given an answer, intervals; `question_of` from 0."""
    said, right, inside, promised = [], [], [], []
    for rows in np.split(np.argsort(question_of, kind="stable"), np.cumsum(np.bincount(question_of))[:-1]):
        score, true = merge_ties(scores[rows]), labels[rows]
        if not true.any():
            continue
        top = score == score.max()  # tied candidates share the first place
        said.append(best[rows][top].mean())
        right.append(true[top].mean())
        of_question = RankIntervals(*(values[rows] for values in intervals))
        inside.append(of_question.holds(known_ranks(score, true)))
        promised.append(of_question.share)
    found = (said, right, np.concatenate(inside), np.concatenate(promised))
    return RankCalibration(*(float(np.mean(values)) for values in found))


def known_ranks(probability: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The ranks under the true labels, [P], which intervals should hold. Equal candidates share the middle rank."""
    ranks = SharedRanks.of(labels + 0.5 * merge_ties(probability))  # 0.5: no probability outweighs a label
    return np.asarray((ranks.best + ranks.worst) / 2)


def ranks_in(order: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The ranks of candidates, from their order in every draw and whether each, in that order, is right, [draws, P]."""
    n_right = right.sum(1, keepdims=True)
    ranks_in_order = np.where(right, np.cumsum(right, 1), n_right + np.cumsum(~right, 1))
    ranks = np.empty_like(ranks_in_order)
    np.put_along_axis(ranks, order, ranks_in_order, 1)
    return ranks
