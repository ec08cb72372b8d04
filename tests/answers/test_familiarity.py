"""Questions unlike those of the fit: false alarms, reasons, wider probabilities, and the record in the model folder."""

import dataclasses
import json

import numpy as np
import pytest
from command_line import varitext
from made_up_questions import corpus, labelled, made_up
from numpy.testing import assert_allclose

from varitext.answers.familiarity import MIN_QUESTIONS, STATISTICS, Familiarity, list_statistics
from varitext.answers.joint import INITIAL, JointModel
from varitext.answers.prediction import Prediction
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import ranking_posterior
from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.overlap import Overlap
from varitext.text import Vocabulary

NUMBER = len(STATISTICS)


def drawn(number: int, seed: int) -> np.ndarray:
    """Tails of every kind: normal, heavy, skewed and discrete ones, and a constant."""
    generator = np.random.default_rng(seed)
    columns = [generator.normal(size=number), generator.standard_t(3, number), generator.exponential(size=number)]
    columns += [(generator.random(number) < 0.99).astype(float), np.ones(number)]
    return np.column_stack([*columns, generator.normal(size=(number, NUMBER - len(columns)))])


@pytest.mark.parametrize(("number", "most"), [(60, 0.08), (1500, 0.035)])
def test_few_false_alarms_on_questions_of_the_same_kind(number, most):
    rates = []
    for seed in range(10):
        known = Familiarity.fit(drawn(number, seed), np.ones(number))
        rates.append(np.mean([why is not None for why in known.unfamiliar(drawn(2000, 100 + seed))]))
    assert 0.005 < np.mean(rates) < most


def test_other_questions_are_noticed_with_the_statistic_as_the_reason():
    known = Familiarity.fit(drawn(400, 0), np.ones(400))
    for column in (0, 1, 2, 5):
        other = np.median(drawn(400, 0), 0)
        other[column] += 40
        (why,) = known.unfamiliar(other[None])
        assert why.startswith(STATISTICS[column].name + ": ")
    assert known.unfamiliar(np.median(drawn(400, 0), 0)[None]) == [None]


def test_weights_count_as_copies():
    values, often = drawn(200, 3), np.random.default_rng(0).integers(1, 4, 200)
    weighted = Familiarity._of_tails(values, often, 1.0)
    copied = Familiarity._of_tails(np.repeat(values, often, 0), np.ones(often.sum()), 1.0)
    assert weighted.low == copied.low and weighted.high == copied.high
    assert_allclose(weighted.above, copied.above)


def test_too_few_questions_give_no_record():
    assert Familiarity.fit(drawn(MIN_QUESTIONS - 1, 0), np.ones(MIN_QUESTIONS - 1)) is None


def test_the_statistics_by_hand():
    asked = corpus(labelled("1", "who wrote Emma ?", ("Austen wrote Emma", 1), ("Austen wrote letters to her", 0)))
    trained = Overlap(Vocabulary(("austen", "wrote")), np.array([3, 0]), 5)
    (found,) = list_statistics(asked, trained, np.array([-1.0, 0.5]))
    # austen is known of austen, wrote, emma, austen, wrote, letters; two of three words are shared
    by_hand = [(np.log(4) + np.log(6)) / 2, np.log(5), 1, 2 / 6, 2 / 3, 0.5]
    assert_allclose(found, by_hand)


