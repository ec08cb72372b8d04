"""Latent dimensions as ranked words, nearest neighbours, and the alignment of two models."""

import itertools

import numpy as np
import pytest

from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import (
    LatentSpace,
    alignment_record,
    dimension_likeness,
    rank_dimensions,
    words_towards,
)
from varitext.evaluation.neighbours import nearest

NAMES = ["a", "b", "c", "d", "e", "f"]


def test_topics_rank_frequent_words_by_weight_and_axes_by_kl():
    frequencies = np.array([0.4, 0.3, 0.12, 0.1, 0.05, 0.03])  # the first three reach 0.8 of the text
    vectors = np.array([[3.0, 0.0], [-2.0, 1.0], [1.0, -5.0], [2.0, 7.0], [99.0, 99.0], [-99.0, -99.0]])
    first, second = rank_dimensions(vectors, frequencies, NAMES, np.array([0.1, 0.7]), words=1)
    assert (first.number, second.number) == (1, 0) and (first.kl, second.kl) == (0.7, 0.1)
    assert (first.words, first.weights, first.opposite_words) == (("b",), (1.0,), ("c",))
    assert (second.words, second.weights, second.opposite_words) == (("a",), (3.0,), ("b",))
    wide = rank_dimensions(vectors, frequencies, NAMES, np.array([0.1, 0.7]), words=2)[1]  # twice as many candidates: 4
    assert wide.words == ("a", "d") and wide.opposite_words == ("b", "c")


def test_neighbours_by_cosine():
    vectors = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0], [-1.0, 0.0]])
    found = nearest(vectors, np.array([0.0, 5.0]), 3)
    assert [one.index for one in found] == [1, 0, 2]
    assert [one.similarity for one in found] == pytest.approx([1.0, 0.8, 0.0])


def test_likeness_is_a_weighted_correlation():
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(7, 2)), generator.normal(size=(7, 3))
    frequencies = generator.integers(1, 6, 7)
    repeated = [np.repeat(values, frequencies, 0) for values in (first, second)]
    expected = np.corrcoef(repeated[0].T, repeated[1].T)[:2, 2:]
    np.testing.assert_allclose(dimension_likeness(first, second, frequencies), expected)
    assert dimension_likeness(np.ones((7, 1)), second, frequencies).tolist() == [[0, 0, 0]]


def test_alignment_of_topics_that_changed_places():
    generator = np.random.default_rng(1)
    vectors, kl = generator.normal(size=(6, 3)), np.array([1.0, 2.0, 5.0])
    before = LatentSpace(vectors, np.full(6, 1 / 6), NAMES, kl)
    same = alignment_record(before, before)
    assert (same.in_place, same.matched, same.top_words) == pytest.approx((1, 1, 1))
    assert same.lowest == pytest.approx(1) and (same.moved, same.n_topics, same.n_words) == (0, 3, 6)
    # words in another order, and one that only the later model has; topics 0 and 1 exchanged
    order = [5, 3, 1, 0, 2, 4]
    turned = np.vstack([vectors[order][:, [1, 0, 2]], np.full((1, 3), 50.0)])
    after = LatentSpace(turned, np.full(7, 1 / 7), [*(NAMES[place] for place in order), "g"], kl)
    found, likeness = alignment_record(before, after), np.corrcoef(vectors.T)
    assert found.in_place == pytest.approx((1 * likeness[0, 1] + 2 * likeness[0, 1] + 5) / 8)
    assert found.matched == pytest.approx(1) and found.moved == 2 and found.n_words == 6
    assert found.lowest == pytest.approx(min(likeness[0, 1], 1))
    unweighted = alignment_record(before._replace(kl_per_dimension=np.zeros(3)), after)
    assert unweighted.in_place == pytest.approx((2 * likeness[0, 1] + 1) / 3)
    with pytest.raises(InputError, match="different numbers of latent dimensions"):
        alignment_record(before, before._replace(word_vectors=vectors[:, :2]))
    with pytest.raises(InputError, match="fewer than two words"):
        alignment_record(before, before._replace(words=["a", *"uvwxy"]))


def test_first_words_that_a_topic_keeps():
    names = [str(number) for number in range(40)]
    weights = np.arange(40.0)[:, None]
    before = LatentSpace(weights, np.full(40, 1 / 40), names, np.ones(1))
    changed = weights.copy()
    changed[[39, 38, 37, 36, 35]] = 0.0  # five of its ten first words
    # each model ranks the most frequent words that make up 0.8 of the text: here the first 32 or 33
    found = alignment_record(before, before._replace(word_vectors=changed))
    assert 0 < found.top_words <= 1 and found.in_place < 1
    frequent = before._replace(frequencies=np.arange(1.0, 41) / 820)
    found = alignment_record(frequent, frequent._replace(word_vectors=changed))
    assert found.top_words == pytest.approx(5 / 15)


KINDS = np.arange(60) % 3  # three values, each twenty times


FALLING = [place for kind in (2, 1, 0) for place in range(60) if KINDS[place] == kind]


def test_neighbours_of_a_document():
    vectors = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])[KINDS]
    found = nearest(vectors, np.array([2.0, 0.0]), 60)
    assert [one.index for one in found] == FALLING
    assert [one.similarity for one in found] == pytest.approx([1.0] * 20 + [0.5**0.5] * 20 + [0.0] * 20)


