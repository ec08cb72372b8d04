"""The paired randomisation test and the bootstrap: by hand, and whether they keep what they promise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from varitext.errors import InputError
from varitext.evaluation.significance import MAX_DRAW, _portions, bootstrap_interval, paired_randomisation_test

DIFFERENCES = st.lists(st.sampled_from([-1, -0.5, -0.1, 0, 0.1, 0.3, 1]), min_size=1, max_size=8)


def random_differences(n, shift=0.0, seed=0):
    return np.random.default_rng(seed).normal(shift, 1, n)


def test_by_hand():
    """Of the eight sums of ±1 ±2 ±3, two are as far from zero as 6, and four as far as 4."""
    assert paired_randomisation_test([1, 2, 3], [0, 0, 0]) == (pytest.approx(2), 2 / 8, 3, 8, True)
    assert paired_randomisation_test([-1, 2, 3], [0, 0, 0]).p_value == 4 / 8


@given(DIFFERENCES)
def test_exact_equals_trying_every_swap(differences):
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=len(differences))]
    expected = np.mean([one >= abs(sum(differences)) - 1e-9 for one in sums])
    assert paired_randomisation_test(differences, np.zeros(len(differences))).p_value == pytest.approx(expected)


@given(DIFFERENCES)
def test_the_order_of_models_only_turns_the_sign(differences):
    zeros = np.zeros(len(differences))
    one, other = paired_randomisation_test(differences, zeros), paired_randomisation_test(zeros, differences)
    assert one.p_value == other.p_value and one.difference == -other.difference


def test_equal_models_are_not_different():
    assert paired_randomisation_test(np.ones(300), np.ones(300)) == (0, 1, 300, 1, True)


def test_questions_on_which_both_agree_do_not_count_against_enumeration():
    differences = np.r_[np.ones(5), np.zeros(200)]
    result = paired_randomisation_test(differences, np.zeros(205))
    assert result.exact and result.p_value == 2 / 32 and result.difference == pytest.approx(5 / 205)


def test_drawn_is_near_exact_and_seeded():
    differences = random_differences(20, 0.4)
    exact = paired_randomisation_test(differences, np.zeros(20))
    assert exact.exact and exact.n_assignments == 2**20
    tiny = np.r_[differences, 1e-9]  # one question more: drawn, with nearly the same sums
    drawn = paired_randomisation_test(tiny, np.zeros(21), resamples=40_000)
    assert not drawn.exact and drawn.p_value == pytest.approx(exact.p_value, abs=0.01)
    assert drawn == paired_randomisation_test(tiny, np.zeros(21), resamples=40_000)
    assert drawn.p_value != paired_randomisation_test(tiny, np.zeros(21), resamples=40_000, seed=1).p_value


def test_a_drawn_p_value_is_never_zero():
    assert paired_randomisation_test(np.ones(100), np.zeros(100), resamples=999).p_value == 1 / 1000


def test_without_a_difference_small_p_values_are_as_rare_as_they_say():
    p_values = [
        paired_randomisation_test(random_differences(30, seed=seed), np.zeros(30), resamples=499).p_value
        for seed in range(400)
    ]
    assert np.mean(np.array(p_values) <= 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.mean(np.array(p_values) <= 0.5) == pytest.approx(0.5, abs=0.08)


def test_seeds_are_averaged_question_by_question():
    generator = np.random.default_rng(0)
    first, second = (
        generator.random((10, 40)),
        generator.random((3, 40)),
    )  # the models may differ in their number of seeds
    assert paired_randomisation_test(first, second) == paired_randomisation_test(first.mean(0), second.mean(0))
    assert bootstrap_interval(first) == bootstrap_interval(first.mean(0))


def test_an_interval_covers_the_mean_as_often_as_it_says():
    intervals = [bootstrap_interval(random_differences(60, 0.3, seed), resamples=400, seed=seed) for seed in range(300)]
    assert np.mean([one.low <= 0.3 <= one.high for one in intervals]) == pytest.approx(0.95, abs=0.04)


def test_an_interval_is_seeded_ordered_and_wider_at_a_higher_level():
    values = random_differences(50)
    narrow, wide = bootstrap_interval(values, 0.5), bootstrap_interval(values, 0.99)
    assert wide.low < narrow.low < narrow.mean == values.mean() < narrow.high < wide.high
    assert narrow == bootstrap_interval(values, 0.5) and wide.bounds == (wide.low, wide.high)
    assert bootstrap_interval([0.4]).bounds == (0.4, 0.4)


@settings(max_examples=20)
@given(st.integers(1, 50))
def test_drawing_in_portions_draws_the_same(portion):
    """Memory is bounded by drawing in portions; the bits must not depend on how large they are."""
    values = random_differences(25)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("varitext.evaluation.significance.MAX_DRAW", 25 * portion)
        small = bootstrap_interval(values, resamples=60)
    assert MAX_DRAW > 25 * 60 and small == bootstrap_interval(values, resamples=60)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2], [1], "same questions: 2 in the first, 1 in the second"),
        ([1, np.nan], [1, 2], "1 of 2 values are not finite"),
        ([1, 2], [1, np.inf], "not finite"),
        ([], [], "not empty"),
        (np.ones((2, 2, 2)), np.ones(2), r"\[2, 2, 2\]"),
    ],
)
def test_bad_values_are_refused(first, second, message):
    with pytest.raises(InputError, match=message):
        paired_randomisation_test(first, second)


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="at least one resample"):
        paired_randomisation_test(np.ones(30), np.zeros(30), resamples=0)
    with pytest.raises(InputError, match="level between 0 and 1"):
        bootstrap_interval([1, 2], level=95)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, -0.5])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(InputError, match="level between 0 and 1"):
        bootstrap_interval([1, 2], level=level)


def test_one_resample_is_enough_and_none_is_not():
    low, high = bootstrap_interval([1.0, 2.0, 4.0], resamples=1).bounds
    assert low == high and 1 <= low <= 4
    assert paired_randomisation_test(np.ones(30), np.zeros(30), resamples=1).p_value in (1 / 2, 1)
    with pytest.raises(InputError, match="a resample"):
        bootstrap_interval([1, 2], resamples=0)


@pytest.mark.parametrize(("level", "bounds"), [(0.4, (0.5, 0.5)), (0.6, (0.0, 1.0)), (0.95, (0.0, 1.0))])
def test_an_interval_has_the_quantiles_of_all_that_can_be_drawn(level, bounds):
    """Of 0 and 1 the means are 0, 1/2 and 1, with chances of 1/4, 1/2 and 1/4."""
    assert bootstrap_interval([0, 1], level=level, resamples=4000).bounds == bounds


def test_an_interval_is_as_wide_as_the_level_says():
    """Of many values the mean is normal."""
    values = random_differences(400)
    for level in (0.5, 0.8, 0.95):
        low, high = bootstrap_interval(values, level, resamples=4000).bounds
        half = norm.isf((1 - level) / 2) * values.std() / 20
        assert (values.mean() - low, high - values.mean()) == pytest.approx((half, half), rel=0.1)


def test_drawn_sums_as_far_as_the_one_seen_count():
    """All 24 differences are 1, but for one of 3: of all sums that are drawn, those as large as the one seen count."""
    first = np.r_[np.ones(23), 3.0] * np.r_[np.ones(14), -np.ones(9), 1.0]  # the sum is 8
    found = paired_randomisation_test(first, np.zeros(24), resamples=20_000)
    sums = 2 * np.arange(24) - 23
    chance = sum(binom.pmf(np.arange(24), 23, 0.5) @ (np.abs(sums + sign * 3) >= 8) / 2 for sign in (-1, 1))
    without_equal = sum(binom.pmf(np.arange(24), 23, 0.5) @ (np.abs(sums + sign * 3) > 8) / 2 for sign in (-1, 1))
    assert found.p_value == pytest.approx(chance, abs=0.012) and chance - without_equal > 0.03
    assert (found.difference, found.n_questions, found.n_assignments, found.exact) == (8 / 24, 24, 20_000, False)


def test_right_and_wrong_are_values_too():
    found = paired_randomisation_test([True, True, False], [False, True, False])
    assert found == (pytest.approx(1 / 3), 1, 3, 2, True)
    assert bootstrap_interval([True, True]) == (1, 1, 1, 0.95)


def test_rounding_does_not_decide_which_sums_are_as_large():
    """0.1 + 0.2 is not 0.3 in floating point: swapped signs add up in another order."""
    differences = np.array([0.1, 0.2, 0.3, 0.6, -0.7, 0.1])
    whole = np.array([1, 2, 3, 6, -7, 1])
    found = paired_randomisation_test(differences, np.zeros(6)).p_value
    assert found == paired_randomisation_test(whole, np.zeros(6)).p_value


def test_signs_are_bytes_that_the_seed_draws():
    """What is published can be drawn again: one byte a sign, question by question, 0 for minus."""
    differences = random_differences(25, 0.3)
    signs = 2.0 * np.random.default_rng(3).integers(0, 2, (500, 25), dtype=np.int8) - 1
    hits = (np.abs(signs @ differences) >= abs(differences.sum())).sum()
    found = paired_randomisation_test(differences, np.zeros(25), resamples=500, seed=3)
    assert found.p_value == pytest.approx((hits + 1) / 501)


@pytest.mark.parametrize("resamples", [1, 9, 10, 11, 1000])
def test_portions_are_all_that_was_asked_for(resamples):
    portions = list(_portions(resamples, MAX_DRAW // 10))
    assert sum(portions) == resamples and max(portions) <= 10 and min(portions) > 0


def test_what_is_too_large_for_memory_is_drawn_one_by_one():
    assert list(_portions(3, MAX_DRAW + 1)) == list(_portions(3, MAX_DRAW)) == [1, 1, 1]
    assert list(_portions(5, MAX_DRAW // 2)) == [2, 2, 1]
