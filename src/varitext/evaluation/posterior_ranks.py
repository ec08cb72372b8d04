"""The posterior over rankings: what the ranking would be if the labels were known.

A sample of the posterior is a draw of h and, given h, of the labels: y_i ~ Bernoulli(p_i(h)). It is asked which right
answer is the best, so at least one is right. Known labels put the right answers first, and the more probable first
among right and among wrong ones. With candidates in the order of p, the best is i with probability

    p_i prod_{j < i} (1 - p_j)  /  (1 - prod_j (1 - p_j))

and a candidate with p_i = 0 is never, unless all have; then all are with the same probability.

Spread comes from both draws. Where h says nothing it is the labels' alone, and a ranking is still as unsure as its
probabilities are.

Ranks are whole numbers, so no interval of them has exactly 90 % of the draws, and one rank alone may have more. An
interval is the one whose share is nearest to that, of the shortest that have at least as much and of those a rank
shorter; and it says what its share is.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from varitext.evaluation.columns import merge_ties

DRAWS = 1000  # of labels, over all samples of h
MIN_DRAWS, MAX_DRAWN = 200, 200_000  # labels in all, of a question with very many candidates
INTERVAL = 0.9
SMALLEST = 1e-12


def best_probability(sampled: np.ndarray) -> np.ndarray:
    """That each candidate is the best, [P], from p(y = 1 | h) of each sample, [S, P]. Equal candidates share."""
    sampled = merge_ties(sampled)
    order = np.argsort(-sampled, 1, kind="stable")
    best = np.empty_like(sampled)
    np.put_along_axis(best, order, _best_in_order(np.take_along_axis(sampled, order, 1)), 1)
    mean: np.ndarray = np.stack([_shared(*row) for row in zip(sampled, best, strict=True)]).mean(0)
    return mean


def draws_for(n_candidates: int) -> int:
    return max(MIN_DRAWS, min(DRAWS, MAX_DRAWN // n_candidates))


def rank_draws(sampled: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Ranks of all candidates under drawn labels, [draws, P]; 1 is the best."""
    sampled, per_sample = merge_ties(sampled), max(1, draws_for(sampled.shape[1]) // len(sampled))
    return np.concatenate([_ranks_of_one(one, per_sample, generator) for one in sampled])


class RankIntervals(NamedTuple):
    """Of every candidate, [P]."""

    low: np.ndarray
    high: np.ndarray
    share: np.ndarray  # of the draws that the interval holds: the probability that it promises

    def holds(self, ranks: np.ndarray) -> np.ndarray:
        inside: np.ndarray = (self.low <= ranks) & (ranks <= self.high)
        return inside


def rank_intervals(sampled: np.ndarray, generator: np.random.Generator) -> RankIntervals:
    """From p(y = 1 | h) of each sample, [S, P]."""
    return intervals_of(rank_draws(sampled, generator))


def intervals_of(ranks: np.ndarray) -> RankIntervals:
    """From drawn ranks, [draws, P]."""
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
    return _ranks_in(order, np.take_along_axis(labels, order, 1).astype(bool))


class RankCalibration(NamedTuple):
    """Whether rankings are as sure as they should be, over questions that have a right answer."""

    top_probability_best: float  # what the top answers say of themselves, on average
    top_is_right: float  # the share of them that are right: about as large, if the model is honest
    rank_interval_coverage: float  # of candidates: how often the interval holds the rank under the true labels
    nominal_coverage: float  # how often it should, by what the intervals say themselves


def rank_calibration(
    scores: np.ndarray, best: np.ndarray, intervals: RankIntervals, labels: np.ndarray, question_of: np.ndarray
) -> RankCalibration:
    """All are of pairs, [P]: by what they are ranked, P(best) given an answer, intervals; `question_of` from 0."""
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
    """The ranks under the true labels, [P]: what an interval should hold. Equal candidates share the middle rank."""
    return rankdata(-(labels + 0.5 * merge_ties(probability)), "average")  # 0.5: no probability outweighs a label


def _best_in_order(p: np.ndarray) -> np.ndarray:
    """The formula above, for p that fall along the last axis; [S, P]."""
    p = np.minimum(np.where(p[..., :1] > 0, p, SMALLEST), 1 - SMALLEST)
    none_before = np.exp(np.cumsum(np.log1p(-p), -1))
    first = p * np.concatenate([np.ones_like(p[..., :1]), none_before[..., :-1]], -1)
    normalised: np.ndarray = first / first.sum(-1, keepdims=True)
    return normalised


def _shared(p: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Candidates with the same p have no order: each gets the mean of their parts."""
    _, group = np.unique(p, return_inverse=True)
    return (np.bincount(group, best) / np.bincount(group))[group]


def _ranks_of_one(p: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Under one h, [draws, P]. Equal candidates are shuffled at every draw."""
    jitter = generator.random((draws, len(p)))
    order = np.lexsort((jitter, np.broadcast_to(-p, jitter.shape)), axis=1)  # [draws, P]
    in_order = p[order]
    best = (generator.random((draws, 1)) > np.cumsum(_best_in_order(in_order), 1)[:, :-1]).sum(1, keepdims=True)
    place = np.arange(len(p))
    right = (place == best) | ((place > best) & (generator.random(in_order.shape) < in_order))
    return _ranks_in(order, right)


def _ranks_in(order: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of candidates in the given order of every draw, and whether each, in that order, is right, [draws, P]."""
    n_right = right.sum(1, keepdims=True)
    ranks_in_order = np.where(right, np.cumsum(right, 1), n_right + np.cumsum(~right, 1))
    ranks = np.empty_like(ranks_in_order)
    np.put_along_axis(ranks, order, ranks_in_order, 1)
    return ranks
