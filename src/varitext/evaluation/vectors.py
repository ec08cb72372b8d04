"""What document vectors are good for: classification of labels, and retrieval of documents with the same label.

Classification: logistic regression on the vectors. They are standardised and the penalty is chosen by cross-validation,
both on training documents only. Accuracy is the share of right labels; macro F1 is the mean F1 of the labels in the
test documents, so that rare ones weigh as much as frequent ones.

Retrieval, as in replicated softmax and docNADE: every test document is a query; the training documents are ranked by
cosine; those with the query's label are relevant.

    precision at a fraction f   relevant among the first ceil(f D), over ceil(f D)
    precision at a recall r     m / (how many are retrieved when the m-th relevant one is), m = ceil(r R), R relevant

Both are means over queries. Tied training documents count as evenly mixed: of n tied, r of them relevant, each counts
as r/n of a relevant one. So the order of the files does not matter, and identical vectors get exactly the share of
relevant documents. Cosines are tied if equal to 2e-9.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError
from varitext.evaluation.significance import bootstrap_interval
from varitext.records import DictRecord


def checked_vectors(vectors: ArrayLike, name: str) -> np.ndarray:
    """The vectors, checked to be two-dimensional and finite, with at least one row."""
    try:
        vectors = np.asarray(vectors, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not numbers ({error})") from None
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(f"{name} are one row per document, not of shape {list(vectors.shape)}")
    if not np.isfinite(vectors).all():
        wrong = np.flatnonzero(~np.isfinite(vectors).all(1))
        raise InputError(f"{len(wrong)} of {len(vectors)} {name} are not finite, the first in row {wrong[0]}")
    return vectors


def _checked_parts(train_vectors: ArrayLike, test_vectors: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    train, test = checked_vectors(train_vectors, "training vectors"), checked_vectors(test_vectors, "test vectors")
    if train.shape[1] != test.shape[1]:
        raise InputError(f"training vectors have {train.shape[1]} dimensions, test vectors {test.shape[1]}")
    return train, test


def checked_labels(labels: Sequence[str | int] | None, vectors: np.ndarray, name: str) -> np.ndarray:
    """One label per row, as text, so that both parts of a corpus compare in the same way."""
    if labels is None:
        raise InputError(f"the {name} have no labels: this measure compares them")
    texts = np.array([str(label) for label in labels])
    if len(texts) != len(vectors):
        raise InputError(f"{len(vectors)} {name} have {len(texts)} labels")
    return texts


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Each row at length 1, so that products are cosines; a row of zeros stays, with cosine 0 to all others."""
    largest = np.abs(vectors).max(1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)  # so that no square overflows or vanishes
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1)


# Classification


PENALTIES = (0.001, 0.01, 0.1, 1.0)  # C of scikit-learn: larger means weaker regularisation
FOLDS = 3
MAX_ITERATIONS = 2000


@dataclass(frozen=True)
class ClassificationRecord(DictRecord):
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


def classification_record(
    train_vectors: ArrayLike,
    train_labels: Sequence[str | int] | None,
    test_vectors: ArrayLike,
    test_labels: Sequence[str | int] | None,
    seed: int = 0,
) -> ClassificationRecord:
    """Classify documents by their vectors with logistic regression.

    Parameters
    ----------
    train_vectors, test_vectors : arrays [D, K]
    train_labels, test_labels : sequences of str or int
        One label per row.
    seed : int, default 0
        Seed of the cross-validation folds and the bootstrap interval.

    Returns
    -------
    ClassificationRecord
    """
    from sklearn.metrics import f1_score

    train, test = _checked_parts(train_vectors, test_vectors)
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


# Retrieval


