"""Probabilities for scores of any ranker."""

import numpy as np
import pandas
import pytest
from made_up_questions import KINDS, made_up
from test_recalibration import simulated

from varitext import CalibratedRanker, InputError


def judge(question, candidates):
    """Not always right: longer candidates cost points."""
    wanted = set(KINDS[question.split()[0]].split())
    return [100 + 20 * len(wanted.intersection(one.split())) - len(one) for one in candidates]


@pytest.fixture(scope="module")
def fitted() -> CalibratedRanker:
    return CalibratedRanker().fit_scores(*simulated(200, 0))


def test_the_scale_of_scores_has_no_effect(fitted):
    scores, labels, question_of = simulated(200, 0)
    other = CalibratedRanker().fit_scores(1000 * scores - 7, labels, question_of)
    found, same = fitted.predict(scores, question_of), other.predict(1000 * scores - 7, question_of)
    np.testing.assert_allclose(found.right, same.right, atol=1e-3)
    assert (found.in_set == same.in_set).mean() > 0.99


def test_one_ranking_is_the_same_as_many(fitted):
    scores = [0.2, 3.0, -1.0, 0.2]
    ranking = fitted.rank_scores("who was king", ["a one", "b two", "c three", "d four"], scores, abstain=0.99)
    arrays = fitted.predict(scores, ["q"] * 4, abstain=0.99)
    by_place = sorted(ranking.candidates, key=lambda one: one.place)
    np.testing.assert_allclose([one.probability for one in by_place], arrays.right, rtol=1e-9)
    np.testing.assert_allclose([one.probability_best for one in by_place], arrays.best, rtol=1e-9)
    assert ranking.probability_none == pytest.approx(arrays.none[0]) and not ranking.answered
    assert [one.rank for one in by_place] == arrays.rank.tolist() == [2, 1, 4, 2]
    answers = fitted.answer_set(ranking, 0.9)
    in_set = {one.place for one in answers.candidates}
    assert answers.none == arrays.none_in_set.all() == arrays.none_in_set.any()
    assert in_set == set(np.flatnonzero(arrays.in_set).tolist()) and not arrays.answered.any()


def test_stated_precision_and_coverage_hold_on_other_questions(fitted):
    others = simulated(1000, 9)
    threshold = fitted.abstention_threshold(0.7)
    found = fitted.predict(others.scores, others.question_of, abstain=threshold, coverage=0.8)
    top = (found.rank == 1) & found.answered
    assert others.labels[top].mean() == pytest.approx(0.7, abs=0.06)
    covered = np.bincount(others.question_of, found.in_set & (others.labels == 1))[others.answerable] > 0
    assert covered.mean() == pytest.approx(0.8, abs=0.06)
    assert fitted.abstention_threshold(0.7, confidence=0.9) >= threshold


def test_a_score_function_a_column_and_a_folder_give_the_same(tmp_path):
    questions = made_up(40, 0)
    ranker = CalibratedRanker(judge).fit(questions)
    rows = [
        {"question_id": one.id, "label": two.label, "judged": judge(one.text, [two.text])[0]}
        for one in questions.questions
        for two in one.candidates
    ]
    by_column = CalibratedRanker(judge).fit(pandas.DataFrame(rows), scores="judged")
    ranker.save(tmp_path / "model")
    loaded = CalibratedRanker.load(tmp_path / "model", judge)
    assert loaded.fitted_ == ranker.fitted_ and ranker.fitted_.corpus["name"] == "made up"
    ranking = ranker.rank("who was the king", ["the king was old", "the river"])
    assert loaded.rank("who was the king", ["the king was old", "the river"]) == ranking
    assert by_column.fitted_.model.platt.scale == pytest.approx(ranker.fitted_.model.platt.scale, rel=1e-6)


def test_misuse_is_refused_in_one_line(fitted):
    scores, labels, question_of = simulated(20, 1)
    cases = {
        "finite": lambda: CalibratedRanker().fit_scores(np.where(scores > 1, np.inf, scores), labels, question_of),
        "NaN": lambda: fitted.predict([np.nan], [0]),
        "no score function": lambda: fitted.rank("who", ["the king"]),
        "gave 1 scores for 2 candidates": lambda: CalibratedRanker(lambda *_: [1.0]).rank("who", ["a", "b"]),
        "fit the ranker first": lambda: CalibratedRanker().predict([1.0], [0]),
        "no threshold reaches a precision of 0.999": lambda: fitted.abstention_threshold(0.999, confidence=0.99),
        "no column 'score'": lambda: CalibratedRanker().fit(pandas.DataFrame({"question_id": [1]}), scores="score"),
    }
    for message, case in cases.items():
        with pytest.raises(InputError, match=message):
            case()
    with pytest.warns(UserWarning, match="negate"):
        CalibratedRanker().fit_scores(-scores, labels, question_of)
