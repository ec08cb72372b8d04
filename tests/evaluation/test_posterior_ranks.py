"""How sure a ranking is: against enumeration of all labels, against labels drawn from a known model, at the edges."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.independent_ranks import best_probability, rank_draws, rank_intervals
from varitext.evaluation import posterior_ranks
from varitext.evaluation.posterior_ranks import (
    RankIntervals,
    draws_for,
    intervals_of,
    known_ranks,
    rank_calibration,
    ranks_given,
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
    """Labels drawn from the very probabilities: the known ranks lie inside as often as promised, about 90 %."""
    generator = np.random.default_rng(1)
    inside, promised = [], []
    for _ in range(300):
        p = generator.beta(0.5, 2, 8)
        labels = generator.random(8) < p
        if labels.any():
            found = rank_intervals(p[None], generator)
            inside.append(found.holds(known_ranks(p, labels)))
            promised.append(found.share)
    assert np.mean(inside) == pytest.approx(np.mean(promised), abs=0.02)
    assert np.mean(promised) == pytest.approx(0.9, abs=0.04)


def test_a_sure_ranking_is_sure_and_a_tie_is_shared():
    sure = np.array([[1.0, 1e-9, 1e-10]])
    np.testing.assert_allclose(best_probability(sure), [1, 0, 0], atol=1e-8)
    found = rank_intervals(sure, np.random.default_rng(0))
    assert found.low.tolist() == found.high.tolist() == [1, 2, 3] and found.share.tolist() == [1, 1, 1]
    tied = np.array([[0.2, 0.5, 0.5]])
    best = best_probability(tied)
    assert best[1] == best[2] and best.sum() == pytest.approx(1)
    low, high, _ = rank_intervals(tied, np.random.default_rng(0))
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
    low, high, share = rank_intervals(sampled, np.random.default_rng(seed))
    assert (share > 0).all() and (share <= 1).all()
    assert (low >= 1).all() and (low <= high).all() and (high <= 3).all()


def test_one_candidate_is_the_best():
    assert best_probability(np.array([[1e-300], [0.3]])).tolist() == [1]
    assert [one.tolist() for one in rank_intervals(np.zeros((1, 1)), np.random.default_rng(0))] == [[1], [1], [1]]


def test_interval_nearest_to_nine_tenths():
    """Ranks 1 to 3 with 60, 32 and 8 of 100 draws: the first two have .92; with 50, 35 and 15 all three have 1."""
    ranks = np.stack([np.repeat([1, 2, 3], [60, 32, 8]), np.repeat([1, 2, 3], [50, 35, 15])], 1)
    found = intervals_of(ranks)
    assert found.low.tolist() == [1, 1] and found.high.tolist() == [2, 2]
    np.testing.assert_allclose(found.share, [0.92, 0.85])


def test_ranks_given_labels_are_the_known_ranks():
    scores = np.array([0.3, 2.0, -1.0])
    labels = np.array([[0, 0, 1], [1, 0, 1]])
    expected = [known_ranks(1 / (1 + np.exp(-scores)), one) for one in labels]
    assert ranks_given(scores, labels, np.random.default_rng(0)).tolist() == np.array(expected).tolist()


def test_calibration_of_rankings_by_hand():
    sampled = np.array([[0.9, 0.2, 0.5, 0.5, 0.3], [0.7, 0.2, 0.5, 0.5, 0.3]])
    labels, questions = np.array([1, 0, 1, 0, 0]), np.array([0, 0, 1, 1, 2])
    first, second = best_probability(sampled[:, :2]), best_probability(sampled[:, 2:4])
    best = np.concatenate([first, second, [1.0]])
    intervals = RankIntervals(np.ones(5), np.array([1, 2, 1, 2, 1]), np.array([0.8, 0.9, 0.7, 0.8, 0.1]))
    found = rank_calibration(sampled.mean(0), best, intervals, labels, questions)
    assert found.top_probability_best == pytest.approx((first[0] + second.mean()) / 2)
    assert found.top_is_right == 0.75  # the first, and one of two that are tied; the third question has no right answer
    # the tied two share the rank 1.5 with labels unknown; known, they are 1 and 2. The last question does not count
    assert found.rank_interval_coverage == 1 and found.nominal_coverage == pytest.approx(0.8)


def interval_by_hand(ranks):
    """Every interval from end to end: the shortest with .9 of the draws, the lowest of these, or one a rank shorter."""
    share = {(low, high): np.mean((ranks >= low) & (ranks <= high)) for low in set(ranks) for high in set(ranks)}
    enough = [one for one, part in share.items() if part >= 0.9 - 1e-12]
    low, high = min(enough, key=lambda one: (one[1] - one[0], one[0]))
    shorter = [(low + 1, high), (low, high - 1)] if low < high else []
    every = [(low, high), *shorter]
    parts = [np.mean((ranks >= one[0]) & (ranks <= one[1])) for one in every]
    return *every[int(np.argmin(np.abs(np.array(parts) - 0.9)))], parts[int(np.argmin(np.abs(np.array(parts) - 0.9)))]


@pytest.mark.parametrize("seed", range(12))
def test_intervals_are_those_that_trying_all_finds(seed):
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.full(6, 0.7), 9)
    draws = int(generator.choice([37, 101, 203]))
    ranks = np.stack([generator.choice(np.arange(1, 7), draws, p=one) for one in weights], 1)
    found = intervals_of(ranks)
    for candidate in range(9):
        low, high, share = interval_by_hand(ranks[:, candidate])
        assert (found.low[candidate], found.high[candidate]) == (low, high)
        assert found.share[candidate] == pytest.approx(share)


def test_one_rank_alone_can_be_nearest_to_nine_tenths():
    ranks = np.stack([np.repeat([1, 2], [86, 14]), np.repeat([1, 2], [14, 86]), np.repeat([1, 2], [50, 50])], 1)
    found = intervals_of(ranks)
    assert found.low.tolist() == [1, 2, 1] and found.high.tolist() == [1, 2, 2]
    np.testing.assert_allclose(found.share, [0.86, 0.86, 1])


@pytest.mark.parametrize(
    ("candidates", "draws"), [(1, 1000), (200, 1000), (201, 995), (400, 500), (1000, 200), (1001, 200), (10**6, 200)]
)
def test_questions_with_very_many_candidates_are_drawn_less_often(candidates, draws):
    assert draws_for(candidates) == draws


@pytest.mark.parametrize(("samples", "draws"), [(1, 1000), (3, 999), (700, 700), (1500, 1500)])
def test_every_sample_has_as_many_draws_and_at_least_one(samples, draws):
    assert rank_draws(np.full((samples, 2), 0.5), np.random.default_rng(0)).shape == (draws, 2)


def test_equal_candidates_take_turns():
    ranks = ranks_given(np.array([0.5, 2.0, 0.5]), np.zeros((4000, 3)), np.random.default_rng(0))
    assert (np.sort(ranks, 1) == [1, 2, 3]).all() and (ranks[:, 1] == 1).all()
    assert (ranks[:, 0] == 2).mean() == pytest.approx(0.5, abs=0.04)
    labels = np.tile([1, 0, 1], (4000, 1))
    right_first = ranks_given(np.array([0.5, 2.0, 0.5]), labels, np.random.default_rng(0))
    assert (right_first[:, 1] == 3).all() and (right_first[:, 2] == 1).mean() == pytest.approx(0.5, abs=0.04)


def test_drawn_ranks_of_equal_candidates_have_the_same_distribution():
    ranks = rank_draws(np.full((1, 4), 0.3), np.random.default_rng(0))
    np.testing.assert_allclose(ranks.mean(0), 2.5, atol=0.15)


def test_where_nothing_can_be_right_all_are_the_best_alike():
    np.testing.assert_allclose(best_probability(np.zeros((2, 4))), 0.25, rtol=1e-6)
    np.testing.assert_allclose(best_probability(np.array([[0.5, 0.0, 0.0]])), [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(best_probability(np.ones((1, 2))), [0.5, 0.5], rtol=1e-6)


def test_calibration_counts_ranks_outside_their_intervals():
    """Two questions, their rows interleaved; of five candidates three lie inside."""
    scores, labels = np.array([0.9, 0.1, 0.6, 0.8, 0.3]), np.array([0, 1, 1, 1, 0])
    questions = np.array([0, 1, 0, 1, 0])
    # known ranks: of question 0, rows 0, 2, 4: 2, 1, 3; of question 1, rows 1, 3: 2, 1
    intervals = RankIntervals(np.array([1, 1, 1, 1, 1]), np.array([1, 2, 1, 1, 2]), np.array([0.5, 1.0, 0.6, 0.7, 0.9]))
    assert intervals.holds(np.array([2, 2, 1, 1, 3])).tolist() == [False, True, True, True, False]
    best = np.array([0.6, 0.2, 0.3, 0.8, 0.1])
    found = rank_calibration(scores, best, intervals, labels, questions)
    assert found == pytest.approx(((0.6 + 0.8) / 2, 0.5, 3 / 5, (0.5 + 1.0 + 0.6 + 0.7 + 0.9) / 5))
