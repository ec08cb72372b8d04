"""Whether a question and its candidates look like those that a ranker was fitted on.

Each question is summarised by a few statistics x of its list of candidates. Over questions of the ranker's own kind,
on which no network was trained, 10 % of the values of x lie below `low` and 10 % above `high`, by `below` and `above`
on average. If these tails are exponential, then every statistic exceeds a large distance equally often:

    distance = max over x of (low - x) / below and (x - high) / above

A question is unfamiliar if its distance is above the threshold that 2 % of the ranker's own questions exceed, each
compared with the tails of the others (cross-fitted). The statistic with the largest distance is the reason given.
The number of candidates is not among them: lists of 50 from a search are as well calibrated as a ranker's own.

The posterior of an unfamiliar question is widened (`ranking.py`): with probability `WEIGHT` the ranker knows nothing,
and then no candidate is right with probability `NONE`, or any one of them is. `python -m lab abroad` measures both.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from varitext.answers.joint import question_weights
from varitext.corpora.question_answers import Question, QuestionAnswers
from varitext.evaluation.ranking import question_word
from varitext.models.answers.features.overlap import STOP_WORDS, Overlap, distinct_words

WEIGHT, NONE = 0.5, 0.5
FALSE_ALARMS = 0.02
TAIL = 0.1
MIN_QUESTIONS = 20  # fewer do not show what is usual
FOLDS = 5


class Statistic(NamedTuple):
    name: str
    least_tail: float  # used if the ranker's own questions vary less
    logarithm: bool = False  # the statistic is log(1 + x)


STATISTICS = (
    Statistic("words per candidate", 0.1, logarithm=True),
    Statistic("words in the question", 0.1, logarithm=True),
    Statistic("question words such as who or how", 0.1),
    Statistic("share of the candidates' words that training had", 0.03),
    Statistic("share of words that two candidates have in common", 0.03),
    Statistic("log odds of the best candidate", 0.3),
)


@dataclass(frozen=True)
class Familiarity:
    """The tails of every statistic, in the order of `STATISTICS`, and the threshold of the distance."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    below: tuple[float, ...]
    above: tuple[float, ...]
    threshold: float
    n_questions: int

    @classmethod
    def fit(cls, statistics: np.ndarray, weights: np.ndarray) -> "Familiarity | None":
        """Fit to `list_statistics`, [Q, F], and the weight of each question; None if there are too few questions."""
        number = len(statistics)
        if number < MIN_QUESTIONS:
            return None
        fold, distance = np.arange(number) % FOLDS, np.empty(number)
        for one in range(FOLDS):
            others = cls._of_tails(statistics[fold != one], weights[fold != one], np.inf)
            distance[fold == one] = others.distances(statistics[fold == one]).max(1)
        return cls._of_tails(statistics, weights, _quantile(distance, weights, 1 - FALSE_ALARMS))

    @classmethod
    def _of_tails(cls, statistics: np.ndarray, weights: np.ndarray, threshold: float) -> "Familiarity":
        low, high = (np.array([_quantile(x, weights, q) for x in statistics.T]) for q in (TAIL, 1 - TAIL))
        least = np.array([one.least_tail for one in STATISTICS])
        below = np.average(np.maximum(low - statistics, 0), 0, weights) / TAIL
        above = np.average(np.maximum(statistics - high, 0), 0, weights) / TAIL
        return cls(
            low=tuple(low.tolist()),
            high=tuple(high.tolist()),
            below=tuple(np.maximum(below, least).tolist()),
            above=tuple(np.maximum(above, least).tolist()),
            threshold=threshold,
            n_questions=len(statistics),
        )

    def distances(self, statistics: np.ndarray) -> np.ndarray:
        """The distance of every statistic of every question, [Q, F]."""
        low, high, below, above = map(np.array, (self.low, self.high, self.below, self.above))
        return np.asarray(np.maximum((low - statistics) / below, (statistics - high) / above).clip(min=0))

    def unfamiliar(self, statistics: np.ndarray) -> list[str | None]:
        """Why each question, of [Q, F], is unlike the ranker's own; None if it is not."""
        distances = self.distances(statistics)
        most = distances.argmax(1)
        return [
            self._reason(column, values[column]) if distance[column] > self.threshold else None
            for column, values, distance in zip(most.tolist(), statistics, distances, strict=True)
        ]

    def _reason(self, column: int, value: float) -> str:
        """The value, and the values between which 80 % of the ranker's own questions lie."""
        statistic, values = STATISTICS[column], (value, self.low[column], self.high[column])
        shown, low, high = (_readable(np.expm1(one) if statistic.logarithm else one) for one in values)
        return f"{statistic.name}: {shown}, usually {low}" + (f" to {high}" if high != low else "")


def _readable(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def fit_familiarity(
    question_answers: QuestionAnswers, overlap: Overlap, scores: np.ndarray, share: float | None = None
) -> Familiarity | None:
    """Fit to questions that the ranker was not trained on, in canonical order, and to its log odds, [P].

    `share` is the share of all questions without a right answer, if it is known from more questions than these.
    """
    answerable = np.array([question.has_right for question in question_answers.questions])
    statistics = list_statistics(question_answers, overlap, scores)
    return Familiarity.fit(statistics, question_weights(answerable, share))


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The smallest value that at least this `share` of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order[min(int(np.searchsorted(reached, share * (1 - 1e-12))), len(values) - 1)]])


# The statistics


def list_statistics(question_answers: QuestionAnswers, overlap: Overlap, scores: np.ndarray) -> np.ndarray:
    """The statistics of every question, [Q, F]; `overlap` is of the training answers, `scores`, [P], are log odds."""
    best = np.full(question_answers.n_questions, -np.inf)
    np.maximum.at(best, question_answers.groups, scores)
    rows = [tuple(_of_words(question, overlap)) for question in question_answers.questions]
    return np.column_stack([np.array(rows, np.float64), best])


def _of_words(question: Question, overlap: Overlap) -> Iterator[float]:
    """All but the last of `STATISTICS`."""
    candidates = [_content(one.words) for one in question.candidates]
    often = Counter(word for words in candidates for word in words)
    yield np.log1p([len(one.words) for one in question.candidates]).mean()
    yield np.log1p(len(question.words))
    yield float(question_word(question.text) != "other")
    known = [overlap.frequency(word) > 0 for word in often.elements()]
    yield sum(known) / len(known) if known and overlap.n_answers else 1.0
    pairs = len(candidates) * (len(candidates) - 1)
    yield sum(n * (n - 1) for n in often.values()) / max(1, pairs) / max(1.0, often.total() / len(candidates))


def _content(words: tuple[str, ...]) -> set[str]:
    return {word for word in distinct_words(words) if word not in STOP_WORDS}
