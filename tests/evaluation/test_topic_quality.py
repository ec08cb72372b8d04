"""Overlap, diversity, agreement with labels and stability against plain loops and all permutations."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varitext import InputError
from varitext.evaluation import (
    diversity_record,
    neighbourhood_stability_record,
    topic_stability_record,
)
from varitext.evaluation import topic_quality as stability
from varitext.evaluation.latent_dimensions import (
    LatentDimension,
)
from varitext.evaluation.topic_quality import (
    jaccard,
    matched_likeness,
    nearest_documents,
    rank_biased_overlap,
    topic_words,
)


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


def test_topics_of_any_tool():
    topic = LatentDimension(0, ("sun", "moon"), (2.0, 1.0), ("tree",), 0.5)
    pairs = [("sun", 0.4), ("moon", 0.2)]
    assert topic_words([topic, pairs, np.array(["sun", "moon"]), ("sun", "moon", "star")], 2) == [("sun", "moon")] * 4


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=4), st.floats(0.05, 0.99))
def test_overlaps_are_symmetric_and_between_0_and_1(topics, persistence):
    topics = topic_words(topics)
    for likeness in (jaccard(topics, topics), rank_biased_overlap(topics, topics, persistence)):
        assert np.allclose(likeness, likeness.T) and (likeness >= 0).all() and (likeness <= 1 + 1e-9).all()
        assert np.allclose(np.diag(likeness), [len(topic) > 0 for topic in topics])


TOPICS = [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]]


def test_the_order_of_topics_does_not_count():
    record = topic_stability_record([TOPICS, TOPICS[::-1], TOPICS[1:] + TOPICS[:1]])
    assert record.jaccard == pytest.approx(1) and record.rbo == pytest.approx(1) and record.n_fits == 3
    assert len(record.jaccard_by_pair) == 3


def test_a_topic_without_a_partner_counts_nothing():
    record = topic_stability_record([TOPICS, TOPICS[:1]])
    assert record.jaccard == pytest.approx(1 / 3) and record.n_topics == (3, 1)
    assert topic_stability_record([TOPICS, [["x"], ["y"], ["z"]]]).rbo == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_matching_is_the_best_of_all(seed):
    likeness = np.random.default_rng(seed).random((4, 5))
    best = max(likeness[range(4), columns].sum() for columns in itertools.permutations(range(5), 4))
    assert matched_likeness(likeness) == pytest.approx(best / 5)


def test_neighbourhoods_do_not_depend_on_rotation_and_scale():
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((400, 6))
    rotation = np.linalg.qr(generator.standard_normal((6, 6)))[0]
    same = neighbourhood_stability_record([vectors, 3 * vectors @ rotation], neighbours=10)
    assert same.overlap == 1 and same.n_centres == 400
    other = neighbourhood_stability_record([vectors, generator.standard_normal((400, 6))], neighbours=10)
    assert other.overlap == pytest.approx(other.by_chance, abs=0.02)


def test_stability_refuses_what_cannot_be_compared():
    with pytest.raises(InputError, match="two fits"):
        topic_stability_record([TOPICS])
    with pytest.raises(InputError, match="same documents"):
        neighbourhood_stability_record([np.ones((20, 2)), np.ones((19, 2))])
    with pytest.raises(InputError, match="not finite"):
        neighbourhood_stability_record([np.full((20, 2), np.nan)] * 2)


KINDS = np.arange(60) % 3  # three values, each twenty times


FALLING = [place for kind in (2, 1, 0) for place in range(60) if KINDS[place] == kind]


def test_neighbours_of_every_document():
    vectors = np.array([[0.0, 1.0], [0.6, 0.8], [1.0, 0.0]])[KINDS]
    found = nearest_documents(vectors, np.array([2, 0]), 59)
    assert found[0].tolist() == [place for place in FALLING if place != 2]
    assert found[1].tolist() == [place for kind in (0, 1, 2) for place in range(60) if KINDS[place] == kind][1:]
