"""How a model's probability and columns of `overlap.py` become one probability: logistic regression (paper: +Cnt).

A ranking compares the candidates of one question, so every column x enters twice, as the candidate's distance from the
mean of its question's candidates and as that mean:

    log odds = b + sum_x  within_x (x - mean_q x) + between_x mean_q x

The first part alone decides the ranking; the second tells questions with a likely answer from those without. With one
weight for both, differences between questions would blur what tells candidates of one question apart.

Whoever fits it gives it probabilities of pairs that the model was not trained on.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from varitext.answers.prediction import Prediction
from varitext.models.answers.features.overlap import PairFeatures
from varitext.models.answers.regression import Regression, Standardisation

SMALLEST = 1e-12  # a probability nearer to 0 or 1 has no finite log odds worth the name


@dataclass(frozen=True)
class Combination:
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

    def join(self, prediction: Prediction, features: PairFeatures) -> Prediction:
        """The same for the mean of samples, and for every one of them."""
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


def cross_fitted(probabilities: np.ndarray, features: PairFeatures, labels: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """The combined probability of each pair by a combination that was fitted without the pair's fold."""
    combined = np.empty(len(labels))
    for number in np.unique(fold):
        inside = fold == number
        fitted = Combination.fit(probabilities[~inside], features.of_pairs(~inside), labels[~inside])
        combined[inside] = fitted.probability(probabilities[inside], features.of_pairs(inside))
    return combined


def _with_log_odds(probabilities: np.ndarray, features: PairFeatures) -> np.ndarray:
    return np.column_stack([logit(np.clip(probabilities, SMALLEST, 1 - SMALLEST)), features.values])


def _within_and_between(values: np.ndarray, question_of: np.ndarray) -> np.ndarray:
    """Each candidate's distance from its question's mean, and that mean, [pairs, 2 columns].

    What is unknown says nothing: it stands at the mean of its question, and that at the mean of all (0) if none is
    known.
    """
    known = ~np.isnan(values)
    sums = [np.bincount(question_of, column) for column in np.where(known, values, 0.0).T]
    counts = [np.bincount(question_of, column) for column in known.T]
    means = (np.stack(sums, 1) / np.maximum(np.stack(counts, 1), 1))[question_of]  # [pairs, columns]
    return np.column_stack([np.where(known, values - means, 0.0), means])