FRACTIONS = (0.0002, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
RECALLS = (0.001, 0.004, 0.016, 0.064, 0.256, 1.0)
HEADLINE = 0.02  # the fraction at which docNADE's successors report one figure
LEVELS = 2**29  # of similarity from 0 to 1: with the sign and one bit for relevance they fill 32 bits
MAX_BLOCK = 2**22  # similarities held at once


@dataclass(frozen=True)
class RetrievalRecord(DictRecord):
    """Precision of retrieval, at fractions and at recalls, beside that of a random order."""

    fractions: tuple[float, ...]
    precision_at_fraction: tuple[float, ...]
    recalls: tuple[float, ...]
    precision_at_recall: tuple[float, ...]
    precision_at_2_percent: float
    precision_at_2_percent_interval_95: tuple[float, float]
    by_chance: float
    n_queries: int
    n_queries_left_out: int  # no training document has their label
    n_documents: int
    n_labels: int
    protocol: str = "test documents query training documents; cosine; relevant: same label; mean over queries"
    ties: str = "evenly mixed"


def retrieval_record(
    train_vectors: ArrayLike,
    train_labels: Sequence[str | int] | None,
    test_vectors: ArrayLike,
    test_labels: Sequence[str | int] | None,
    fractions: Sequence[float] = FRACTIONS,
    recalls: Sequence[float] = RECALLS,
    seed: int = 0,
) -> RetrievalRecord:
    """Measure how precisely test documents retrieve training documents with the same label.

    Parameters
    ----------
    train_vectors, test_vectors : arrays [D, K]
    train_labels, test_labels : sequences of str or int
        One label per row.
    fractions, recalls : sequences of float
        Fractions of the training documents, and recalls, at which precision is measured.
    seed : int, default 0
        Seed of the bootstrap interval.

    Returns
    -------
    RetrievalRecord
    """
    train, test = _checked_parts(train_vectors, test_vectors)
    for name, shares in (("fractions", fractions), ("recalls", recalls)):
        if not len(shares) or not all(0 < share <= 1 for share in shares):
            raise InputError(f"{name} lie above 0 and at most at 1: {list(shares)}")
    names, labels = np.unique(checked_labels(train_labels, train, "training documents"), return_inverse=True)
    label_shares = np.bincount(labels) / len(labels)
    asked = checked_labels(test_labels, test, "test documents")
    answerable = np.isin(asked, names)
    if not answerable.any():
        raise InputError("no test document has a label of the training documents")
    asked = np.searchsorted(names, asked[answerable])
    ranks = np.ceil(np.array([HEADLINE, *fractions]) * len(train) - 1e-9).astype(int)
    curves = [
        (ranking.relevant_within(ranks) / ranks, ranking.precision_at_recall(np.array(recalls)))
        for ranking in _rankings(unit_rows(train), labels, unit_rows(test[answerable]), asked)
    ]
    at_fraction, at_recall = (np.array(curve) for curve in zip(*curves, strict=True))  # [Q, fractions], [Q, recalls]
    interval = bootstrap_interval(at_fraction[:, 0], seed=seed)
    return RetrievalRecord(
        fractions=tuple(fractions),
        precision_at_fraction=tuple(at_fraction[:, 1:].mean(0).tolist()),
        recalls=tuple(recalls),
        precision_at_recall=tuple(at_recall.mean(0).tolist()),
        precision_at_2_percent=interval.mean,
        precision_at_2_percent_interval_95=interval.bounds,
        by_chance=float(label_shares[asked].mean()),
        n_queries=int(answerable.sum()),
        n_queries_left_out=int((~answerable).sum()),
        n_documents=len(train),
        n_labels=len(names),
    )


class Ranking(NamedTuple):
    """One query's ranking: after each group of tied documents, how many were retrieved, and how many were relevant.

    Both start at 0, before the first group.
    """

    retrieved: np.ndarray
    relevant: np.ndarray

    @classmethod
    def from_keys(cls, keys: np.ndarray) -> "Ranking":
        """From sorted keys, twice the level of dissimilarity plus one if relevant."""
        ends = np.append(np.flatnonzero(np.diff(keys >> 1)), len(keys) - 1) + 1
        relevant = np.cumsum(keys & 1)[ends - 1]
        return cls(np.append(0, ends), np.append(0, relevant))

    def relevant_within(self, ranks: np.ndarray) -> np.ndarray:
        relevant: np.ndarray = np.interp(ranks, self.retrieved, self.relevant)
        return relevant

    def precision_at_recall(self, recalls: np.ndarray) -> np.ndarray:
        wanted = np.maximum(np.ceil(recalls * self.relevant[-1] - 1e-9), 1)
        group = np.searchsorted(self.relevant, wanted)  # the first after which there are enough
        share = (wanted - self.relevant[group - 1]) / (self.relevant[group] - self.relevant[group - 1])
        needed = self.retrieved[group - 1] + share * (self.retrieved[group] - self.retrieved[group - 1])
        precision: np.ndarray = wanted / needed
        return precision


def _rankings(
    train: np.ndarray, train_labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray
) -> Iterator[Ranking]:
    """The ranking of every query, from one sort of 32-bit integers each."""
    size = max(1, MAX_BLOCK // len(train))
    for start in range(0, len(test), size):
        similarity = test[start : start + size] @ train.T  # [Q, D]
        relevant = test_labels[start : start + size, None] == train_labels
        keys = 2 * np.rint(-LEVELS * similarity).astype(np.int32) + relevant.astype(np.int32)
        yield from map(Ranking.from_keys, np.sort(keys, axis=1))