def test_a_widened_posterior_is_a_mixture_with_chance():
    probability = np.array([0.7, 0.1, 0.1, 0.0, 0.6, 0.2])
    prediction = Prediction(probability, probability[None], copy_of=np.array([0, 1, 1, 3, 4, 5]))
    asked = corpus(
        labelled("1", "who", ("a b", 0), ("c d", 0), ("the c d", 0), ("e", 0)),
        labelled("2", "where", ("a", 0), ("b", 0)),
    )
    joint = JointModel(INITIAL)
    given, found = (ranking_posterior(joint, prediction, asked, unfamiliar) for unfamiliar in ((), ("why", None)))
    chance, shared = np.array([0.25, 0.25, 0.25, 0]), np.array([0.25, 0.125, 0.125, 0])  # copies are one candidate
    assert_allclose(found.right[:4], given.right[:4] / 2 + chance / 2)
    assert_allclose(found.best[:4], given.best[:4] / 2 + shared / 2)
    assert_allclose(found.none, [given.none[0] / 2 + 0.25, given.none[1]])
    assert_allclose(found.best[:4].sum() + found.none[0], 1)
    assert_allclose(found.right[4:], given.right[4:])
    assert (found.intervals.high >= given.intervals.high).all() and found.intervals.high[0] >= 2
    assert found.given_answer().unfamiliar == ("why", None)


@pytest.fixture(scope="module")
def fitted() -> AnswerRanker:
    return AnswerRanker("overlap", vectors="random").fit(made_up(60, 0), dev=made_up(60, 1))


def test_a_ranking_of_other_text_is_wider_in_the_same_order(fitted):
    usual = ["the old king", "a river was near", "a day and a year", "of the lake", "the queen was old"]
    assert fitted.rank("who was the", usual).unfamiliar is None
    passages = [f"{one} and the old city " + "of a near century " * 30 for one in usual]
    other = fitted.rank("who was the", passages)
    assert other.unfamiliar.startswith("words per candidate: 12")
    sure = AnswerRanker("overlap").set_params(**fitted.get_params())
    sure._take(dataclasses.replace(fitted.fitted_, familiarity=None))
    plain = sure.rank("who was the", passages)
    assert [one.place for one in plain.candidates] == [one.place for one in other.candidates]
    assert plain.unfamiliar is None
    assert_allclose(other.probability_none, (plain.probability_none + 0.5) / 2)
    assert_allclose(sum(one.probability_best for one in other.candidates) + other.probability_none, 1)


def test_the_model_folder_keeps_it(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert AnswerRanker.load(tmp_path / "model").fitted_.familiarity == fitted.fitted_.familiarity is not None


def with_long_candidates(questions: QuestionAnswers) -> QuestionAnswers:
    longer = (
        one._replace(candidates=tuple(two._replace(words=two.words * 12) for two in one.candidates))
        for one in questions.questions
    )
    return dataclasses.replace(questions, questions=tuple(longer))


def test_an_evaluation_counts_unfamiliar_questions(fitted):
    alike, other = made_up(20, 5), with_long_candidates(made_up(20, 6))
    assert fitted.evaluate(alike, baselines=False).n_unfamiliar <= 2
    assert fitted.evaluate(other, baselines=False).as_dict()["n_unfamiliar"] == 20


def test_calibration_makes_its_questions_familiar(fitted):
    other = with_long_candidates(made_up(50, 7))
    calibrated = AnswerRanker("overlap").set_params(**fitted.get_params())
    calibrated._take(fitted.fitted_)
    calibrated.calibrate(other)
    assert calibrated.evaluate(with_long_candidates(made_up(20, 8)), baselines=False).n_unfamiliar <= 3
    assert calibrated.evaluate(made_up(20, 9), baselines=False).n_unfamiliar == 20


def test_the_command_line_says_so_on_standard_error(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    (tmp_path / "sentences.txt").write_text("the old king\na river was near\na day and a year\n")
    asked = ("rank", tmp_path / "model", "--candidates", tmp_path / "sentences.txt", "--json", "--question")
    assert varitext(*asked, "who was the").err == ""
    outcome = varitext(*asked, "king of the old lake near the river and the city of the queen")
    assert json.loads(outcome.out)["unfamiliar"].startswith("words in the question: 14")
    assert outcome.err.startswith("note: this question and its candidates look unlike those")
    assert f"`varitext calibrate {tmp_path}/model your-questions.csv`" in outcome.err
