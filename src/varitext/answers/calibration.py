"""Log odds that mean what they say: a scale and a shift, fitted on dev questions (Platt 1999).

A network that is trained to rank has the right order of candidates and no reason to have the right probabilities. The
order stays as it is.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from varitext.answers.prediction import Prediction

SMALLEST = 1e-12  # a probability nearer to 0 or 1 has no finite log odds worth the name
MIN_SCALE = 1e-3


@dataclass(frozen=True)
class Calibration:
    """log odds = scale * the model's + shift."""

    scale: float
    shift: float

    @classmethod
    def fit(cls, probability: np.ndarray, labels: np.ndarray) -> "Calibration | None":
        """None if the labels are all alike: nothing can be learned from them."""
        if labels.min() == labels.max():
            return None
        regression = LogisticRegression(C=1.0).fit(log_odds(probability)[:, None], labels)
        scale = max(float(regression.coef_[0, 0]), MIN_SCALE)  # a useless model stays one: no order is reversed
        return cls(scale, float(regression.intercept_[0]))

    def probability(self, probability: np.ndarray) -> np.ndarray:
        calibrated: np.ndarray = expit(self.scale * log_odds(probability) + self.shift)
        return calibrated

    def join(self, prediction: Prediction) -> Prediction:
        """The same for the mean of samples, and for every one of them."""
        sampled = self.probability(prediction.sampled)
        return prediction._replace(probability=self.probability(prediction.probability), sampled=sampled)


def log_odds(probability: np.ndarray) -> np.ndarray:
    found: np.ndarray = logit(np.clip(probability, SMALLEST, 1 - SMALLEST))
    return found
