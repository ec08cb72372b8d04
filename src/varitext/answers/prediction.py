"""From the model's probability of each pair to the ranker's: calibration, and the second stage (paper: +Cnt)."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from varitext.answers.settings import AnswerSettings
from varitext.answers.windows import Window, Windows
from varitext.evaluation.columns import merge_ties
from varitext.layers.functions import expit, logit
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import COUNTS, PLACE, PairFeatures
from varitext.models.answers.scorer import Regression, Standardisation

SMALLEST = 1e-12  # probabilities are clipped here, so that log odds are finite
MIN_SCALE = 1e-3


class Prediction(NamedTuple):
    """One entry per pair, in the order of the corpus."""

    probability: np.ndarray  # [P] that the answer is right
    sampled: np.ndarray  # [S, P] the same for every sample of the prior
    attention: list[np.ndarray] | None = None  # P times [S, T]: the weight of each word of the answer in each sample
    read: list[Window | None] | None = None  # P times: the window that was read, None for the whole candidate
    copy_of: np.ndarray | None = None  # [P] the row that represents each candidate and its copies

    def with_ties(self, question_of: np.ndarray) -> "Prediction":
        """Make candidates of a question, [P], equal if they differ only by rounding."""
        return self._replace(
            probability=merge_ties(self.probability, question_of), sampled=merge_ties(self.sampled, question_of)
        )

    def with_zero(self, unknown: np.ndarray) -> "Prediction":
        """Give candidates that are `unknown`, [P], probability 0; of copies, only those that are unknown themselves."""
        probability, sampled = np.where(unknown, 0.0, self.probability), np.where(unknown, 0.0, self.sampled)
        copy_of = None if self.copy_of is None else np.where(unknown, np.arange(len(unknown)), self.copy_of)
        return self._replace(probability=probability, sampled=sampled, copy_of=copy_of)

    def rows(self, chosen: slice) -> "Prediction":
        attention = None if self.attention is None else self.attention[chosen]
        read = None if self.read is None else self.read[chosen]
        copy_of = None if self.copy_of is None else self.copy_of[chosen]
        return Prediction(self.probability[chosen], self.sampled[:, chosen], attention, read, copy_of)

    def best_of(self, windows: Windows) -> "Prediction":
        """The prediction of pairs from that of their windows: each pair gets that of its most probable window."""
        order = np.lexsort((-self.probability, windows.pair_of))  # stable: the first of equal windows
        best = order[np.unique(windows.pair_of[order], return_index=True)[1]]
        return self._replace(read=windows.read)._at(best)

    def with_copies(self, copy_of: np.ndarray) -> "Prediction":
        """The prediction of all pairs from that of the pairs that represent them, `copy_of` [P]."""
        return self._at(np.unique(copy_of, return_inverse=True)[1])._replace(copy_of=copy_of)

    def _at(self, rows: np.ndarray) -> "Prediction":
        attention = None if self.attention is None else [self.attention[row] for row in rows]
        read = None if self.read is None else [self.read[row] for row in rows]
        return Prediction(self.probability[rows], self.sampled[:, rows], attention, read)


def log_odds(probability: np.ndarray) -> np.ndarray:
    return logit(np.clip(probability, SMALLEST, 1 - SMALLEST))


# Calibration


@dataclass(frozen=True)
class Calibration:
    """Platt scaling (1999), fitted on dev questions: log odds = scale * the model's + shift.

    For networks that are trained to rank: their order is kept, their probabilities become calibrated.
    """

    scale: float
    shift: float

    @classmethod
    def fit(cls, probability: np.ndarray, labels: np.ndarray) -> "Calibration | None":
        """None if all labels are equal: nothing can be learned from them."""
        if labels.min() == labels.max():
            return None
        from sklearn.linear_model import LogisticRegression  # slow to import, and not needed to rank

        regression = LogisticRegression(C=1.0).fit(log_odds(probability)[:, None], labels)
        scale = max(float(regression.coef_[0, 0]), MIN_SCALE)  # never negative: calibration must not reverse the order
        return cls(scale, float(regression.intercept_[0]))

    def probability(self, probability: np.ndarray) -> np.ndarray:
        calibrated: np.ndarray = expit(self.log_odds(log_odds(probability)))
        return calibrated

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        return self.scale * scores + self.shift

    def then(self, other: "Calibration") -> "Calibration":
        """This calibration followed by the other."""
        return Calibration(other.scale * self.scale, other.scale * self.shift + other.shift)

    def join(self, prediction: Prediction) -> Prediction:
        """The prediction with the mean over samples, and every sample, calibrated."""
        sampled = self.probability(prediction.sampled)
        return prediction._replace(probability=self.probability(prediction.probability), sampled=sampled)


# The second stage


def joined_columns(settings: AnswerSettings) -> tuple[str, ...]:
    """The columns that the second stage adds to the model's probability; there is no second stage if empty."""
    if not model_class(settings.model).joins_columns:
        return ()
    return (COUNTS if settings.counts else ()) + (PLACE if settings.position else ())


