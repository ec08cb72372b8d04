"""What held-out questions guarantee: the precision of answers under abstention, and the coverage of answer sets.

Abstention. A question is answered if P(right) of its top candidate reaches a threshold. The point estimate is the
lowest threshold at which the answered held-out questions, at least 20, have the stated precision: among fewer, some
threshold would reach it by chance. With a confidence, thresholds of a fixed grid are tested from strict to lenient:
Binomial(n answered, precision) must reach the number of right ones with probability at most 1 - confidence, and the
first failure ends the sequence (learn then test, Angelopoulos and others 2021). It starts where twice as many questions
are answered as would pass if all were right.

Answer sets. The candidates of a question come in falling order, and one is in the set if

    P(a candidate above it is the best | some candidate is right) <= limit

where limit is the ceil((n + 1) coverage)-th smallest of this value at the highest right answer of n held-out questions
that have one (split conformal prediction). `none` is in the set unless P(none) is lower than for the same share of the
held-out questions without an answer. So both coverages hold: of questions with an answer and of those without.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError

MIN_ANSWERED = 20
GRID = np.arange(99, 0, -1) / 100  # of P(right), from strict to lenient


@dataclass(frozen=True)
class HeldOutQuestions:
    """What is kept of questions that the probabilities were not fitted on."""

    top: tuple[float, ...]  # P(right) of each question's top candidate
    top_right: tuple[float, ...]  # 1 if it is right; the share of right ones among tied candidates
    above: tuple[float, ...]  # of questions with an answer: `mass_above` of the highest right one
    none: tuple[float, ...]  # P(none) of questions without an answer

    def abstention_threshold(self, precision: float, confidence: float | None = None) -> float | None:
        """The P(right) at or above which answers have this precision; None if no threshold reaches it."""
        _check_share("precision", precision)
        top, right = np.array(self.top), np.array(self.top_right)
        if confidence is None:
            return abstention_threshold(top, right, precision, least=MIN_ANSWERED)
        _check_share("confidence", confidence)
        return tested_threshold(top, right, precision, confidence)

    def set_limit(self, coverage: float) -> float:
        """The highest `mass_above` of a candidate in the answer set; infinite if the questions are too few."""
        return conformal_quantile(np.array(self.above), coverage)

    def none_limit(self, coverage: float) -> float:
        """The lowest P(none) with which "none" is in the answer set."""
        return -conformal_quantile(-np.array(self.none), coverage)


def conformal_quantile(values: np.ndarray, coverage: float) -> float:
    """The value that one more exchangeable value does not exceed with probability `coverage` or more."""
    _check_share("coverage", coverage)
    place = math.ceil((len(values) + 1) * coverage - 1e-9)
    return float(np.sort(values)[place - 1]) if place <= len(values) else math.inf


def mass_above(best: np.ndarray, none: np.ndarray, scores: np.ndarray, question_of: np.ndarray) -> np.ndarray:
    """P(the best is a candidate with a higher score | some candidate is right), of every candidate, [P].

    `best` is P(best), [P], `none` P(none) of each question, [Q]; `question_of` numbers the questions from 0.
    """
    order = np.lexsort((-scores, question_of))
    question, falling = question_of[order], scores[order]
    before = np.append(0.0, np.cumsum(best[order])[:-1])
    new_question = np.append(True, np.diff(question) != 0)
    new = new_question | np.append(True, np.diff(falling) != 0)  # tied candidates share the place of the first
    start = before[new_question][np.cumsum(new_question) - 1]
    within = before[new][np.cumsum(new) - 1] - start
    found = np.empty_like(within)
    found[order] = within / np.maximum(1 - none[question], np.finfo(float).tiny)
    return np.asarray(np.clip(found, 0.0, 1.0))


def abstention_threshold(
    top: ArrayLike, right: ArrayLike, precision: float, weights: np.ndarray | None = None, least: int = 1
) -> float | None:
    """The lowest of `top` such that a share `precision` of those at or above it, `least` or more, are right.

    None if there is none.
    """
    order = np.argsort(-np.asarray(top), kind="stable")
    probability, is_right = np.asarray(top)[order], np.asarray(right, float)[order]
    weight = np.ones(len(order)) if weights is None else weights[order]
    reached = np.cumsum(is_right * weight) / np.cumsum(weight) >= precision
    last = np.append(probability[1:] < probability[:-1], True)  # equal ones are answered together or not at all
    found = np.flatnonzero(reached & last & (np.arange(1, len(order) + 1) >= least))
    return float(probability[found[-1]]) if len(found) else None


def tested_threshold(top: np.ndarray, right: np.ndarray, precision: float, confidence: float) -> float | None:
    """The lowest threshold of the grid that passes, with every stricter one; None if not even the first does."""
    from scipy.stats import binom  # slow to import, and not needed to rank

    found, fewest = None, 2 * math.log(1 - confidence) / math.log(precision)
    for threshold in GRID.tolist():
        answered = top >= threshold
        if answered.sum() < fewest:
            continue
        n_right = math.floor(right[answered].sum())
        if binom.sf(n_right - 1, answered.sum(), precision) > 1 - confidence:
            break
        found = threshold
    return found


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(f"{name} must be between 0 and 1, not {value}")
