"""How sure a ranking is: against enumeration of all labels, against labels drawn from a known model, at the edges."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varitext.evaluation import posterior_ranks
from varitext.evaluation.posterior_ranks import (
    best_probability,
    known_ranks,
    rank_calibration,
    rank_draws,
    rank_intervals,
)

SAMPLED = np.array([[0.3, 0.6, 0.1, 0.05], [0.2, 0.5, 0.3, 0.4]])  # [S, P]


def enumerated(p: np.ndarray) -> np.ndarray:
    """The probability of each rank of each candidate, over all labels with a right answer, [P, ranks]."""
    found = np.zeros((len(p), len(p)))
    for labels in itertools.product((0, 1), repeat=len(p)):
        if any(labels):
            ranks = known_ranks(p, np.array(labels)).astype(int)
            found[np.arange(len(p)), ranks - 1] += np.prod(np.where(labels, p, 1 - p))
    return found / found[0].sum()


def test_best_is_the_first_under_known_labels():
    expected = np.mean([enumerated(p)[:, 0] for p in SAMPLED], 0)
    np.testing.assert_allclose(best_probability(SAMPLED), expected, rtol=1e-9)


def test_drawn_ranks_have_the_enumerated_distribution(monkeypatch):
    monkeypatch.setattr(posterior_ranks, "DRAWS", 100_000)
    ranks = rank_draws(SAMPLED, np.random.default_rng(0))
    assert (np.sort(ranks, 1) == np.arange(1, 5)).all()
    found = (ranks[:, :, None] == np.arange(1, 5)).mean(0)
    np.testing.assert_allclose(found, np.mean([enumerated(p) for p in SAMPLED], 0), atol=0.006)


def test_intervals_hold_what_they_say():
    """Labels drawn from the very probabilities: at least 90 % of the known ranks lie inside, and not all of them."""
    generator = np.random.default_rng(1)
    inside = []
    for _ in range(300):
        p = generator.beta(0.5, 2, 8)
        labels = generator.random(8) < p
        if labels.any():
            low, high = rank_intervals(p[None], generator)
            ranks = known_ranks(p, labels)
            inside.append((low <= ranks) & (ranks <= high))
    assert 0.9 <= np.mean(inside) < 0.98


def test_a_sure_ranking_is_sure_and_a_tie_is_shared():
    sure = np.array([[1.0, 1e-9, 1e-10]])
    np.testing.assert_allclose(best_probability(sure), [1, 0, 0], atol=1e-8)
    assert rank_intervals(sure, np.random.default_rng(0)).tolist() == [[1, 2, 3], [1, 2, 3]]
    tied = np.array([[0.2, 0.5, 0.5]])
    best = best_probability(tied)
    assert best[1] == best[2] and best.sum() == pytest.approx(1)
    low, high = rank_intervals(tied, np.random.default_rng(0))
    assert (low[1], high[1]) == (low[2], high[2])


def test_known_ranks_by_hand():
    assert known_ranks(np.array([0.9, 0.2, 0.2, 0.1]), np.array([0, 0, 0, 1])).tolist() == [2, 3.5, 3.5, 1]


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(0, 9),
)
def test_any_probabilities_give_a_distribution(rows, seed):
    sampled = np.array(rows)
    best = best_probability(sampled)
    assert np.isfinite(best).all() and (best >= 0).all() and best.sum() == pytest.approx(1)
    low, high = rank_intervals(sampled, np.random.default_rng(seed))
    assert (low >= 1).all() and (low <= high).all() and (high <= 3).all()


def test_one_candidate_is_the_best():
    assert best_probability(np.array([[1e-300], [0.3]])).tolist() == [1]
    assert rank_intervals(np.zeros((1, 1)), np.random.default_rng(0)).tolist() == [[1], [1]]


def test_calibration_of_rankings_by_hand():
    sampled = np.array([[0.9, 0.2, 0.5, 0.5, 0.3], [0.7, 0.2, 0.5, 0.5, 0.3]])
    labels, questions = np.array([1, 0, 1, 0, 0]), np.array([0, 0, 1, 1, 2])
    found = rank_calibration(sampled, labels, questions, seed=0)
    first, second = best_probability(sampled[:, :2]), best_probability(sampled[:, 2:4])
    assert found.top_probability_best == pytest.approx((first[0] + second.mean()) / 2)
    assert found.top_is_right == 0.75  # the first, and one of two that are tied; the third question has no right answer
    assert found.rank_interval_coverage == 1
