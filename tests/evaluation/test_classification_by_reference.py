"""Classification against scikit-learn step by step: folds, penalty, scores."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from varitext.errors import InputError
from varitext.evaluation import vectors as classification
from varitext.evaluation.significance import bootstrap_interval
from varitext.evaluation.vectors import PENALTIES, classification_record


def documents(n, seed, labels=3, noise=1.5):
    """Vectors whose dimensions differ in scale and place, so that it matters that they are standardised."""
    generator = np.random.default_rng(seed)
    kinds = np.arange(n) % labels
    vectors = np.eye(labels, 4)[kinds] + noise * generator.normal(size=(n, 4))
    return vectors * [1, 30, 0.1, 5] + [0, 100, 0, -7], np.array([f"kind {kind}" for kind in kinds])


def said_by(train, labels, test, penalty):
    scaler = StandardScaler().fit(train)
    model = LogisticRegression(C=penalty, max_iter=5000).fit(scaler.transform(train), labels)
    return model.predict(scaler.transform(test))


def accuracy_of_folds(train, labels, penalty, seed):
    parts = StratifiedKFold(3, shuffle=True, random_state=seed).split(train, labels)
    return np.mean([np.mean(said_by(train[a], labels[a], train[b], penalty) == labels[b]) for a, b in parts])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_penalty_is_chosen_by_folds_that_the_seed_shuffles(seed):
    train, labels = documents(60, 0)
    test, truth = documents(45, 1)
    found = classification_record(train, labels, test, truth, seed=seed)
    by_penalty = [accuracy_of_folds(train, labels, penalty, seed) for penalty in PENALTIES]
    assert found.cross_validated_accuracy == pytest.approx(max(by_penalty))
    assert found.penalty == PENALTIES[int(np.argmax(by_penalty))]
    said = said_by(train, labels, test, found.penalty)
    assert found.accuracy == pytest.approx(np.mean(said == truth))
    assert found.macro_f1 == pytest.approx(f1_score(truth, said, average="macro"))
    assert found.majority_accuracy == pytest.approx(1 / 3)


def test_a_label_that_is_said_but_never_true_counts_in_no_mean():
    train, labels = documents(60, 0, noise=0.2)
    test, truth = documents(30, 1, noise=0.2)
    truth = np.where(truth == "kind 2", "kind 1", truth)  # what is said of these is wrong, and kind 2 is never true
    found = classification_record(train, labels, test, truth)
    # of kind 0 all are found; of kind 1 ten of twenty are, and nothing else is said to be
    assert found.accuracy == pytest.approx(2 / 3) and found.macro_f1 == pytest.approx((1 + 2 / 3) / 2)


def test_a_label_that_is_never_said_counts_as_zero():
    train, labels = documents(60, 0, noise=0.2)
    test, truth = documents(30, 1, noise=0.2)
    truth = np.where(truth == "kind 2", "unheard", truth)
    assert classification_record(train, labels, test, truth).macro_f1 == pytest.approx(2 / 3)


def test_rare_labels_are_learned_but_take_no_part_in_the_folds():
    train, labels = documents(60, 0, noise=0.3)
    rare = np.array([[50.0, 100.0, 0.0, -7.0], [51.0, 100.0, 0.0, -7.0]])
    found = classification_record(
        np.vstack([train, rare]), [*labels, "rare", "rare"], np.vstack([train, rare]), [*labels, "rare", "rare"]
    )
    assert found.n_labels == 4 and found.n_train == 62
    by_penalty = [accuracy_of_folds(train, labels, penalty, 0) for penalty in PENALTIES]
    assert found.cross_validated_accuracy == pytest.approx(max(by_penalty))


def test_a_fit_that_has_not_converged_says_so(monkeypatch):
    train, labels = documents(60, 0)
    monkeypatch.setattr(classification, "MAX_ITERATIONS", 1)
    with pytest.warns(ConvergenceWarning):
        classification_record(train, labels, train, labels)


def test_the_interval_has_the_seed():
    train, labels = documents(60, 0)
    test, truth = documents(45, 1)
    found = [classification_record(train, labels, test, truth, seed=seed) for seed in (0, 4)]
    for one in found:
        right = said_by(train, labels, test, one.penalty) == truth
        assert one.accuracy_interval_95 == pytest.approx(bootstrap_interval(right, seed=one.seed).bounds)
    right = said_by(train, labels, test, found[1].penalty) == truth
    assert any(
        bootstrap_interval(right, seed=4).bounds != bootstrap_interval(right, seed=seed).bounds for seed in (0, 1)
    )


def test_what_cannot_be_classified_is_named():
    vectors, labels = documents(30, 0)
    with pytest.raises(InputError, match="the training documents have no labels"):
        classification_record(vectors, None, vectors, labels)
    with pytest.raises(InputError, match="30 test documents have 1 labels"):
        classification_record(vectors, labels, vectors, ["x"])
    with pytest.raises(InputError, match="1 of 30 training vectors are not finite, the first in row 0"):
        classification_record(np.where(np.arange(30)[:, None] == 0, np.nan, vectors), labels, vectors, labels)
    with pytest.raises(InputError, match="test vectors are one row per document"):
        classification_record(vectors, labels, vectors[0], labels)
