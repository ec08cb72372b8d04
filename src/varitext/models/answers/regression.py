"""Logistic regression on standardised columns, some of whose values may be unknown."""

from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression


class Standardisation(NamedTuple):
    """Mean and scale of each column, over what is known of it."""

    mean: np.ndarray  # [F]
    scale: np.ndarray  # [F]

    @classmethod
    def learn(cls, values: np.ndarray, known: np.ndarray, rounding: float = 0.0) -> "Standardisation":
        """A column that does not vary, but for `rounding` relative to its mean, keeps a scale of one."""
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, values, 0).sum(0) / count
        scale = np.sqrt((np.where(known, values - mean, 0) ** 2).sum(0) / count)
        return cls(mean, np.where(scale > rounding * np.abs(mean), scale, 1))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        standardised: np.ndarray = (values - self.mean) / self.scale
        return standardised  # [P, F]   NaN where a value is unknown


class Regression(NamedTuple):
    coefficients: np.ndarray  # [F]
    intercept: float

    @classmethod
    def fit(cls, columns: np.ndarray, labels: np.ndarray) -> "Regression":
        """With the L2 penalty of columns that are standardised; every value known."""
        fitted = LogisticRegression(C=1.0, max_iter=1000).fit(columns, labels)
        return cls(fitted.coef_[0], float(fitted.intercept_[0]))

    def log_odds(self, columns: np.ndarray) -> np.ndarray:
        log_odds: np.ndarray = columns @ self.coefficients + self.intercept
        return log_odds  # [P]
