"""The max-margin classifier with latent alignments of LCLR (Chang and others 2010, Yih and others 2013).

Each word of a question goes to one of the candidate's words, or to none. Which, is hidden: it is what scores best,

    score(q, a) = max_h theta^T Phi(q, a, h) = bias + sum_words max(0, max_choices theta^T phi(word, choice))

as the words choose independently. Learning minimises 1/2 |theta|^2 + C sum_i max(0, 1 - y_i score_i)^2. For wrong pairs
the loss is convex in theta. For right ones it is not: so in turns their alignments are fixed as the best under theta,
which bounds the loss from above, and the convex rest is minimised. No turn makes the loss larger.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

STEPS = 30  # of each turn: the next one moves the bound anyway


class AlignmentChoices(NamedTuple):
    """The words of all questions, each with what it may be aligned to; a choice of zeros is none."""

    features: np.ndarray  # [words, choices, F]
    pair_of: np.ndarray  # [words] rising: which pair each word belongs to
    n_pairs: int

    def per_pair(self, values: np.ndarray) -> np.ndarray:
        """Sums over the words of each pair: [words] gives [P]."""
        return np.bincount(self.pair_of, values, self.n_pairs)


def scores(choices: AlignmentChoices, theta: np.ndarray) -> np.ndarray:
    """max_h theta^T Phi of every pair; the last number of theta is the bias."""
    found: np.ndarray = choices.per_pair(np.maximum(_values(choices, theta), 0).max(1)) + theta[-1]
    return found  # [P]


def _values(choices: AlignmentChoices, theta: np.ndarray) -> np.ndarray:
    found: np.ndarray = choices.features @ theta[:-1].astype(choices.features.dtype)
    return found  # [words, choices]


def best_choices(choices: AlignmentChoices, theta: np.ndarray) -> np.ndarray:
    """phi of the best choice of every word, zero where that is none, [words, F]."""
    found = _values(choices, theta)
    best = found.argmax(1)
    rows = np.arange(len(best))
    described: np.ndarray = choices.features[rows, best] * (found[rows, best] > 0)[:, None]
    return described


def loss_and_gradient(
    theta: np.ndarray, choices: AlignmentChoices, fixed: np.ndarray | None, labels: np.ndarray, cost: float
) -> tuple[float, np.ndarray]:
    """The loss where words of right pairs are aligned as in `fixed`, [words, F], those of wrong pairs at their best.

    Without `fixed` all are at their best: the loss itself.
    """
    best = best_choices(choices, theta)
    if fixed is not None:
        best = np.where(labels[choices.pair_of, None] == 1, fixed, best)
    sign = np.where(labels == 1, 1.0, -1.0)
    found = choices.per_pair(best @ theta[:-1]) + theta[-1]  # [P]
    missing = np.maximum(0, 1 - sign * found)
    slope = -2 * cost * missing * sign  # [P]
    gradient = np.append(slope[choices.pair_of] @ best, slope.sum()) + np.append(theta[:-1], 0)
    return float(0.5 * theta[:-1] @ theta[:-1] + cost * (missing**2).sum()), gradient


def learn(choices: AlignmentChoices, labels: np.ndarray, start: np.ndarray, cost: float, turns: int) -> np.ndarray:
    """theta after `turns` turns, or when the loss no longer falls."""
    theta, before = start, np.inf
    for _ in range(turns):
        fixed = best_choices(choices, theta)
        solved = minimize(
            loss_and_gradient, theta, (choices, fixed, labels, cost), "L-BFGS-B", jac=True, options={"maxiter": STEPS}
        )
        now = loss_and_gradient(solved.x, choices, None, labels, cost)[0]
        if now >= before - 1e-4 * abs(before):
            break
        theta, before = solved.x, now
    return theta
