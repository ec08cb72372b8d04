"""Copies and near-copies of a candidate: what counts as one, and that they share one probability."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_questions import made_up
from scipy.special import expit

from varitext.answers.calibrated import CalibratedRanker
from varitext.answers.copies import copies_of
from varitext.answers.input import as_corpus
from varitext.answers.joint import JointModel
from varitext.answers.prediction import Prediction
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import ranking_posterior

MODEL = JointModel((0.8, 0.4, 0.3, -0.7, -1.5, 0.6, 0.2, 0.9, 0.6))
SENTENCE = "Barack Obama was born in Honolulu , Hawaii , on August 4 , 1961"


def are_copies(first: str, second: str) -> bool:
    found = copies_of(as_corpus("who", [first, second], None))
    return bool(found[0] == found[1])


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (SENTENCE, True),
        (f"{SENTENCE.upper()}!!", True),
        (f"So, {SENTENCE}.", True),
        (SENTENCE.replace("Honolulu", "'Honolulu'"), True),
        (SENTENCE.replace("Barack ", ""), True),
        (SENTENCE.replace("1961", "1691"), False),
        (SENTENCE.replace(" , 1961", ""), False),
        (SENTENCE.replace("was born", "was not born"), False),
        (SENTENCE.replace("Honolulu", "Chicago"), False),
        ("Obama was born in Hawaii", False),
        ("Honolulu , Hawaii , was born in Barack Obama on August 4 , 1961", False),
    ],
)
def test_what_is_a_copy(other, same):
    assert are_copies(SENTENCE, other) is are_copies(other, SENTENCE) is same


@given(st.lists(st.lists(st.sampled_from("abcd1"), max_size=7).map(" ".join), min_size=1, max_size=8))
def test_groups_are_those_that_comparing_all_finds(texts):
    """The longest of the others stands for a candidate, if there is one; equal ones have the same."""
    found = copies_of(as_corpus("who", texts, None))
    assert (found[found] == found).all()
    for one, other in itertools.combinations(range(len(texts)), 2):
        words = [text.replace("a", "").split() for text in (texts[one], texts[other])]
        if words[0] == words[1] and words[0]:
            assert found[one] == found[other]
        if found[one] == found[other]:
            numbers = [sorted(word for word in each if word == "1") for each in words]
            assert numbers[0] == numbers[1]


@pytest.mark.parametrize("copies", [1, 2, 10])
def test_copies_share_what_one_would_have(copies):
    scores = np.array([1.5, 0.5, -1.0])
    alone = ranking_posterior(MODEL, _predicted(scores), as_corpus("who", ["x y", "u v", "w"], None))
    corpus = as_corpus("who", ["x y"] * copies + ["u v", "w"], None)
    together = ranking_posterior(MODEL, _predicted(scores).with_copies(copies_of(corpus)), corpus)
    np.testing.assert_allclose(together.right[copies - 1 :], alone.right)
    np.testing.assert_allclose(together.right[:copies], alone.right[0])
    np.testing.assert_allclose(together.best[:copies].sum(), alone.best[0])
    assert together.none == pytest.approx(alone.none) and together.best.sum() + together.none[0] == pytest.approx(1)
    assert (together.intervals.high[:copies] <= together.intervals.high[-2]).all()


def test_scores_from_elsewhere_are_shared_by_copies():
    generator = np.random.default_rng(0)
    scores, questions = generator.normal(0, 1, 200), np.repeat(np.arange(40), 5)
    labels = (generator.random(200) < expit(2 * scores - 1)).astype(int)
    ranker = CalibratedRanker().fit_scores(scores, labels, questions)
    alone = ranker.rank_scores("who", ["x y", "u v"], [2.0, 0.0])
    copied = ranker.rank_scores("who", ["X Y !", "x y", "u v"], [1.0, 2.0, 0.0])
    assert {one.probability for one in copied.candidates} == {one.probability for one in alone.candidates}
    assert [one.same_as for one in copied.candidates] == [None, 0, None]


def _predicted(scores: np.ndarray) -> Prediction:
    return Prediction(expit(scores), expit(scores)[None])


@pytest.mark.parametrize("model", ["bm25", "overlap"])
def test_a_ranking_names_copies_and_is_as_without_them(model):
    right, others = "Joyce wrote Ulysses in Paris in seven years", ["Dublin is a city in Ireland", "she wrote a novel"]
    ranker = AnswerRanker(model, vectors="random")
    ranker = ranker if model == "bm25" else ranker.fit(made_up(30, 0), made_up(10, 1))
    alone = ranker.rank("who wrote Ulysses", [*others, right])
    found = ranker.rank("who wrote Ulysses", [*others, right, f"{right}!", right.upper()])
    copies = {one.place: one for one in found.candidates if one.place > 1}
    assert [copies[place].same_as for place in (2, 3, 4)] == [None, 2, 2] and found.candidates[-1].same_as is None
    assert found.probability_none == alone.probability_none
    assert {one.probability for one in found.candidates} == {one.probability for one in alone.candidates}
    assert {one.rank for one in copies.values()} == {1} and {one.window for one in copies.values()} == {None}
    assert sum(one.probability_best for one in copies.values()) == pytest.approx(alone.candidates[0].probability_best)
