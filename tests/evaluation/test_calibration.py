"""Calibration and risk against scikit-learn, by hand and over every order of ties."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from synthetic import scored_pairs

from varitext.errors import InputError
from varitext.evaluation.calibration import (
    BINNINGS,
    brier_score,
    calibration_record,
    expected_calibration_error,
    log_loss,
    no_answer_calibration,
    reliability_curve,
    risk_coverage,
    top_answers,
)

ROWS = st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.8, 1]), st.integers(0, 1)), min_size=1, max_size=40)


def columns(rows):
    return [np.array(column, dtype=float) for column in zip(*rows, strict=True)]


def test_scores_worked_by_hand():
    assert log_loss([0.5, 0.25], [1, 0]) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)
    assert brier_score([0.5, 0.25], [1, 0]) == pytest.approx((0.25 + 0.0625) / 2)


@given(ROWS, st.sampled_from([np.float32, np.float64]))
def test_scores_equal_scikit_learn(rows, dtype):
    probabilities, labels = columns(rows)
    given_type = probabilities.astype(dtype)
    assert log_loss(given_type, labels) == pytest.approx(
        metrics.log_loss(labels, given_type, labels=[0, 1]), rel=1e-5, abs=1e-6
    )
    assert brier_score(probabilities, labels) == pytest.approx(metrics.brier_score_loss(labels, probabilities))


def test_certainty_costs_nothing_when_right_and_much_but_not_infinity_when_wrong():
    assert log_loss([0, 1], [0, 1]) == 0
    assert log_loss([1.0], [0]) == log_loss([0], [1]) == pytest.approx(52 * np.log(2))
    assert log_loss(np.array([1], dtype=np.float32), [0]) == pytest.approx(23 * np.log(2))
    assert log_loss([1e-300], [1]) <= log_loss([0.0], [1])  # saying 0 never pays
    assert calibration_record([0, 1, 1], [0, 0, 1], list("abc")).n_certain_and_wrong == 1


def test_equal_mass_bins_by_hand():
    curve = reliability_curve([0.9, 0.1, 0.2, 0.6], [1, 0, 1, 1], bins=2)
    np.testing.assert_allclose(curve.lower, [0, 0.2])
    np.testing.assert_allclose(curve.upper, [0.2, 0.9])
    np.testing.assert_allclose(curve.mean_probability, [0.15, 0.75])
    np.testing.assert_allclose(curve.share_right, [0.5, 1])
    assert curve.count.tolist() == [2, 2]
    assert curve.expected_error == pytest.approx(0.5 * 0.35 + 0.5 * 0.25)


def test_equal_width_bins_by_hand_with_edges_and_empty_bins():
    curve = reliability_curve([0, 0.25, 0.26, 1], [0, 1, 0, 1], bins=4, binning="equal-width")
    np.testing.assert_allclose(curve.lower, [0, 0.25, 0.75])
    np.testing.assert_allclose(curve.upper, [0.25, 0.5, 1])  # 0.25 belongs to the bin that ends there
    assert curve.count.tolist() == [2, 1, 1]
    assert curve.expected_error == pytest.approx((2 * abs(0.125 - 0.5) + 0.26 + 0) / 4)


@given(ROWS, st.integers(1, 20), st.sampled_from(BINNINGS), st.randoms(use_true_random=False))
def test_bins_hold_every_row_once_whatever_the_order(rows, bins, binning, random):
    probabilities, labels = columns(rows)
    curve = reliability_curve(probabilities, labels, bins, binning)
    assert curve.count.sum() == len(rows) and (curve.count > 0).all() and len(curve.count) <= bins
    assert (curve.lower <= curve.mean_probability + 1e-12).all() and (
        curve.mean_probability <= curve.upper + 1e-12
    ).all()
    random.shuffle(rows)
    assert expected_calibration_error(*columns(rows), bins, binning) == pytest.approx(curve.expected_error)


def test_bins_are_of_equal_mass_where_nothing_is_tied():
    probabilities = np.random.default_rng(0).random(100)
    assert reliability_curve(probabilities, probabilities > 0.5, bins=10).count.tolist() == [10] * 10
    assert set(reliability_curve(probabilities, probabilities > 0.5, bins=7).count) == {14, 15}


def test_honest_probabilities_are_calibrated_and_boasting_ones_are_not():
    generator = np.random.default_rng(0)
    probabilities = generator.random(20_000)
    labels = generator.random(20_000) < probabilities
    assert expected_calibration_error(probabilities, labels) < 0.02
    assert expected_calibration_error(probabilities**4, labels) > 0.2
    assert expected_calibration_error([0.3] * 10, [1] * 3 + [0] * 7) == pytest.approx(0)


def test_risk_coverage_by_hand():
    curve = risk_coverage([0.9, 0.6, 0.8], [1, 1, 0])
    np.testing.assert_allclose(curve.coverage, [1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curve.risk, [0, 1 / 2, 1 / 3])
    assert curve.area == pytest.approx(5 / 18)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=6))
def test_risk_with_ties_equals_the_mean_over_every_order(rows):
    orders = [
        np.cumsum([1 - right for _, right in order]) / np.arange(1, len(order) + 1)
        for order in itertools.permutations(rows)
        if all(above[0] >= below[0] for above, below in itertools.pairwise(order))
    ]
    np.testing.assert_allclose(risk_coverage(*columns(rows)).risk, np.mean(orders, axis=0), atol=1e-12)


def test_a_constant_confidence_has_the_overall_risk_everywhere():
    np.testing.assert_allclose(risk_coverage(np.ones(8), [1, 1, 0, 1, 0, 1, 1, 1]).risk, 0.25)


def test_top_answers_share_where_tied():
    top = top_answers([0.2, 0.7, 0.5, 0.7, 0.1], [1, 1, 0, 0, 1], ["b", "a", "b", "a", "a"])
    assert top.question_ids.tolist() == ["a", "b"]
    np.testing.assert_allclose(top.confidence, [0.7, 0.5])
    np.testing.assert_allclose(top.right, [0.5, 0])


def test_the_record_is_json_and_says_its_bins():
    record = calibration_record([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1], ["a", "b", "a", "b"], bins=2)
    assert json.loads(json.dumps(record.as_dict()))["ece_bin_edges"] == [0, 0.2, 0.9]
    assert record.ece_binning == "equal-mass" and record.share_right == 0.5
    assert record.ece == pytest.approx((0.15 + 0.2) / 2) and record.risk_coverage_area == 0


@pytest.mark.parametrize(
    ("probabilities", "labels", "bins", "message"),
    [
        ([0.5, np.nan], [0, 1], 5, "1 of 2 probabilities are NaN"),
        ([0.5, 1.5], [0, 1], 5, "between 0 and 1; row 1 has 1.5"),
        ([0.5, -np.inf], [0, 1], 5, "row 1 has -inf"),
        ([0.5, 0.5], [0, np.nan], 5, "labels are NaN"),
        ([0.5, 0.5], [0, 0.5], 5, "labels are 0 or 1; row 1 has 0.5"),
        ([0.5], [0, 1], 5, "1 probabilities, 2 labels"),
        ([], [], 5, "at least one"),
        ([0.5, 0.5], [0, 1], 0, "at least one"),
    ],
)
def test_bad_input_is_refused(probabilities, labels, bins, message):
    with pytest.raises(InputError, match=message):
        calibration_record(probabilities, labels, ["q"] * len(labels), bins)


def test_probability_of_no_answer_by_hand():
    probability = np.array([0.2, 0.2, 0.8, 0.8, 0.8])
    found = no_answer_calibration(probability, np.array([False, True, True, True, False]))
    assert found.share_without_answer == pytest.approx(0.6) and found.mean_probability_none == pytest.approx(0.56)
    expected = -(np.log(0.8) + np.log(0.2) + 2 * np.log(0.8) + np.log(0.2)) / 5
    assert found.none_log_loss == pytest.approx(expected)
    # two bins, one of each probability: .5 of two against .2, 2/3 of three against .8
    assert found.none_ece == pytest.approx(2 / 5 * 0.3 + 3 / 5 * (0.8 - 2 / 3))
    many = np.tile(probability, 400)
    honest = no_answer_calibration(many, np.random.default_rng(0).random(2000) < many)
    assert honest.none_ece_by_chance < 0.03 and honest.none_ece < 3 * honest.none_ece_by_chance + 0.01


@pytest.mark.parametrize("binning", ["equal-mass", "equal-width"])
def test_every_field_of_calibration(binning):
    scores, labels, ids = scored_pairs(20)
    scores[3], scores[4], scores[8] = 1.0, 0.0, 0.0
    labels[3], labels[4], labels[8] = 0, 0, 1  # certain and wrong, right, wrong
    found = calibration_record(scores, labels, ids, 6, binning)
    curve = reliability_curve(scores, labels, 6, binning)
    assert found.log_loss == pytest.approx(metrics.log_loss(labels, scores))
    assert found.brier == pytest.approx(metrics.brier_score_loss(labels, scores))
    assert found.share_right == pytest.approx(labels.mean()) and found.mean_probability == pytest.approx(scores.mean())
    assert found.ece == pytest.approx(curve.expected_error) and found.ece_binning == binning
    assert found.ece_bin_edges == pytest.approx((0.0, *curve.upper)) and found.n_certain_and_wrong == 2
    # the answer of every question, the surest first
    best = sorted(((scores[ids == one].max(), labels[ids == one][scores[ids == one].argmax()]) for one in set(ids)),
                  reverse=True)  # fmt: skip
    wrong = [1 - label for _, label in best]
    risks = [np.mean(wrong[: n + 1]) for n in range(20)]
    assert (found.risk, found.risk_of_surer_half) == pytest.approx((risks[-1], risks[9]))
    assert found.risk_coverage_area == pytest.approx(np.mean(risks)) and risks[-1] != risks[9]
    top = top_answers(scores, labels, ids)
    assert dict(zip(top.question_ids, top.confidence, strict=True)) == {
        one: scores[ids == one].max() for one in set(ids)
    }


def test_next_to_certain_is_not_certain():
    assert calibration_record([0.0, 1e-16, 1.0, 0.5], [1, 1, 1, 1], list("abcd")).n_certain_and_wrong == 1


def test_the_risk_at_a_coverage_is_that_of_the_fewest_answers_that_reach_it():
    curve = risk_coverage([0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 1, 0, 0])
    risks = [0, 1 / 2, 1 / 3, 2 / 4, 3 / 5]
    for coverage, expected in ((0.1, 0), (0.2, 0), (0.21, 1), (0.4, 1), (0.6, 2), (0.61, 3), (0.8, 3), (1.0, 4)):
        assert curve.at(coverage) == pytest.approx(risks[expected])
    thirds = risk_coverage([0.9, 0.8, 0.7], [1, 1, 0])
    assert thirds.at(1 / 3 + 1 / 3) == 0  # that it is 0.6666 does not take in the third


def test_the_last_bins_may_be_empty():
    curve = reliability_curve([0.05, 0.3, 0.35], [0, 1, 0], bins=5, binning="equal-width")
    assert curve.upper == pytest.approx([0.2, 0.4]) and curve.lower == pytest.approx([0, 0.2])
    assert curve.count.tolist() == [1, 2] and curve.share_right == pytest.approx([0, 0.5])


def error_by_hand(probability, right, bins=10):
    """Bins of as many rows each, for probabilities without ties whose number the bins divide."""
    rows = np.argsort(probability).reshape(bins, -1)
    return np.mean([abs(probability[some].mean() - right[some].mean()) for some in rows])


def test_what_chance_alone_would_give_is_the_mean_over_drawn_answers():
    probability = np.random.default_rng(0).random(50)  # as the first draws: just there, nothing happens yet
    found = no_answer_calibration(probability, probability > 0.4)
    drawn = np.random.default_rng(0).random((200, 50)) < probability
    assert found.none_ece_by_chance == pytest.approx(np.mean([error_by_hand(probability, one) for one in drawn]))
    assert found.none_ece == pytest.approx(error_by_hand(probability, probability > 0.4))
