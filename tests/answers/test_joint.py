"""The joint model of a question's candidates, against the enumeration of every vector of labels."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import rankdata

from varitext.answers.input import as_corpus
from varitext.answers.joint import (
    FULL_LENGTHS,
    SLOPES,
    JointModel,
    ParameterPrior,
    abstention_threshold,
    question_weights,
)
from varitext.answers.prediction import Prediction
from varitext.answers.ranking import ranking_posterior
from varitext.evaluation.posterior_ranks import known_ranks

MODEL = JointModel((0.8, 0.4, 0.3, -0.7, -1.5, 0.6, 0.2, 0.9, 0.6))
LONGER = replace(MODEL, typical_length=1.0)  # so that four candidates are a long list
SCORES = np.array([0.3, -1.2, 2.0, 0.1])


def by_definition(model: JointModel, scores: np.ndarray, labels: tuple[int, ...]) -> float:
    """P(labels), term by term from the formula."""
    a, b, d, of_list, *also, e = model.parameters
    weights = np.minimum(1, (FULL_LENGTHS * model.typical_length / rankdata(-scores)) ** 2)
    masses = weights * np.exp(a * scores)
    none = expit(b + d * np.log(weights.sum()) - e * np.log(masses.sum()))
    main = (1 - none) * masses / masses.sum()
    total = none * (sum(labels) == 0)
    kinds = ((1 - expit(of_list), *also[:2]), (expit(of_list), *also[2:]))
    for i in range(len(scores)):
        for share, r, t in kinds:
            others = [j for j in range(len(scores)) if j != i]
            right = expit(r + t * scores + np.log(weights))
            factors = [right[j] if labels[j] else 1 - right[j] for j in others]
            total += main[i] * (labels[i] == 1) * share * np.prod(factors)
    return float(total)


def every_vector(n: int):
    return list(itertools.product((0, 1), repeat=n))


def drawn(scores, draws, generator):
    return MODEL.label_distributions(scores, np.zeros(len(scores), int))[0].sample(draws, generator)


@pytest.mark.parametrize("model", [MODEL, LONGER])
def test_likelihood_is_the_formula_and_sums_to_one(model):
    vectors = every_vector(4)
    found = [model.log_likelihood(SCORES, np.array(one), np.zeros(4, int))[0] for one in vectors]
    np.testing.assert_allclose(np.exp(found), [by_definition(model, SCORES, one) for one in vectors], rtol=1e-10)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


def test_with_equal_scales_none_is_one_more_candidate():
    first = JointModel((*MODEL.parameters[:-1], 1.0))
    masses = np.exp(np.append(0.8 * SCORES, 0.4 + 0.3 * np.log(4)))
    assert first.posterior(SCORES).none[0] == pytest.approx(masses[-1] / masses.sum())


@pytest.mark.parametrize("by_scores", [0.5, 1.0, 1.5])
def test_candidates_that_cannot_be_right_leave_none(by_scores):
    model = JointModel((*MODEL.parameters[:-1], by_scores))
    found = model.posterior(np.full(3, -np.inf))
    assert found.none[0] == pytest.approx(1) and not found.right.any() and np.isfinite(found.best).all()
    mixed = model.posterior(np.array([-np.inf, 0.5]))
    alone = model.posterior(np.array([0.5]))
    assert mixed.right[0] == 0 and 0 < mixed.right[1] < 1 and alone.none[0] != mixed.none[0]  # none grows with n


@pytest.mark.parametrize("model", [MODEL, LONGER])
def test_posteriors_are_those_of_the_enumeration(model):
    vectors = every_vector(4)
    share = np.array([by_definition(model, SCORES, one) for one in vectors])
    found, labels = model.posterior(SCORES), np.array(vectors)
    np.testing.assert_allclose(found.right, share @ labels, rtol=1e-10)
    assert found.none[0] == pytest.approx(share[labels.sum(1) == 0].sum())
    order = np.argsort(-SCORES)
    first = [order[np.flatnonzero(one[order])[0]] if one.any() else -1 for one in labels]
    np.testing.assert_allclose(found.best, [share[np.array(first) == i].sum() for i in range(4)], rtol=1e-10)
    assert found.best.sum() + found.none[0] == pytest.approx(1)


def test_a_long_list_of_poor_candidates_changes_little():
    """Two thousand more candidates, all worse: the first keeps its place, and no crowd is right beside it."""
    generator = np.random.default_rng(0)
    own, poor = generator.normal(0, 1, 9), generator.normal(-6, 1, 2000)
    short, long = MODEL.posterior(own), MODEL.posterior(np.append(own, poor))
    assert abs(long.none[0] - short.none[0]) < 0.15
    np.testing.assert_allclose(long.right[:9], short.right, atol=0.15)
    assert long.right[9:].sum() < 0.5 and long.best.sum() + long.none[0] == pytest.approx(1)
    order = np.argsort(-np.append(own, poor))
    assert (np.diff(long.right[order]) <= 0).all()
    corpus = as_corpus("who", [f"w{number}" for number in range(2009)], None)
    probability = expit(np.append(own, poor))
    intervals = ranking_posterior(MODEL, Prediction(probability, probability[None]), corpus).intervals
    assert intervals.low[own.argmax()] == 1 and intervals.high[own.argmax()] <= 9


def test_samples_have_the_shares_of_the_model():
    draws = drawn(SCORES, 100_000, np.random.default_rng(0))
    found = MODEL.posterior(SCORES)
    np.testing.assert_allclose(draws.mean(0), found.right, atol=0.01)
    assert (draws.sum(1) == 0).mean() == pytest.approx(found.none[0], abs=0.01)


def test_fit_finds_the_model_that_drew_the_labels():
    generator = np.random.default_rng(1)
    scores = [generator.normal(0, 1.5, int(generator.integers(2, 9))) for _ in range(1500)]
    labels = [drawn(one, 1, generator)[0] for one in scores]
    question_of = np.repeat(np.arange(len(scores)), [len(one) for one in scores])
    pairs = np.concatenate(scores), np.concatenate(labels), question_of
    fitted = JointModel.fit(*pairs)
    assert fitted.log_likelihood(*pairs).mean() >= MODEL.log_likelihood(*pairs).mean() - 1e-3
    errors = [np.abs(fitted.posterior(one).right - MODEL.posterior(one).right).max() for one in scores[:200]]
    assert np.mean(errors) < 0.04


def test_threshold_for_a_precision():
    top, right = [0.9, 0.8, 0.7, 0.6, 0.6], [True, True, False, True, True]
    assert abstention_threshold(top, right, 1.0) == 0.8
    assert abstention_threshold(top, right, 0.8) == 0.6
    assert abstention_threshold([0.9], [False], 0.5) is None


def test_many_questions_at_once_are_each_as_alone():
    generator = np.random.default_rng(3)
    parts = [generator.normal(0, 2, size) for size in (3, 1, 6)]
    together = MODEL.posterior(np.concatenate(parts), np.repeat([0, 1, 2], [3, 1, 6]))
    alone = [MODEL.posterior(one) for one in parts]
    for name in ("right", "best", "none"):
        expected = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_allclose(getattr(together, name), expected, rtol=1e-12)


def test_equal_candidates_share_and_hopeless_ones_have_nothing():
    found = MODEL.posterior(np.array([0.5, -np.inf, 0.5, -1.0]))
    assert found.best[0] == found.best[2] and found.right[1] == found.best[1] == 0
    assert found.best.sum() + found.none[0] == pytest.approx(1)
    hopeless = MODEL.posterior(np.full(3, -np.inf))
    assert hopeless.none[0] == 1 and not hopeless.right.any() and not hopeless.best.any()


def test_the_best_is_never_likelier_than_the_right_one():
    """Of the top candidate both are the same sum, taken in two ways: rounding must not tell them apart."""
    generator = np.random.default_rng(5)
    question_of = np.repeat(np.arange(400), 5)
    found = MODEL.posterior(generator.normal(0, 3, len(question_of)), question_of)
    assert (found.best <= found.right).all()


def test_the_order_of_the_ranking_is_that_of_the_probabilities():
    """Labels that fall with the score leave no slope below zero."""
    generator = np.random.default_rng(4)
    scores, question_of = generator.normal(0, 2, 300), np.repeat(np.arange(60), 5)
    labels = (generator.random(300) < expit(-1 - scores)).astype(int)
    fitted = JointModel.fit(scores, labels, question_of)
    assert all(fitted.parameters[place] > 0 for place in SLOPES)
    right = fitted.posterior(np.sort(scores[:50])).right
    assert (np.diff(right) > 0).all()


def test_rank_intervals_promise_what_the_enumeration_says():
    """Of the ranks under all labels with a right one; the share of draws is near to it."""
    vectors = np.array([one for one in every_vector(4) if any(one)])
    share = np.array([by_definition(MODEL, SCORES, tuple(one)) for one in vectors])
    ranks = np.array([known_ranks(expit(SCORES), one) for one in vectors])
    corpus = as_corpus("who", ["a", "b", "c", "d"], None)
    probability = expit(SCORES)
    found = ranking_posterior(MODEL, Prediction(probability, probability[None]), corpus)
    inside = (found.intervals.low <= ranks) & (ranks <= found.intervals.high)
    np.testing.assert_allclose(found.intervals.share, share @ inside / share.sum(), atol=0.04)
    given = found.given_answer()
    np.testing.assert_allclose(given.right, share @ vectors / share.sum(), rtol=1e-9)
    assert given.best.sum() == pytest.approx(1) and given.none is None


def test_questions_without_an_answer_weigh_as_many_as_there_are():
    answerable = np.array([True, True, False, False, False, False])
    weights = question_weights(answerable, 0.5)
    assert weights.tolist() == [1, 1, 0.5, 0.5, 0.5, 0.5]
    assert question_weights(answerable, None).tolist() == question_weights(answerable[:2], 0.5).tolist() + [1] * 4
    generator = np.random.default_rng(5)
    scores, question_of = generator.normal(0, 2, 400), np.repeat(np.arange(100), 4)
    labels = np.where(question_of < 50, scores == np.repeat(scores.reshape(100, 4).max(1), 4), 0).astype(int)
    models = [JointModel.fit(scores, labels, question_of, share) for share in (0.5, 0.9)]
    means = [model.posterior(scores, question_of).none.mean() for model in models]
    assert means[0] == pytest.approx(0.5, abs=0.03) and means[1] == pytest.approx(0.9, abs=0.05)


def test_a_narrow_prior_keeps_its_parameters_and_a_wide_one_leaves_them_to_the_questions():
    question_of, generator = np.repeat(np.arange(60), 5), np.random.default_rng(0)
    scores = generator.normal(size=300)
    labels = np.concatenate([drawn(scores[question_of == one], 1, generator)[0] for one in range(60)])
    start = (1.5, 2.0, 0.1, -1.0, -2.0, 0.4, -1.0, 0.5, 1.2)
    narrow = JointModel.fit(scores, labels, question_of, prior=ParameterPrior(start, (1e-4,) * 9))
    np.testing.assert_allclose(narrow.parameters, start, atol=1e-3)
    wide = JointModel.fit(scores, labels, question_of, prior=ParameterPrior(start))
    assert (
        wide.log_likelihood(scores, labels, question_of).sum()
        > narrow.log_likelihood(scores, labels, question_of).sum()
    )