def test_topics_and_their_words():
    names = [f"word{place}" for place in range(60)]
    even = np.full(60, 1 / 60)
    # topics in the order of their KL, words in that of their weights
    vectors = np.repeat(KINDS[:, None].astype(float), 60, 1)
    topics = rank_dimensions(vectors, even, names, KINDS.astype(float), words=30)
    assert [topic.number for topic in topics] == FALLING
    ranked = [names[place] for place in FALLING]
    assert list(topics[0].words) == ranked[:30] and list(topics[0].opposite_words) == ranked[::-1][:30]


def test_the_most_frequent_words_of_a_topic():
    """Of words that are as frequent as each other the first stand for topics, until 0.8 of the text is reached."""
    names = [f"word{place}" for place in range(60)]
    frequencies = np.array([0.9, 2.0, 4.0])[KINDS] / 138  # all 20 of the last kind, and 16 of the second: 112 of 138
    (topic,) = rank_dimensions(-np.arange(60.0)[:, None], frequencies, names, np.ones(1), words=8)
    assert topic.words == tuple(f"word{place}" for place in (1, 2, 4, 5, 7, 8, 10, 11))
    assert topic.opposite_words == tuple(f"word{place}" for place in (59, 56, 53, 50, 47, 46, 44, 43))
    (more,) = rank_dimensions(-np.arange(60.0)[:, None], frequencies, names, np.ones(1), words=20)  # at least 40 words
    assert more.opposite_words[:8] == tuple(f"word{place}" for place in (59, 58, 56, 55, 53, 52, 50, 49))


def test_the_end_of_a_topic_on_which_a_value_lies():
    (topic,) = rank_dimensions(np.array([[1.0], [-1.0]]), np.array([0.5, 0.5]), ["up", "down"], np.ones(1), words=1)
    assert [words_towards(topic, value) for value in (2.0, 0.0, -0.1)] == [("up",), ("up",), ("down",)]


def test_short_vectors_have_directions_too():
    vectors = 1e-3 * np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    found = nearest(vectors, np.array([1e-4, 0.0]), 3)
    assert [one.similarity for one in found] == pytest.approx([1.0, 0.5**0.5, 0.0])
    assert [one.similarity for one in nearest(vectors, np.zeros(2), 3)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(8))
def test_topics_are_matched_so_that_the_weighted_mean_is_largest(seed):
    """A topic of much KL gets its partner first: the best of all permutations."""
    generator = np.random.default_rng(seed)
    words, kl = [f"w{place}" for place in range(9)], generator.uniform(0.01, 4, 4) ** 2
    before, after = generator.normal(size=(2, 9, 4))
    frequencies = generator.dirichlet(np.ones(9))
    found = alignment_record(
        LatentSpace(before, frequencies, words, kl), LatentSpace(after, frequencies[::-1], words, kl[::-1])
    )
    likeness = dimension_likeness(before, after, frequencies)
    every = list(itertools.permutations(range(4)))
    means = [np.average(likeness[range(4), order], weights=kl) for order in every]
    assert found.matched == pytest.approx(max(means))
    assert found.moved == sum(place != number for number, place in enumerate(every[int(np.argmax(means))]))
    assert found.in_place == pytest.approx(np.average(likeness.diagonal(), weights=kl))
    assert found.lowest == pytest.approx(min(likeness.diagonal()))


def test_small_amounts_of_kl_weigh_as_much_as_large_ones():
    generator = np.random.default_rng(0)
    words, kl = ["a", "b", "c", "d", "e"], np.array([0.02, 0.1, 0.3])
    before, after = (LatentSpace(generator.normal(size=(5, 3)), np.full(5, 0.2), words, kl) for _ in range(2))
    larger = before._replace(kl_per_dimension=100 * kl)
    small, large = (alignment_record(one, after).as_dict() for one in (before, larger))
    assert small == pytest.approx(large)
    likeness = np.corrcoef(before.word_vectors.T, after.word_vectors.T)[range(3), range(3, 6)]
    assert small["in_place"] == pytest.approx(likeness @ kl / kl.sum())


def test_two_words_are_enough_to_compare_topics():
    space = LatentSpace(np.array([[1.0, 2.0], [3.0, 1.0], [5.0, 5.0]]), np.ones(3) / 3, ["a", "b", "c"], np.ones(2))
    found = alignment_record(space, space._replace(words=["b", "a", "x"]))
    assert found.n_words == 2 and found.in_place == pytest.approx(-1)  # of two points, in the other order


def test_a_constant_topic_is_like_none_and_the_smallest_is_as_like_as_any():
    generator = np.random.default_rng(0)
    vectors, frequencies = generator.normal(size=(6, 2)), np.arange(1.0, 7)
    found = dimension_likeness(np.c_[np.full(6, 2.0), 1e-8 * vectors[:, 0]], vectors, frequencies)
    assert found[0] == pytest.approx([0, 0], abs=1e-3) and found[1, 0] == pytest.approx(1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_frequencies_may_be_counts_of_any_type(dtype):
    """Also those whose sum is more than their type can hold."""
    vectors, counts = np.random.default_rng(0).normal(size=(6, 2)), 2000.0 * np.arange(8, 14)
    found = dimension_likeness(vectors, vectors[::-1], counts.astype(dtype))
    np.testing.assert_allclose(found, dimension_likeness(vectors, vectors[::-1], counts / counts.sum()), rtol=1e-9)
