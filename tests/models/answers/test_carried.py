"""What carries over to other text: list-relative features, mixed training lists, BM25, the linear ranking."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_up_questions import corpus, labelled, made_up, question
from scipy.optimize import check_grad, minimize

from varitext.answers.index import CandidateIndex
from varitext.answers.ranker import AnswerRanker
from varitext.answers.training_data import DRAWN, FOUND, OWN, learn_from, mixed_lists
from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import canonical_order
from varitext.models.answers.bm25 import bm25_share
from varitext.models.answers.compare_aggregate import PRIOR_STRENGTH
from varitext.models.answers.features.carried import CARRIED, PRIOR, carried_features, new_words
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.scorer import listwise_weights
from varitext.text import Vocabulary

NOTHING = Overlap(Vocabulary(()), np.zeros(0, np.int64), 0)


def columns_of(one, overlap=NOTHING):
    return [dict(zip(CARRIED, row, strict=True)) for row in carried_features(corpus(one), overlap).values]


def test_shares_are_relative_to_the_question_and_to_the_best_of_the_list():
    overlap = Overlap(Vocabulary(("king", "old")), np.array([2, 4]), 9)
    king, old, who = math.log(10 / 3), math.log(10 / 5), math.log(10)
    first, second, third = columns_of(question("who king old ?", "king old", "old old", "lake ?"), overlap)
    assert first["coverage"] == pytest.approx((king + old) / (king + old + who))
    assert second["coverage_of_best"] == pytest.approx(old / (king + old))
    assert first["coverage_of_best"] == first["saturated_of_best"] == 1
    assert third["coverage"] == third["saturated_of_best"] == 0
    assert 1 < second["saturated"] / second["coverage"] < 2.2  # twice the same word counts more, but not twice


def test_words_count_by_how_rare_they_are_in_the_list_and_in_any_form():
    rows = columns_of(question("novels about lakes", "a novel", "the lake", "a novel", "a novel about nothing"))
    assert rows[1]["list_coverage"] > rows[0]["list_coverage"] == rows[2]["list_coverage"] > 0
    assert sum(row["list_coverage"] for row in rows[:2]) == pytest.approx(1)  # stop words do not count


@pytest.mark.parametrize(
    ("asked", "right", "wrong", "column"),
    [
        ("when did Bell die ?", "Bell died in 1922", "Bell died rich", "no_date"),
        ("when did Bell die ?", "Bell died in May", "Bell may have died of 600 causes", "no_date"),
        ("how many moons has Mars ?", "Mars has 2", "Mars has moons", "no_number"),
        ("who wrote Emma ?", "Emma is by Jane Austen", "Emma is long", "no_name"),
        ("who ruled France in 1963 ?", "Gaulle ruled in 1963", "Gaulle ruled in 1961", "year_missing"),
        ("where was Bell born ?", "Bell was born in Edinburgh", "Gray was born in Ohio", "name_missing"),
        ("what is rain ?", "rain is water", "what rain is", "no_new_word"),
        ("what is rain ?", "rain is water", "is rain water?", "is_question"),
        ("what is rain ?", "rain is water", "rain is not snow", "negation"),
    ],
)
def test_what_an_answer_should_have(asked, right, wrong, column):
    first, second = columns_of(question(asked, right, wrong))
    assert first[column] == 0 < second[column]


def test_numbers_of_the_question_are_told_apart():
    texts = ["Obama was born in 1691", "Obama was born in 1961"]
    for asked, best in (("who was born in 1961 ?", 1), ("who was born in 1691 ?", 0)):
        assert AnswerRanker("bm25").rank(asked, texts).candidates[0].place == best


def test_new_words_are_content_words_in_no_form_of_the_question():
    said = question("who wrote novels", "He was writing a novel about Dublin .")
    (found,) = new_words(said)
    assert [word for word, new in zip(said.candidates[0].words, found, strict=True) if new] == ["writing", "Dublin"]


# The linear ranking


def by_hand(columns, labels, groups, prior, strength):
    """The loss, question by question."""
    scale = columns.std(0)

    def loss(weights):
        total = 0.0
        for one in np.unique(groups):
            rows = groups == one
            scores = columns[rows] @ weights
            log_share = scores - np.log(np.exp(scores).sum())
            total -= (labels[rows] * log_share).sum() / labels[rows].sum()
        return total / (groups.max() + 1) + strength * (((weights - prior) * scale) ** 2).sum()

    return loss


def test_listwise_weights_are_at_the_minimum():
    made, generator = made_up(30, 0), np.random.default_rng(0)
    columns = generator.normal(size=(made.n_pairs, 3)) + made.labels[:, None] * [1.0, -0.5, 0.0]
    prior = np.array([0.3, 0.0, 0.1])
    found = listwise_weights(columns, made.labels, made.groups, prior, 0.01)
    loss = by_hand(columns, made.labels, made.groups, prior, 0.01)
    assert loss(found) == pytest.approx(minimize(loss, prior).fun, abs=1e-6)
    assert found[0] > 0.5 and found[1] < -0.2
    assert check_grad(loss, lambda at: np.zeros(3), found) < 1e-3
    moved = listwise_weights(columns, made.labels, made.groups, prior, 1e6)
    np.testing.assert_allclose(moved, prior, atol=1e-3)  # nothing to learn from so few


def test_questions_that_tell_nothing_leave_the_prior():
    alike = corpus(labelled("1", "a b", ("a", 1), ("b", 1)), labelled("2", "a b", ("a", 0), ("b", 0)))
    np.testing.assert_array_equal(
        listwise_weights(np.eye(4), alike.labels, alike.groups, np.arange(4.0), 0.1), range(4)
    )


def test_prediction_adds_the_linear_ranking_and_training_does_not():
    ranker = AnswerRanker("compare", vectors="random", epochs=1, threads=1).fit(made_up(40, 0), made_up(10, 1))
    network, one = ranker.fitted_.network, made_up(4, 2)
    batch = PairBatches(one, ranker.fitted_.vocabulary, inputs=ranker.fitted_.first_stage.inputs(one)).batch(range(4))
    with torch.no_grad():
        found, encoding = [], network.encode(batch)
        for weights in (network.linear.weights.clone(), torch.zeros(len(PRIOR))):
            network.linear.weights.copy_(weights)
            found.append(network.logits(torch.zeros(1, 20, 0), encoding)[0].numpy())
    columns = carried_features(one, ranker.fitted_.overlap).values
    weights = listwise_weights(*_training_columns(ranker), PRIOR, PRIOR_STRENGTH)
    np.testing.assert_allclose(found[0] - found[1], columns @ weights, atol=1e-4)
    network.train().linear.weights.fill_(1e6)
    assert network.logits(torch.zeros(1, 20, 0), network.encode(batch)).abs().max() < 1e3


def _training_columns(ranker):
    data = learn_from(ranker, *(canonical_order(one).question_answers for one in (made_up(40, 0), made_up(10, 1))))
    every = replace(data.train, questions=data.train.questions + data.mixed)
    return carried_features(every, ranker.fitted_.overlap).values, every.labels, every.groups


# Lists with candidates of other questions


def test_a_mixed_list_has_its_right_answers_and_candidates_of_others():
    train = made_up(60, 0)
    mixed = mixed_lists(train, 0)
    assert len(mixed) == train.n_questions and mixed_lists(train, 0) == mixed != mixed_lists(train, 1)
    for own, one in zip(train.questions, mixed, strict=True):
        right = {candidate.words for candidate in own.candidates if candidate.label}
        others = [candidate for candidate in one.candidates if candidate.words not in {c.words for c in own.candidates}]
        assert {candidate.words for candidate in one.candidates if candidate.label} == right
        assert 0 < len(others) <= FOUND + DRAWN and not any(candidate.label for candidate in others)
        assert len(one.candidates) <= len(right) + OWN + FOUND + DRAWN
        assert all(candidate.position is None for candidate in one.candidates)


# BM25 without a fit


def test_bm25_takes_frequencies_from_the_index_or_else_from_the_list():
    asked = corpus(question("old lake", "old", "lake", "old king"))
    alone = bm25_share(asked, NOTHING)
    assert alone[1] > alone[0] > alone[2] > 0  # `lake` is rarer here
    texts = ["old", "lake", "old king", *(f"lake {number}" for number in range(20))]
    ranking = AnswerRanker("bm25").search("old lake", CandidateIndex(texts))
    assert ranking.candidates[0].text == "old"  # `old` is rarer there
    assert all(one.known for one in ranking.candidates)


def test_bm25_ranks_as_the_index_finds():
    words = np.random.default_rng(0).choice(["a1", "b1", "c1", "d1", "e1", "f1"], (40, 6))
    index = CandidateIndex([" ".join(row) for row in words])
    found = index.search("a1 b1 c1", 40).tolist()
    ranking = AnswerRanker("bm25").search("a1 b1 c1", index, 40)
    assert sorted(found) == sorted(one.place for one in ranking.candidates)
    assert ranking.candidates[0].place == found[0]
