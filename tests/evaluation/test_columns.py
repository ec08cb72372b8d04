"""Columns that do not fit together are refused by name; rounding never decides a tie."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata
from trec import read_columns

from lab.independent_ranks import best_probability, rank_intervals
from varitext.errors import InputError
from varitext.evaluation.calibration import (
    brier_score,
    calibration_record,
    log_loss,
    reliability_curve,
    risk_coverage,
    top_answers,
)
from varitext.evaluation.columns import TOLERANCE, WIDEST, SharedRanks, binary_labels, merge_ties, question_index
from varitext.evaluation.posterior_ranks import RankIntervals, known_ranks, rank_calibration
from varitext.evaluation.ranking import compare_rankings, counted_rows, question_values, ranking_record
from varitext.evaluation.trec_files import write_qrels, write_run

SCORES, LABELS, IDS = [0.1, 0.2, 0.3, 0.4], [0, 1, 1, 0], ["a", "a", "b", "b"]


def in_a_folder(write):
    def written(*columns):
        write("/nowhere/file", *columns)

    return written


MEASURES = {
    "log_loss": (log_loss, (SCORES, LABELS)),
    "brier_score": (brier_score, (SCORES, LABELS)),
    "reliability_curve": (reliability_curve, (SCORES, LABELS)),
    "calibration_record": (calibration_record, (SCORES, LABELS, IDS)),
    "risk_coverage": (risk_coverage, (SCORES, LABELS)),
    "top_answers": (top_answers, (SCORES, LABELS, IDS)),
    "question_values": (question_values, (SCORES, LABELS, IDS)),
    "ranking_record": (ranking_record, (SCORES, LABELS, IDS)),
    "counted_rows": (lambda *columns: counted_rows(*columns, "all"), (LABELS, IDS)),
    "write_run": (in_a_folder(write_run), (IDS, ["c", "d", "c", "d"], SCORES)),
    "write_qrels": (in_a_folder(write_qrels), (IDS, ["c", "d", "c", "d"], LABELS)),
}


CASES = [
    (name, place, by) for name, (_, columns) in MEASURES.items() for place in range(len(columns)) for by in (-1, 1)
]


@pytest.mark.parametrize(("name", "place", "by"), CASES)
def test_a_column_that_is_longer_or_shorter_than_the_others_is_refused(name, place, by):
    measure, columns = MEASURES[name]
    changed = [*columns]
    another = "e" if isinstance(changed[place][0], str) else 1  # an id that is not there yet, or a number
    changed[place] = changed[place][:-1] if by < 0 else [*changed[place], another]
    with pytest.raises(InputError, match="one row per candidate, but there are") as caught:
        measure(*changed)
    assert str(len(columns[place]) + by) in str(caught.value)


@pytest.mark.parametrize(
    ("measure", "columns", "message"),
    [
        (risk_coverage, ([0.5, np.nan], [0, 1]), "1 of 2 confidences are NaN"),
        (risk_coverage, ([0.5, 0.5], [0, 1.1]), "values of right lie between 0 and 1; row 1 has 1.1"),
        (top_answers, ([np.nan, 1], [0, 1], IDS[:2]), "1 of 2 scores are NaN"),
        (question_values, ([np.nan, 1], [0, 1], IDS[:2]), "1 of 2 scores are NaN"),
        (brier_score, ([0.5, -0.1], [0, 1]), "probabilities lie between 0 and 1; row 1 has -0.1"),
        (brier_score, ([0.5, 0.1], [0, np.nan]), "1 of 2 labels are NaN"),
        (reliability_curve, ([0.5], [1], 5, "equal-height"), "equal-mass or equal-width, not 5 and 'equal-height'"),
        (in_a_folder(write_run), (["q"], ["d"], [np.nan]), "1 of 1 scores are NaN"),
        (in_a_folder(write_qrels), (["q"], ["d"], [np.nan]), "1 of 1 relevances are NaN"),
        (in_a_folder(write_qrels), (["q", "q"], ["d", "e"], [1, 0.5]), "whole numbers"),
        (question_values, ([1, 2], [0, 1], [["a", "b"]]), r"question ids are one list, not of shape \[1, 2\]"),
    ],
)
def test_what_is_wrong_is_named(measure, columns, message):
    with pytest.raises(InputError, match=message):
        measure(*columns)


def test_labels_and_ids_as_they_are():
    found = binary_labels([True, False, True])
    assert found.tolist() == [1, 0, 1] and found.dtype.kind == "i"
    ids, place = question_index([7, 3, 7])
    assert ids.tolist() == [3, 7] and place.tolist() == [1, 0, 1]


@pytest.mark.parametrize("right", [[0.0, 1.0], [1, 0]])
def test_both_ends_are_probabilities(right):
    assert brier_score([0.0, 1.0], right) in (0.0, 1.0)
    assert risk_coverage([0.5, 0.6], right).risk[-1] == 0.5


ROUNDING = 1.5e-6  # relative: the largest that was seen of networks with jittered products


def noisy(scores, seed=0):
    return np.asarray(scores) * (1 + ROUNDING * np.random.default_rng(seed).uniform(-1, 1, np.shape(scores)))


TIED = st.lists(st.sampled_from([-2.0, 0.0, 0.1, 0.1001, 0.5, 0.75, 0.999, 3.0]), min_size=1, max_size=30)


@given(TIED, st.integers(0, 5))
def test_noise_makes_and_breaks_no_tie(scores, seed):
    scores = np.array(scores)
    merged = merge_ties(noisy(scores, seed))
    assert ((merged[:, None] > merged) == (scores[:, None] > scores)).all()


def test_scores_without_noise_stay_as_they_are():
    scores = np.array([0.3, 0.3, 0.1, -np.inf, -np.inf, 5.0, 0.0, 0.0])
    np.testing.assert_array_equal(merge_ties(scores), scores)


@given(arrays(np.float64, st.integers(0, 40), elements=st.floats(-1e6, 1e6)))
def test_merging_twice_is_merging_once_and_keeps_the_order(scores):
    merged = merge_ties(scores)
    np.testing.assert_array_equal(merge_ties(merged), merged)
    assert not ((merged[:, None] > merged) & (scores[:, None] < scores)).any()
    assert (np.abs(merged - scores) <= WIDEST * TOLERANCE * np.maximum(np.abs(merged), np.abs(scores))).all()


def test_questions_are_apart():
    scores, question_of = np.array([0.5, 0.5 * (1 + 1e-7), 0.5 * (1 + 2e-7)]), np.array([0, 1, 0])
    merged = merge_ties(scores, question_of)
    assert merged[0] == merged[2] == scores[2] and merged[1] == scores[1]


def test_a_long_list_of_close_scores_is_not_one_tie():
    chain = 0.5 * (1 + 0.9 * TOLERANCE) ** np.arange(1000)
    merged = merge_ties(chain)
    assert len(np.unique(merged)) == pytest.approx(1000 * 0.9 / WIDEST, rel=0.15)
    assert (merged / chain - 1).max() <= WIDEST * TOLERANCE * (1 + 1e-9)


def test_figures_do_not_move_by_rounding(tmp_path):
    generator = np.random.default_rng(0)
    question = np.repeat(np.arange(30), 8)
    labels = (generator.random(240) < 0.25).astype(int)
    labels[::8] = 1
    scores = generator.choice([0.1, 0.2, 0.2001, 0.6], 240)  # mostly ties
    records = [ranking_record(one, labels, question) for one in (scores, noisy(scores, 1), noisy(scores, 2))]
    assert records[0] == records[1] == records[2]
    comparison = compare_rankings(records[1], records[2])
    assert comparison.map.difference == comparison.mrr.difference == 0
    intervals = RankIntervals(np.ones(240), np.full(240, 3), np.full(240, 0.9))
    by_noise = [rank_calibration(noisy(scores, seed), scores, intervals, labels, question) for seed in (1, 2)]
    np.testing.assert_allclose(*by_noise, rtol=1e-5)
    texts = []
    for seed in (1, 2):
        write_run(tmp_path / "run", question, np.arange(240), noisy(scores, seed))
        texts.append(read_columns(tmp_path / "run")[:4])
    assert texts[0] == texts[1]


@given(arrays(float, st.integers(1, 8), elements=st.sampled_from([-np.inf, -0.0, 0.0, 0.5, 1.0])))
def test_equal_scores_share_ranks(scores):
    ranks = SharedRanks.of(scores)
    np.testing.assert_array_equal(ranks.best, rankdata(-scores, "min"))
    np.testing.assert_array_equal(ranks.worst, rankdata(-scores, "max"))


def test_equal_candidates_share_though_rounding_sets_them_apart():
    sampled = noisy(np.array([[0.4, 0.4, 0.2, 0.4]]))
    best = best_probability(sampled)
    assert best[0] == best[1] == best[3] > best[2]
    np.testing.assert_array_equal(known_ranks(sampled[0], np.array([0, 0, 0, 0])), [2, 2, 4, 2])
    draws = [rank_intervals(noisy(np.full((1, 5), 0.3), seed), np.random.default_rng(0)) for seed in (0, 1)]
    np.testing.assert_array_equal(*draws)


def close(larger, smaller, times):
    return larger == smaller or larger - smaller <= times * TOLERANCE * max(abs(larger), abs(smaller))


def one_by_one(scores):
    """Down the list: a tie ends at a gap, or where it would get too wide."""
    merged, first, last = {}, None, None
    for score in sorted(scores, reverse=True):
        if first is None or not close(last, score, 1) or not close(first, score, WIDEST):
            first = score
        merged[score] = first
        last = score
    return [merged[score] for score in scores]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("spread", [0.3, 0.9, 2.0])
def test_ties_are_those_that_are_found_one_by_one(seed, spread):
    """Steps of up to so many tolerances: chains of all lengths, some wider than allowed and cut more than once."""
    generator = np.random.default_rng(seed)
    scores = 0.7 * np.exp(np.cumsum(generator.uniform(0, spread * TOLERANCE, 120))) * generator.choice([-1, 1])
    generator.shuffle(scores)
    assert merge_ties(scores).tolist() == one_by_one(scores.tolist())
    question = generator.integers(0, 4, 120)
    by_question = merge_ties(scores, question)
    for number in range(4):
        chosen = question == number
        assert by_question[chosen].tolist() == one_by_one(scores[chosen].tolist())
    rows = np.stack([scores, -scores])
    np.testing.assert_array_equal(merge_ties(rows), [one_by_one(row) for row in rows.tolist()])


def test_a_tie_reaches_just_as_far_as_its_tolerance(monkeypatch):
    """With powers of two, so that no rounding is in it."""
    monkeypatch.setattr("varitext.evaluation.columns.TOLERANCE", 1 / 16)
    assert merge_ties(np.array([16.0, 15.0])).tolist() == [16, 16]
    assert merge_ties(np.array([16.0, 14.9375])).tolist() == [16, 14.9375]
    assert merge_ties(np.array([-15.0, -16.0])).tolist() == [-15, -15]  # of the larger in magnitude
    monkeypatch.setattr("varitext.evaluation.columns.WIDEST", 2)
    assert merge_ties(np.array([16.0, 15.0, 14.5, 14.0])).tolist() == [16, 16, 16, 16]
    assert merge_ties(np.array([16.0, 15.0, 14.25, 13.9375])).tolist() == [16, 16, 16, 13.9375]


def test_scores_beyond_all_measure():
    largest = np.finfo(float).max
    for scores in ([largest, -largest], [np.inf, largest, -np.inf], [-np.inf, -np.inf, np.inf, np.inf]):
        np.testing.assert_array_equal(merge_ties(np.array(scores)), scores)


def test_nothing_has_no_ties():
    assert merge_ties(np.zeros(0)).shape == (0,) and merge_ties(np.zeros((0, 3))).shape == (0, 3)
    assert merge_ties(np.zeros((2, 0))).shape == (2, 0)
