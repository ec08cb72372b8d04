"""Thresholds and answer sets from held-out questions: small cases by hand, and coverage by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varitext.errors import InputError
from varitext.evaluation.conformal import HeldOutQuestions, abstention_threshold, conformal_quantile, mass_above


def held_out(top=(0.5,), top_right=(1.0,), above=(0.0,), none=(0.5,)):
    return HeldOutQuestions(tuple(top), tuple(top_right), tuple(above), tuple(none))


def test_quantile_is_the_next_order_statistic():
    values = np.array([0.3, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert conformal_quantile(values, 0.9) == 0.9  # 9 of 10 places
    assert conformal_quantile(values, 0.5) == 0.5
    assert conformal_quantile(values, 0.95) == math.inf  # nine questions are too few
    assert conformal_quantile(np.zeros(0), 0.5) == math.inf


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5])
def test_shares_outside_zero_and_one_are_refused(coverage):
    with pytest.raises(InputError, match="between 0 and 1"):
        held_out().set_limit(coverage)


def test_quantile_covers_as_stated():
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(4000, 40))
    covered = [row[0] <= conformal_quantile(row[1:], 0.8) for row in draws]
    assert np.mean(covered) == pytest.approx(0.8, abs=0.02)


def test_mass_above_is_conditional_on_an_answer_and_shared_by_ties():
    best, none = np.array([0.1, 0.3, 0.2, 0.2, 0.5]), np.array([0.2, 0.5])
    scores, question_of = np.array([-1.0, 3.0, 1.0, 1.0, 0.0]), np.array([0, 0, 0, 0, 1])
    np.testing.assert_allclose(mass_above(best, none, scores, question_of), [0.7 / 0.8, 0, 0.3 / 0.8, 0.3 / 0.8, 0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_mass_above_rises_down_the_list(values, seed):
    best = np.array(values) / max(sum(values), 1.0)
    scores = np.random.default_rng(seed).integers(0, 5, len(best)).astype(float)
    found = mass_above(best, np.array([1 - best.sum()]), scores, np.zeros(len(best), int))
    order = np.argsort(-scores, kind="stable")
    assert (np.diff(found[order]) >= -1e-9).all() and found[order[0]] == 0


def test_a_tested_threshold_is_stricter_and_holds_its_precision():
    """P(right) is what it says, so the true precision at a threshold is known: (1 + threshold) / 2."""
    generator, failures, found = np.random.default_rng(0), [], 0
    for _ in range(150):
        top = generator.random(200)
        questions = held_out(top, (generator.random(200) < top).astype(float))
        point, tested = questions.abstention_threshold(0.7), questions.abstention_threshold(0.7, confidence=0.9)
        if tested is not None:
            found += 1
            assert point is not None and tested >= point
            failures.append((1 + tested) / 2 < 0.7)
    assert found > 120 and np.mean(failures) <= 0.12


def test_no_threshold_where_no_precision_is_reached():
    questions = held_out(np.linspace(0.1, 0.9, 50), np.zeros(50))
    assert questions.abstention_threshold(0.5) is None
    assert questions.abstention_threshold(0.5, confidence=0.9) is None
    assert held_out(np.linspace(0.1, 0.9, 50), np.arange(50) > 31).abstention_threshold(0.95) is None  # 18 are too few
    assert abstention_threshold([0.9, 0.9, 0.2], [1, 0, 0], 0.6) is None  # equal ones are answered together
