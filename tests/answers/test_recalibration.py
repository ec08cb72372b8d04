"""Refitting probabilities on labelled questions of another domain."""

import numpy as np
import pytest
from made_up_questions import made_up

from varitext import AnswerRanker, InputError
from varitext.answers.joint import INITIAL, JointModel
from varitext.answers.recalibration import LabelledScores, ProbabilityQuality, ScoreModel, cross_validated
from varitext.corpora.question_answers import QuestionAnswers

TRUE = JointModel((1.2, -1.0, 0.3, -1.5, -2.0, 0.5, -1.0, 0.5, 0.8))


def simulated(questions: int, seed: int, scale: float = 1.0, shift: float = 0.0) -> LabelledScores:
    """Labels drawn from a joint model; the scores that are seen are on another scale than its log odds."""
    generator = np.random.default_rng(seed)
    question_of = np.repeat(np.arange(questions), 6)
    scores = generator.normal(-1, 1.5, len(question_of))
    labels = [one.sample(1, generator)[0] for one in TRUE.label_distributions(scores, question_of)]
    return LabelledScores(scale * scores + shift, np.concatenate(labels).astype(int), question_of)


def test_a_hundred_questions_mend_probabilities_on_another_scale():
    others, before = simulated(1500, 1, 3.0, 8.0), JointModel(INITIAL)
    model = ScoreModel.fit(simulated(100, 0, 3.0, 8.0), INITIAL)
    old = ProbabilityQuality.of(before.posterior(others.scores, others.question_of), others)
    new = ProbabilityQuality.of(model.posterior(others.scores, others.question_of), others)
    assert old.ece > 0.1 and new.ece < 0.05
    assert old.none_ece > 0.15 and new.none_ece < 0.1 and new.log_loss < old.log_loss


def test_cross_validation_foretells_the_quality_on_other_questions():
    found = cross_validated(simulated(400, 2)).quality
    model, others = ScoreModel.fit(simulated(400, 2)), simulated(1500, 3)
    new = ProbabilityQuality.of(model.posterior(others.scores, others.question_of), others)
    assert found.log_loss == pytest.approx(new.log_loss, abs=0.03)
    assert found.mean_probability_none == pytest.approx(new.mean_probability_none, abs=0.07)


def test_sets_cover_other_questions_as_stated():
    held_out, others = cross_validated(simulated(300, 4)).held_out, cross_validated(simulated(600, 5)).held_out
    for coverage in (0.8, 0.9):
        assert np.mean(np.array(others.above) <= held_out.set_limit(coverage)) == pytest.approx(coverage, abs=0.06)
        assert np.mean(np.array(others.none) >= held_out.none_limit(coverage)) == pytest.approx(coverage, abs=0.06)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([0, 1] * 4, "4 labelled questions are too few"), ([0, 0] * 12, "is wrong"), ([1] * 24, "is right")],
)
def test_questions_that_teach_nothing_are_refused(labels, message):
    data = LabelledScores(np.zeros(len(labels)), np.array(labels), np.arange(len(labels)) // 2)
    with pytest.raises(InputError, match=message):
        data.check()


@pytest.fixture(scope="module")
def ranker() -> AnswerRanker:
    return AnswerRanker("overlap", vectors="random").fit(made_up(60, 0), dev=made_up(20, 1))


def without_answers(questions: QuestionAnswers, every: int) -> QuestionAnswers:
    """Every so-manieth question loses its right answers."""
    kept = [
        one._replace(candidates=tuple(two for two in one.candidates if not two.label)) if n % every == 0 else one
        for n, one in enumerate(questions.questions)
    ]
    return QuestionAnswers("other", "all", (), tuple(kept))


def test_a_calibrated_ranker_keeps_its_order_and_is_loaded_again(ranker, tmp_path):
    other, asked = without_answers(made_up(40, 2), 2), made_up(10, 3)
    before = [[one.place for one in ranking.candidates] for ranking in ranker.rank_many(asked)]
    ranker.calibrate(other)
    report = ranker.fitted_.calibrated
    assert (report.corpus, report.n_questions, report.n_without_answer) == ("other", 40, 20)
    assert report.after.log_loss < report.before.log_loss
    assert report.after.mean_probability_none == pytest.approx(0.5, abs=0.1)
    rankings = ranker.rank_many(asked)
    assert [[one.place for one in ranking.candidates] for ranking in rankings] == before
    ranker.save(tmp_path / "model")
    loaded = AnswerRanker.load(tmp_path / "model")
    assert loaded.fitted_.calibrated == report and loaded.rank_many(asked) == rankings
    assert loaded.answer_set(rankings[0], 0.8) == ranker.answer_set(rankings[0], 0.8)
    assert (
        1 <= len(ranker.answer_set(rankings[0], 0.8).candidates) <= len(ranker.answer_set(rankings[0], 0.9).candidates)
    )
