"""Classification against scikit-learn step by step, retrieval against a plain loop, and what vectors must be."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from varitext import InputError
from varitext.evaluation import retrieval_record
from varitext.evaluation import vectors as classification
from varitext.evaluation import vectors as retrieval
from varitext.evaluation.significance import bootstrap_interval
from varitext.evaluation.vectors import PENALTIES, checked_labels, checked_vectors, classification_record, unit_rows


def random_documents(seed: int, train: int = 60, test: int = 9, labels: int = 4):
    generator = np.random.default_rng(seed)
    train_labels = np.append(np.arange(labels), generator.integers(labels, size=train - labels))
    test_labels = generator.integers(labels, size=test)
    centres = generator.standard_normal((labels, 5))
    vectors = [centres[chosen] + generator.standard_normal((len(chosen), 5)) for chosen in (train_labels, test_labels)]
    return vectors[0], [f"group {label}" for label in train_labels], vectors[1], [f"group {i}" for i in test_labels]


def by_loop(train, train_labels, test, test_labels, fractions, recalls):
    """The definitions, one query at a time, for vectors without ties."""
    at_fraction, at_recall = [], []
    for query, label in zip(test, test_labels, strict=True):
        cosines = train @ query / np.linalg.norm(train, axis=1) / np.linalg.norm(query)
        relevant = np.array(train_labels)[np.argsort(-cosines)] == label
        firsts = [relevant[: int(np.ceil(round(share * len(train), 6)))] for share in fractions]
        at_fraction.append([first.mean() for first in firsts])
        ranks = np.flatnonzero(relevant) + 1
        wanted = [max(1, int(np.ceil(round(share * len(ranks), 6)))) for share in recalls]
        at_recall.append([m / ranks[m - 1] for m in wanted])
    return np.mean(at_fraction, 0), np.mean(at_recall, 0)


@pytest.mark.parametrize("seed", range(5))
def test_equals_a_plain_loop(seed):
    documents = random_documents(seed)
    fractions, recalls = (0.01, 0.05, 0.2, 0.5, 1.0), (0.01, 0.1, 0.5, 0.9, 1.0)
    record = retrieval_record(*documents, fractions, recalls)
    at_fraction, at_recall = by_loop(*documents, fractions, recalls)
    assert record.precision_at_fraction == pytest.approx(at_fraction, abs=1e-12)
    assert record.precision_at_recall == pytest.approx(at_recall, abs=1e-12)


def test_by_hand():
    train = np.array([[1, 0], [1, 0.2], [1, 0.4], [0, 1]])
    record = retrieval_record(train, ["a", "b", "a", "a"], [[1, 0]], ["a"], fractions=(0.25, 0.5, 1), recalls=(0.5, 1))
    assert record.precision_at_fraction == pytest.approx((1, 1 / 2, 3 / 4))
    assert record.precision_at_recall == pytest.approx((2 / 3, 3 / 4))
    assert record.by_chance == 3 / 4 and record.precision_at_2_percent == 1


def test_vectors_that_are_all_alike_are_worth_chance():
    labels = ["a"] * 3 + ["b"] * 7
    record = retrieval_record(np.ones((10, 2)), labels, np.ones((2, 2)), ["a", "b"])
    assert record.precision_at_fraction == pytest.approx([0.5] * len(record.fractions))  # (3/10 + 7/10) / 2
    assert record.by_chance == pytest.approx(0.5)
    of_a = retrieval_record(np.ones((10, 2)), labels, np.zeros((1, 2)), ["a"], recalls=(0.1, 1.0))
    assert of_a.precision_at_recall == pytest.approx((0.3, 0.3))


def test_tied_documents_count_as_the_mean_over_all_their_orders():
    relevant = np.array([1, 1, 0, 1, 0])  # the last four tied
    ranking = retrieval.Ranking.from_keys(np.sort(np.array([-8, 0, 0, 0, 0]) * 2 + relevant))
    orders = [np.cumsum([1, *order]) for order in itertools.permutations(relevant[1:])]
    assert ranking.relevant_within(np.arange(1, 6)) == pytest.approx(np.mean(orders, 0))


@given(st.integers(0, 1000))
def test_the_order_of_documents_does_not_count(seed):
    train, train_labels, test, test_labels = random_documents(seed % 7, train=12, test=3)
    train = np.round(train)  # with ties
    order = np.random.default_rng(seed).permutation(len(train))
    first = retrieval_record(train, train_labels, test, test_labels)
    second = retrieval_record(train[order], [train_labels[i] for i in order], test, test_labels)
    assert first.precision_at_fraction == pytest.approx(second.precision_at_fraction, abs=1e-12)
    assert first.precision_at_recall == pytest.approx(second.precision_at_recall, abs=1e-12)


@given(st.lists(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=2), min_size=2, max_size=8))
def test_never_nan(vectors):
    labels = [str(place % 2) for place in range(len(vectors))]
    record = retrieval_record(vectors, labels, vectors, labels)
    values = np.array([*record.precision_at_fraction, *record.precision_at_recall])
    assert ((values >= 0) & (values <= 1 + 1e-9)).all()
    assert record.precision_at_fraction[-1] == pytest.approx(record.by_chance)  # all retrieved
    assert record.precision_at_recall[-1] > 0
    json.dumps(record.as_dict(), allow_nan=False)


def test_blocks_change_nothing(monkeypatch):
    documents = random_documents(0)
    expected = retrieval_record(*documents)
    monkeypatch.setattr(retrieval, "MAX_BLOCK", 100)
    in_blocks = retrieval_record(*documents)
    assert in_blocks.precision_at_fraction == pytest.approx(expected.precision_at_fraction, abs=1e-12)
    assert in_blocks.precision_at_recall == pytest.approx(expected.precision_at_recall, abs=1e-12)


def test_rotation_and_scale_do_not_count():
    train, train_labels, test, test_labels = random_documents(1)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    expected = retrieval_record(train, train_labels, test, test_labels).precision_at_fraction
    turned = retrieval_record(7 * train @ rotation, train_labels, test @ rotation / 3, test_labels)
    assert turned.precision_at_fraction == pytest.approx(expected, abs=1e-12)


def test_queries_that_have_nothing_to_find_are_left_out_and_counted():
    train, train_labels, test, test_labels = random_documents(2)
    record = retrieval_record(train, train_labels, np.vstack([test, test[:1]]), [*test_labels, "unheard"])
    assert record.n_queries == len(test) and record.n_queries_left_out == 1
    assert (
        record.precision_at_fraction == retrieval_record(train, train_labels, test, test_labels).precision_at_fraction
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_vectors": np.full((3, 2), np.inf)}, "3 of 3 training vectors are not finite"),
        ({"train_vectors": np.ones((3, 3))}, "3 dimensions, test vectors 2"),
        ({"train_vectors": np.ones((0, 2)), "train_labels": []}, "one row per document"),
        ({"train_labels": ["a"]}, "3 training documents have 1 labels"),
        ({"train_labels": None}, "the training documents have no labels"),
        ({"test_vectors": np.full((2, 2), np.nan)}, "2 of 2 test vectors are not finite"),
        ({"test_labels": None}, "the test documents have no labels"),
        ({"test_labels": ["a"]}, "2 test documents have 1 labels"),
        ({"test_labels": ["x", "y"]}, "no test document"),
        ({"recalls": ()}, "recalls lie"),
        *(
            ({name: shares}, f"{name} lie above 0")
            for name in ("fractions", "recalls")
            for shares in ((0.5, 1.5), (1.0001,), (0.5, 0.0), (0.5, -0.5))
        ),
    ],
)
def test_bad_input_is_one_clear_line(change, message):
    good = {
        "train_vectors": np.ones((3, 2)),
        "train_labels": ["a", "b", "a"],
        "test_vectors": np.ones((2, 2)),
        "test_labels": ["a", "b"],
    }
    with pytest.raises(InputError, match=message):
        retrieval_record(**(good | change))


@pytest.mark.parametrize("seed", [0, 3])
def test_every_field_of_retrieval(seed):
    generator = np.random.default_rng(0)
    train, test = generator.normal(size=(200, 4)), generator.normal(size=(30, 4))
    labels, asked = np.arange(200) % 5 % 3, np.arange(30) % 4  # of 3 there is none to find
    found = retrieval_record(train, labels, test, asked, fractions=(0.02, 1.0), recalls=(1.0,), seed=seed)
    counted = [query for query in range(30) if asked[query] < 3]
    cosines = test @ train.T / np.linalg.norm(train, axis=1)
    first_four = [(labels[np.argsort(-cosines[query])[:4]] == asked[query]).mean() for query in counted]
    assert found.precision_at_2_percent == pytest.approx(np.mean(first_four))
    assert found.precision_at_fraction[0] == pytest.approx(np.mean(first_four)) and found.fractions == (0.02, 1.0)
    bounds = bootstrap_interval(first_four, seed=seed).bounds
    assert found.precision_at_2_percent_interval_95 == pytest.approx(bounds)
    assert bootstrap_interval(first_four, seed=3).bounds != bootstrap_interval(first_four, seed=0).bounds
    assert found.by_chance == pytest.approx(np.mean([(labels == asked[query]).mean() for query in counted]))
    assert (found.n_queries, found.n_queries_left_out, found.n_documents, found.n_labels) == (len(counted), 7, 200, 3)
    assert found.recalls == (1.0,) and len(found.precision_at_recall) == 1


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


@pytest.mark.parametrize("vectors", [[1.0, 2.0], [[]], np.zeros((0, 2)), np.zeros((1, 1, 1)), [["x"]], [[math.nan]]])
def test_what_are_no_vectors_is_said(vectors):
    with pytest.raises(InputError, match="these"):
        checked_vectors(vectors, "these")


def test_the_first_row_that_is_not_finite_is_named():
    with pytest.raises(InputError, match=r"2 of 3 .* row 1"):
        checked_vectors([[1.0, 2.0], [math.inf, 1.0], [1.0, math.nan]], "these")


def test_labels_are_one_a_row():
    vectors = np.zeros((2, 1))
    assert checked_labels([1, "x"], vectors, "these").tolist() == ["1", "x"]
    for labels in (None, ["x"]):
        with pytest.raises(InputError):
            checked_labels(labels, vectors, "these")


def test_unit_rows_of_any_size():
    rows = unit_rows(np.array([[3.0, -4.0], [0.0, 0.0], [3e200, 4e200], [3e-200, -4e-200]]))
    np.testing.assert_allclose(rows, [[0.6, -0.8], [0, 0], [0.6, 0.8], [0.6, -0.8]])
