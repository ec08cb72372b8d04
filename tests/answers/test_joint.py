"""The joint picture of a question's candidates, against the enumeration of every vector of labels."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from varitext.answers.joint import JointModel, abstention_threshold

MODEL = JointModel((0.8, 0.4, 0.3, -0.7, -1.5, 0.6, 0.2, 0.9))
SCORES = np.array([0.3, -1.2, 2.0, 0.1])


def by_definition(model: JointModel, scores: np.ndarray, labels: tuple[int, ...]) -> float:
    """P(labels), term by term from the formula."""
    a, b, d, of_list, *also = model.parameters
    weights = np.exp(np.append(a * scores, b + d * np.log(len(scores))))
    main = weights / weights.sum()
    total = main[-1] * (sum(labels) == 0)
    kinds = ((1 - expit(of_list), *also[:2]), (expit(of_list), *also[2:]))
    for i in range(len(scores)):
        for share, r, t in kinds:
            others = [j for j in range(len(scores)) if j != i]
            factors = [expit(r + t * scores[j]) if labels[j] else 1 - expit(r + t * scores[j]) for j in others]
            total += main[i] * (labels[i] == 1) * share * np.prod(factors)
    return float(total)


def every_vector(n: int):
    return list(itertools.product((0, 1), repeat=n))


def test_likelihood_is_the_formula_and_sums_to_one():
    vectors = every_vector(4)
    found = [MODEL.log_likelihood(SCORES, np.array(one), np.zeros(4, int))[0] for one in vectors]
    np.testing.assert_allclose(np.exp(found), [by_definition(MODEL, SCORES, one) for one in vectors], rtol=1e-10)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


def test_beliefs_are_those_of_the_enumeration():
    vectors = every_vector(4)
    share = np.array([by_definition(MODEL, SCORES, one) for one in vectors])
    beliefs, labels = MODEL.beliefs(SCORES), np.array(vectors)
    np.testing.assert_allclose(beliefs.right, share @ labels, rtol=1e-10)
    assert beliefs.none == pytest.approx(share[labels.sum(1) == 0].sum())
    order = np.argsort(-SCORES)
    first = [order[np.flatnonzero(one[order])[0]] if one.any() else -1 for one in labels]
    np.testing.assert_allclose(beliefs.best, [share[np.array(first) == i].sum() for i in range(4)], rtol=1e-10)
    assert beliefs.best.sum() + beliefs.none == pytest.approx(1)


def test_samples_have_the_shares_of_the_model():
    draws = MODEL.sample(SCORES, 100_000, np.random.default_rng(0))
    beliefs = MODEL.beliefs(SCORES)
    np.testing.assert_allclose(draws.mean(0), beliefs.right, atol=0.01)
    assert (draws.sum(1) == 0).mean() == pytest.approx(beliefs.none, abs=0.01)


def test_fit_finds_the_model_that_drew_the_labels():
    generator = np.random.default_rng(1)
    scores = [generator.normal(0, 1.5, int(generator.integers(2, 9))) for _ in range(1500)]
    labels = [MODEL.sample(one, 1, generator)[0] for one in scores]
    question_of = np.repeat(np.arange(len(scores)), [len(one) for one in scores])
    pairs = np.concatenate(scores), np.concatenate(labels), question_of
    fitted = JointModel.fit(*pairs)
    assert fitted.log_likelihood(*pairs).mean() >= MODEL.log_likelihood(*pairs).mean() - 1e-3
    errors = [np.abs(fitted.beliefs(one).right - MODEL.beliefs(one).right).max() for one in scores[:200]]
    assert np.mean(errors) < 0.04


def test_threshold_for_a_precision():
    top, right = [0.9, 0.8, 0.7, 0.6, 0.6], [True, True, False, True, True]
    assert abstention_threshold(top, right, 1.0) == 0.8
    assert abstention_threshold(top, right, 0.8) == 0.6
    assert abstention_threshold([0.9], [False], 0.5) is None
