"""The mixture whose components are topics, against mixtures that are known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from varitext.documents.mixture import STARTS, Directions, Mixture, Seeds, choose_number, directions_of, fit_mixture
from varitext.documents.posterior import Posterior


def drawn(components: int, documents: int = 600, width: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Directions around axes of the space, and which axis each is from."""
    generator = np.random.default_rng(seed)
    chosen = generator.integers(components, size=documents)
    points = np.eye(width)[chosen] + 0.1 * generator.standard_normal((documents, width))
    return points / np.linalg.norm(points, axis=1, keepdims=True), chosen


def test_a_known_mixture_is_found_again():
    unit, chosen = drawn(4)
    mixture = fit_mixture(unit, 4, seed=0, starts=4)
    found = mixture.memberships(Directions(unit, np.zeros(len(unit)))).argmax(1)
    assert adjusted_rand_score(chosen, found) == pytest.approx(1)
    np.testing.assert_allclose(np.sort(mixture.weights)[::-1], np.sort(np.bincount(chosen) / 600)[::-1], atol=0.01)
    for centre in mixture.centres:
        assert np.abs(centre).max() > 0.9
    within = ((unit - mixture.centres[found]) ** 2).mean()
    np.testing.assert_allclose(mixture.variances.mean(), within, rtol=0.05)


def test_the_best_of_several_starts_finds_what_one_misses():
    """A single k-means++ start puts two centres on one of sixteen clusters now and then, and none on another."""
    unit, chosen = drawn(16, width=16)
    everywhere = Directions(unit, np.zeros(len(unit)))
    agreement = {
        starts: [
            adjusted_rand_score(chosen, fit_mixture(unit, 16, seed, starts=starts).memberships(everywhere).argmax(1))
            for seed in range(8)
        ]
        for starts in (1, STARTS)
    }
    assert np.mean(agreement[STARTS]) > np.mean(agreement[1]) and min(agreement[STARTS]) > 0.99


def test_memberships_are_bayes_rule_with_the_spread_added():
    mixture = Mixture(np.eye(3), np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.3, 0.2]))
    unit, variance = np.array([[0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]), np.array([0.0, 0.5])
    joint = np.array(
        [
            [
                weight * multivariate_normal.pdf(one, centre, (component + spread) * np.eye(3))
                for centre, component, weight in zip(*mixture, strict=True)
            ]
            for one, spread in zip(unit, variance, strict=True)
        ]
    )
    found = mixture.memberships(Directions(unit, variance))
    np.testing.assert_allclose(found, joint / joint.sum(1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(mixture.log_likelihood(unit[:1]), np.log(joint[:1].sum(1)), rtol=1e-9)


def test_memberships_sum_to_one_and_do_not_depend_on_order_or_company():
    unit, _ = drawn(5)
    documents = Directions(unit, np.random.default_rng(1).random(len(unit)))
    mixture, order = fit_mixture(unit, 5, seed=0), np.random.default_rng(2).permutation(len(unit))
    whole = mixture.memberships(documents)
    np.testing.assert_allclose(whole.sum(1), 1, rtol=1e-9)
    again = mixture.memberships(Directions(unit[order], documents.variance[order]))
    np.testing.assert_allclose(again, whole[order], rtol=1e-9)
    np.testing.assert_allclose(mixture.memberships(Directions(unit[:1], documents.variance[:1])), whole[:1], rtol=1e-9)


def test_the_less_is_known_of_a_document_the_more_topics_it_belongs_to():
    mixture = Mixture(np.eye(3), np.full(3, 0.05), np.array([0.5, 0.3, 0.2]))
    mean = np.array([[2.0, 0, 0]] * 3 + [[0.0, 0, 0]])
    std = np.array([0.0, 1.0, 9.0, 1.0])[:, None] * np.ones(3)
    found = mixture.memberships(directions_of(Posterior(mean, std)))
    assert found[0, 0] > found[1, 0] > found[2, 0] > 0.5
    np.testing.assert_allclose(found[3], mixture.weights)  # no direction at all: the training documents' shares


def test_the_same_seed_gives_the_same_mixture_and_the_largest_comes_first():
    unit, _ = drawn(4)
    first, second = (fit_mixture(unit, 6, seed=3) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert list(first.weights) == sorted(first.weights, reverse=True)


def test_seeded_components_come_first_and_stay_near_their_seeds():
    unit, chosen = drawn(4)
    seeds = Seeds(np.eye(8)[[2, 6]], weight=30.0)  # an axis that has documents, and one that has none
    mixture = fit_mixture(unit, 5, seed=0, seeds=seeds)
    np.testing.assert_allclose(mixture.centres[0], np.eye(8)[2], atol=0.15)
    assert mixture.centres[1].argmax() == 6
    assert mixture.weights[0] == pytest.approx((chosen == 2).mean(), abs=0.05) and mixture.weights[1] < 0.05


@pytest.mark.parametrize("components", [1, 3, 8])
def test_held_out_documents_choose_the_number(components):
    unit, _ = drawn(components, documents=900)
    choice = choose_number(unit, None, seed=0)
    fewest = {1: 2, 3: 3, 8: 8}[components]  # the search begins at two
    assert fewest <= choice.number <= 2 * fewest and "held-out" in choice.how
    assert [number for number, _ in choice.log_likelihoods] == sorted(number for number, _ in choice.log_likelihoods)


def test_more_topics_than_places_are_not_made():
    with pytest.warns(UserWarning, match="50 topics requested, but only 2 documents are distinct; using 2"):
        assert choose_number(np.eye(2), 50, seed=0).number == 2
    assert choose_number(np.ones((30, 1)), None, seed=0).number == 1
    assert fit_mixture(np.ones((30, 1)), 1, seed=0).weights == pytest.approx(1)


def test_copies_are_held_out_together():
    """Every place has fifty copies: were they apart, a component on each would be best."""
    unit, _ = drawn(4, documents=60)
    assert choose_number(np.repeat(unit, 50, axis=0), None, seed=0).number <= 6
    few = choose_number(np.repeat(np.eye(8)[:3], 50, axis=0), None, seed=0)
    assert few.number == 3 and "too few distinct documents" in few.how
