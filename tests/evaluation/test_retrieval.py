"""Retrieval against a plain loop, ties against every order of the tied, and the curves' fixed points."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varitext import InputError
from varitext.evaluation import retrieval_record
from varitext.evaluation import vectors as retrieval


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
        ({"train_vectors": np.full((3, 2), np.inf)}, "not finite"),
        ({"train_vectors": np.ones((3, 3))}, "3 dimensions, test vectors 2"),
        ({"train_vectors": np.ones((0, 2)), "train_labels": []}, "one row per document"),
        ({"train_labels": ["a"]}, "3 training documents have 1 labels"),
        ({"train_labels": None}, "no labels"),
        ({"test_labels": ["x", "y"]}, "no test document"),
        ({"fractions": (0.0,)}, "fractions lie"),
        ({"recalls": ()}, "recalls lie"),
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
