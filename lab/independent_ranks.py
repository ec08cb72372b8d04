"""The posterior over rankings if the labels of candidates are independent given h: a baseline for `answers/joint.py`.

A sample of the posterior is a draw of h and, given h, of the labels: y_i ~ Bernoulli(p_i(h)). The question
is which right answer is the best, so at least one is right. Given the labels, right answers come first; among right
and among wrong ones, the more probable come first. With candidates in the order of p, the best is i with probability

    p_i prod_{j < i} (1 - p_j)  /  (1 - prod_j (1 - p_j))

A candidate with p_i = 0 is never the best, unless all have p_i = 0; then all are equally probable.

Both draws contribute to the spread. If h carries no information, the spread comes from the labels alone and reflects
the uncertainty of the probabilities.
"""

import numpy as np

from varitext.evaluation.columns import merge_ties
from varitext.evaluation.posterior_ranks import RankIntervals, draws_for, intervals_of, ranks_in

SMALLEST = 1e-12


def best_probability(sampled: np.ndarray) -> np.ndarray:
    """Probability that each candidate is the best, [P], from p(y = 1 | h) of each sample, [S, P]. Ties share it."""
    sampled = merge_ties(sampled)
    order = np.argsort(-sampled, 1, kind="stable")
    best = np.empty_like(sampled)
    np.put_along_axis(best, order, _best_in_order(np.take_along_axis(sampled, order, 1)), 1)
    mean: np.ndarray = np.stack([_shared(*row) for row in zip(sampled, best, strict=True)]).mean(0)
    return mean


def rank_draws(sampled: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Ranks of all candidates under drawn labels, [draws, P]; 1 is the best."""
    sampled, per_sample = merge_ties(sampled), max(1, draws_for(sampled.shape[1]) // len(sampled))
    return np.concatenate([_ranks_of_one(one, per_sample, generator) for one in sampled])


def rank_intervals(sampled: np.ndarray, generator: np.random.Generator) -> RankIntervals:
    """From p(y = 1 | h) of each sample, [S, P]."""
    return intervals_of(rank_draws(sampled, generator))


def _best_in_order(p: np.ndarray) -> np.ndarray:
    """The formula above, for p that fall along the last axis; [S, P]."""
    p = np.minimum(np.where(p[..., :1] > 0, p, SMALLEST), 1 - SMALLEST)
    none_before = np.exp(np.cumsum(np.log1p(-p), -1))
    first = p * np.concatenate([np.ones_like(p[..., :1]), none_before[..., :-1]], -1)
    normalised: np.ndarray = first / first.sum(-1, keepdims=True)
    return normalised


def _shared(p: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Candidates with the same p have no order: each gets the mean of their probabilities."""
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
    return ranks_in(order, right)
