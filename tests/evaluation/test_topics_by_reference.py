"""Overlap, matching and stability of topics and neighbourhoods against plain loops and all permutations."""

import itertools

import numpy as np
import pytest

from varitext.errors import InputError
from varitext.evaluation import diversity_record, neighbourhood_stability_record, topic_stability_record
from varitext.evaluation import topic_quality as stability
from varitext.evaluation.latent_dimensions import LatentSpace, alignment_record, dimension_likeness
from varitext.evaluation.topic_quality import jaccard, rank_biased_overlap, topic_words


def overlap_by_hand(first, second, p):
    """Webber et al. 2010, equation 32, word for word; lists without repeats."""
    short, long = sorted((first, second), key=len)
    s, l = len(short), len(long)  # noqa: E741
    if not s:
        return 0.0
    shared = {depth: len(set(short[:depth]) & set(long[:depth])) for depth in range(1, l + 1)}
    total = sum(shared[depth] / depth * p**depth for depth in range(1, l + 1))
    total += sum(shared[s] * (depth - s) / (s * depth) * p**depth for depth in range(s + 1, l + 1))
    return (1 - p) / p * total + ((shared[l] - shared[s]) / l + shared[s] / s) * p**l


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("persistence", [0.3, 0.9])
def test_overlaps_are_those_of_the_definitions(seed, persistence):
    generator = np.random.default_rng(seed)
    lengths = [0, 1, 2, 5, 9, 9]
    first, second = ([tuple(generator.permutation(list("abcdefghijkl"))[:n]) for n in lengths] for _ in range(2))
    second = second[:4]
    found, shares = rank_biased_overlap(first, second, persistence), jaccard(first, second)
    for (row, one), (column, other) in itertools.product(enumerate(first), enumerate(second)):
        assert found[row, column] == pytest.approx(overlap_by_hand(one, other, persistence))
        union = set(one) | set(other)
        assert shares[row, column] == pytest.approx(len(set(one) & set(other)) / len(union) if union else 0)


def test_a_repeated_word_counts_at_its_first_place():
    assert rank_biased_overlap([("a", "a", "b")], [("a", "b")]).item() == pytest.approx(1)
    assert jaccard([("a", "a", "b")], [("b", "c")]).item() == pytest.approx(1 / 3)


def test_topics_without_a_word_have_nothing_in_common():
    assert rank_biased_overlap([()], [(), ("a",)]).tolist() == [[0, 0]] == jaccard([()], [(), ("a",)]).tolist()


@pytest.mark.parametrize("persistence", [0.0, 1.0, 1.5, -0.1])
def test_a_persistence_lies_between_0_and_1(persistence):
    with pytest.raises(InputError, match="between 0 and 1"):
        rank_biased_overlap([("a",)], [("a",)], persistence)


def test_topics_are_named_when_they_are_none():
    assert topic_words([["a", "b"], ("c",)], 1) == [("a",), ("c",)]
    for topics, message in (
        ([["a"], "b"], "topic 2 is not a list of words but str"),
        ([["a"], 3], "topic 2 is not a list of words but int"),
        ([["a", ()]], r"topic 1 has \(\), which is not a word"),
        ([["a"], [("b", 0.5), (3, 0.1)]], "topic 2 has 3, which is not a word"),
    ):
        with pytest.raises(InputError, match=message):
            topic_words(topics)


def test_every_field_of_diversity():
    found = diversity_record([["a", "b", "c", "d"], ["a", "e"], [], ["f", "b", "a"]], words=3, persistence=0.7)
    topics = [("a", "b", "c"), ("a", "e"), ("f", "b", "a")]
    overlaps = [overlap_by_hand(one, other, 0.7) for one, other in itertools.combinations(topics, 2)]
    assert found.as_dict() == {
        "unique_words": 5 / 8, "inverted_rbo": pytest.approx(1 - np.mean(overlaps)), "n_topics": 4,
        "n_topics_left_out": 1, "words_per_topic": 3, "persistence": 0.7,
    }  # fmt: skip


# Stability


