"""Whatever is equal keeps the order in which it came: more of it than a sort that is not stable leaves in order."""

import numpy as np
import pytest
import scipy.sparse

from varitext.evaluation.keywords import distinct_words, keyword_columns
from varitext.evaluation.latent_dimensions import nearest, rank_dimensions, words_towards
from varitext.evaluation.topic_quality import nearest_documents

KINDS = np.arange(60) % 3  # three values, each twenty times
FALLING = [place for kind in (2, 1, 0) for place in range(60) if KINDS[place] == kind]


def test_neighbours_of_a_document():
    vectors = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])[KINDS]
    found = nearest(vectors, np.array([2.0, 0.0]), 60)
    assert [one.index for one in found] == FALLING
    assert [one.similarity for one in found] == pytest.approx([1.0] * 20 + [0.5**0.5] * 20 + [0.0] * 20)


def test_neighbours_of_every_document():
    vectors = np.array([[0.0, 1.0], [0.6, 0.8], [1.0, 0.0]])[KINDS]
    found = nearest_documents(vectors, np.array([2, 0]), 59)
    assert found[0].tolist() == [place for place in FALLING if place != 2]
    assert found[1].tolist() == [place for kind in (0, 1, 2) for place in range(60) if KINDS[place] == kind][1:]


def test_words_of_a_document():
    counts = scipy.sparse.csr_matrix((KINDS + 1.0)[None])
    (found,) = keyword_columns(counts, np.full(60, np.log(1 / 600)))
    assert found.tolist() == FALLING


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


def test_words_that_tell_two_classes_apart():
    """Sixty words that all documents of one class have and none of the other; then the same in two strengths."""
    counts = np.zeros((60, 60))
    counts[:30] = 1.0
    values = ["a"] * 30 + ["b"] * 30
    names = [f"word{place}" for place in range(60)]
    (first, second) = distinct_words(scipy.sparse.csr_matrix(counts), values, names, 60)
    assert first.words == tuple(names) and second.words == ()
    counts[:10, KINDS == 0] = 0.0
    (first, _) = distinct_words(scipy.sparse.csr_matrix(counts), values, names, 60)
    stronger = [name for name, kind in zip(names, KINDS, strict=True) if kind]
    assert first.words[:40] == tuple(stronger) and first.words[40:] == tuple(names[::3])
    (few, _) = distinct_words(scipy.sparse.csr_matrix(counts), values, names, 2)
    assert few.words == tuple(stronger[:2])


def test_the_end_of_a_topic_on_which_a_value_lies():
    (topic,) = rank_dimensions(np.array([[1.0], [-1.0]]), np.array([0.5, 0.5]), ["up", "down"], np.ones(1), words=1)
    assert [words_towards(topic, value) for value in (2.0, 0.0, -0.1)] == [("up",), ("up",), ("down",)]


def test_short_vectors_have_directions_too():
    vectors = 1e-3 * np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    found = nearest(vectors, np.array([1e-4, 0.0]), 3)
    assert [one.similarity for one in found] == pytest.approx([1.0, 0.5**0.5, 0.0])
    assert [one.similarity for one in nearest(vectors, np.zeros(2), 3)] == [0.0, 0.0, 0.0]
