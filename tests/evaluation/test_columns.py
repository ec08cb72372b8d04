"""Columns that do not fit together are refused wherever they come in, and the one that is wrong is named."""

import numpy as np
import pytest

from varitext.errors import InputError
from varitext.evaluation.calibration import (
    brier_score,
    calibration_record,
    log_loss,
    reliability_curve,
    risk_coverage,
    top_answers,
)
from varitext.evaluation.columns import binary_labels, question_index
from varitext.evaluation.ranking import counted_rows, question_values, ranking_record
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