@dataclass(frozen=True)
class Combination:
    """Logistic regression on the model's log odds and columns of `features/overlap.py`.

    A ranking compares the candidates of one question, so every column x enters twice, as the candidate's distance from
    the mean of its question's candidates and as that mean:

        log odds = b + sum_x  within_x (x - mean_q x) + between_x mean_q x

    The first part alone decides the ranking; the second separates questions with a likely answer from the others.
    """

    columns: tuple[str, ...]  # the first is log_odds
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    within: tuple[float, ...]
    between: tuple[float, ...]
    intercept: float

    def __post_init__(self) -> None:
        numbers = np.array([self.mean, self.scale, self.within, self.between], np.float64)
        if numbers.shape != (4, len(self.columns)) or not np.isfinite([*numbers.flat, self.intercept]).all():
            raise ValueError("the combination needs a finite mean, scale and two weights for every column")

    @classmethod
    def fit(cls, probabilities: np.ndarray, features: PairFeatures, labels: np.ndarray) -> "Combination":
        """`probabilities` must be out-of-fold: those of training pairs would be trusted far too much."""
        values = _with_log_odds(probabilities, features)
        standardise = Standardisation.learn(values, ~np.isnan(values), rounding=1e-12)
        regression = Regression.fit(_within_and_between(standardise(values), features.question_of), labels)
        within, between = np.split(regression.coefficients, 2)
        return cls(
            ("log_odds", *features.columns),
            mean=tuple(standardise.mean.tolist()),
            scale=tuple(standardise.scale.tolist()),
            within=tuple(within.tolist()),
            between=tuple(between.tolist()),
            intercept=regression.intercept,
        )

    def probability(self, probabilities: np.ndarray, features: PairFeatures) -> np.ndarray:
        """The combined probability of each pair, given all candidates of its question."""
        values = _with_log_odds(probabilities, features.only(self.columns[1:]))
        standardised = Standardisation(np.array(self.mean), np.array(self.scale))(values)
        regression = Regression(np.concatenate([self.within, self.between]), self.intercept)
        return expit(regression.log_odds(_within_and_between(standardised, features.question_of)))

    def then(self, calibration: Calibration) -> "Combination":
        """This combination with its log odds calibrated."""
        within, between = (tuple(calibration.scale * one for one in weights) for weights in (self.within, self.between))
        intercept = calibration.scale * self.intercept + calibration.shift
        return replace(self, within=within, between=between, intercept=intercept)

    def join(self, prediction: Prediction, features: PairFeatures) -> Prediction:
        """The prediction with the mean over samples, and every sample, combined with the features."""
        sampled = np.stack([self.probability(one, features) for one in prediction.sampled])
        return prediction._replace(probability=self.probability(prediction.probability, features), sampled=sampled)


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Training pairs as the second stage sees them: predicted by models that never saw their questions."""

    probability: np.ndarray  # [P]
    features: PairFeatures
    labels: np.ndarray  # [P]
    seconds: float  # of training those models

    def combination(self, columns: tuple[str, ...]) -> Combination:
        return Combination.fit(self.probability, self.features.only(columns), self.labels)


def _with_log_odds(probabilities: np.ndarray, features: PairFeatures) -> np.ndarray:
    return np.column_stack([log_odds(probabilities), features.values])


def _within_and_between(values: np.ndarray, question_of: np.ndarray) -> np.ndarray:
    """Each candidate's distance from its question's mean, and that mean, [pairs, 2 columns].

    An unknown value takes the mean of its question, or the mean of all (0) if none is known.
    """
    known = ~np.isnan(values)
    sums = [np.bincount(question_of, column) for column in np.where(known, values, 0.0).T]
    counts = [np.bincount(question_of, column) for column in known.T]
    means = (np.stack(sums, 1) / np.maximum(np.stack(counts, 1), 1))[question_of]  # [pairs, columns]
    return np.column_stack([np.where(known, values - means, 0.0), means])