def test_every_field_of_topic_stability():
    fits = [[["a", "b", "c"], ["d", "e", "f"]], [["d", "a", "x"], ["b", "a", "y"]], [["e", "d", "z"]]]
    found = topic_stability_record(fits, words=2, persistence=0.6)
    cut = [[tuple(topic[:2]) for topic in fit] for fit in fits]

    def best(first, second, likeness):
        larger, smaller = sorted((first, second), key=len, reverse=True)
        every = itertools.permutations(larger, len(smaller))
        return max(sum(map(likeness, chosen, smaller)) for chosen in every) / len(larger)

    pairs = list(itertools.combinations(cut, 2))
    by_jaccard = [best(*pair, lambda one, other: len({*one} & {*other}) / len({*one} | {*other})) for pair in pairs]
    by_rank = [best(*pair, lambda one, other: overlap_by_hand(one, other, 0.6)) for pair in pairs]
    assert found.jaccard_by_pair == pytest.approx(by_jaccard) and found.jaccard == pytest.approx(np.mean(by_jaccard))
    assert found.rbo_by_pair == pytest.approx(by_rank) and found.rbo == pytest.approx(np.mean(by_rank))
    assert (found.n_fits, found.n_topics, found.persistence) == (3, (2, 2, 1), 0.6)


def neighbours_by_hand(vectors, centre, n):
    cosines = [vectors[centre] @ one / np.linalg.norm(vectors[centre]) / np.linalg.norm(one) for one in vectors]
    return set(
        sorted((place for place in range(len(vectors)) if place != centre), key=lambda place: -cosines[place])[:n]
    )


@pytest.mark.parametrize(("block", "seed"), [(256, 0), (7, 1), (1, 2)])
def test_every_field_of_neighbourhood_stability(monkeypatch, block, seed):
    monkeypatch.setattr(stability, "BLOCK", block)
    fits = [np.random.default_rng(one).normal(size=(40, 3)) for one in range(3)]
    found = neighbourhood_stability_record(fits, neighbours=4, centres=15, seed=seed)
    chosen = np.random.default_rng(seed).permutation(40)[:15]
    nearest = [[neighbours_by_hand(vectors, centre, 4) for centre in chosen] for vectors in fits]
    by_pair = [
        np.mean([len(one & other) / 4 for one, other in zip(*pair, strict=True)])
        for pair in itertools.combinations(nearest, 2)
    ]
    assert found.overlap_by_pair == pytest.approx(by_pair) and found.overlap == pytest.approx(np.mean(by_pair))
    assert found.by_chance == pytest.approx(4 / 39)
    assert (found.n_fits, found.n_neighbours, found.n_documents, found.n_centres, found.seed) == (3, 4, 40, 15, seed)


@pytest.mark.parametrize(
    ("fits", "options", "message"),
    [
        ([np.ones((5, 2))] * 2, {"neighbours": 5}, "more than 5"),
        ([np.ones((5, 2))] * 2, {"neighbours": 0}, "^neighbours "),
        ([np.ones((5, 2))] * 2, {"neighbours": 2, "centres": 0}, "^centres "),
        ([np.ones((5, 2)), np.ones(5)], {"neighbours": 2}, "vectors are one row per document"),
        ([np.ones((5, 2))], {"neighbours": 2}, "at least two fits, not 1"),
        ([np.ones((5, 2)), np.ones((5, 2)), np.ones((6, 2))], {"neighbours": 2}, "same documents"),
        ([], {"neighbours": 1}, "same documents"),
    ],
)
def test_neighbourhoods_that_cannot_be_compared(fits, options, message):
    with pytest.raises(InputError, match=message):
        neighbourhood_stability_record(fits, **options)


def test_all_others_but_one_can_be_neighbours():
    fits = [np.random.default_rng(seed).normal(size=(5, 2)) for seed in (0, 1)]
    found = neighbourhood_stability_record(fits, neighbours=4, centres=1)
    assert (found.overlap, found.by_chance, found.n_centres) == (1, 1, 1)


# Alignment


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


def test_models_without_a_common_word_cannot_be_compared():
    space = LatentSpace(np.eye(3), np.ones(3) / 3, ["a", "b", "c"], np.ones(3))
    for words in (["x", "y", "z"], ["c", "y", "z"]):
        with pytest.raises(InputError, match="fewer than two words"):
            alignment_record(space, space._replace(words=words))


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
