"""Do the vectors tell what a document is about? Logistic regression on them, scored on test documents.

The vectors are standardised and the penalty is chosen by cross-validation, both on training documents only; test
documents are only scored. Accuracy is the share of right labels; macro F1 is the mean F1 of the labels in the test
documents, so that rare ones weigh as much as frequent ones.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError
from varitext.evaluation.significance import bootstrap_interval
from varitext.evaluation.vectors import checked_labels, checked_vectors

PENALTIES = (0.001, 0.01, 0.1, 1.0)  # C of scikit-learn: larger is freer
FOLDS = 3
MAX_ITERATIONS = 2000


@dataclass(frozen=True)
class ClassificationRecord:
    """How well a linear classifier does on the vectors, beside always guessing the most frequent training label."""

    accuracy: float
    accuracy_interval_95: tuple[float, float]
    macro_f1: float
    majority_accuracy: float
    penalty: float  # C, chosen by accuracy on held-out training documents
    cross_validated_accuracy: float  # at that penalty, training documents
    n_train: int
    n_test: int
    n_labels: int
    seed: int
    protocol: str = "standardised vectors, logistic regression, C by 3-fold cross-validation on training documents"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def classification_record(
    train_vectors: ArrayLike,
    train_labels: Sequence[str | int] | None,
    test_vectors: ArrayLike,
    test_labels: Sequence[str | int] | None,
    seed: int = 0,
) -> ClassificationRecord:
    """Learn labels from training vectors, score them on test vectors; the seed cuts the folds."""
    from sklearn.metrics import f1_score

    train, test = checked_vectors(train_vectors, "training vectors"), checked_vectors(test_vectors, "test vectors")
    if train.shape[1] != test.shape[1]:
        raise InputError(f"training vectors have {train.shape[1]} dimensions, test vectors {test.shape[1]}")
    labels = checked_labels(train_labels, train, "training documents")
    truth = checked_labels(test_labels, test, "test documents")
    pipeline, search = _classifier(), _choose_penalty(train, labels, seed)
    said = pipeline.set_params(**search.best_params_).fit(train, labels).predict(test)
    right = (said == truth).astype(float)
    names, frequencies = np.unique(labels, return_counts=True)
    return ClassificationRecord(
        accuracy=float(right.mean()),
        accuracy_interval_95=bootstrap_interval(right, seed=seed).bounds,
        macro_f1=float(f1_score(truth, said, labels=np.unique(truth), average="macro", zero_division=0)),
        majority_accuracy=float(np.mean(truth == names[frequencies.argmax()])),
        penalty=float(search.best_params_["logisticregression__C"]),
        cross_validated_accuracy=float(search.best_score_),
        n_train=len(train),
        n_test=len(test),
        n_labels=len(names),
        seed=seed,
    )


def _classifier() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITERATIONS))


def _choose_penalty(train: np.ndarray, labels: np.ndarray, seed: int) -> Any:
    """Cross-validation; labels with fewer documents than folds take no part in it."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    names, frequencies = np.unique(labels, return_counts=True)
    frequent = names[frequencies >= FOLDS]
    if len(frequent) < 2:
        raise InputError(
            f"classification needs two labels with {FOLDS} training documents each; "
            f"of {len(names)} labels {len(frequent)} have so many"
        )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    chosen = np.isin(labels, frequent)
    search = GridSearchCV(_classifier(), {"logisticregression__C": list(PENALTIES)}, cv=folds, refit=False)
    return search.fit(train[chosen], labels[chosen])
