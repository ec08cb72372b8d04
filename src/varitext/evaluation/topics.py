"""What people look at: topics as ranked words, and neighbours of words and documents."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from varitext.evaluation.ties import merge_ties

TOPIC_SHARE = 0.8  # of the text: its words may stand for a topic


class Topic(NamedTuple):
    """One latent dimension, as one of the readable axes; the other end has words too."""

    number: int
    words: tuple[str, ...]  # the strongest positive connections, strongest first
    weights: tuple[float, ...]
    opposite_words: tuple[str, ...]
    kl: float  # nats per training document that the dimension carries


class Neighbour(NamedTuple):
    index: int  # type: ignore[assignment]  # of the document; a neighbour is no list to search
    similarity: float  # cosine


def rank_topics(
    word_vectors: np.ndarray, frequencies: np.ndarray, names: Sequence[str], kl: np.ndarray, words: int
) -> list[Topic]:
    """The axes as topics, those that carry most first; `word_vectors` is [V, K], `kl` [K].

    Ranked are the frequent words that make up `TOPIC_SHARE` of the text: rare ones have the largest weights, and say
    least.
    """
    by_frequency = np.argsort(-frequencies, kind="stable")
    enough = np.searchsorted(np.cumsum(frequencies[by_frequency]), TOPIC_SHARE) + 1
    candidates = by_frequency[: max(enough, 2 * words)]
    candidate_names = [names[candidate] for candidate in candidates]
    return [
        _topic(int(number), word_vectors[candidates, number], candidate_names, float(kl[number]), words)
        for number in np.argsort(-merge_ties(kl), kind="stable")
    ]


def _topic(number: int, weights: np.ndarray, names: list[str], kl: float, words: int) -> Topic:
    order = np.argsort(-merge_ties(weights), kind="stable")
    first, last = order[:words], order[::-1][:words]
    return Topic(
        number,
        tuple(names[i] for i in first),
        tuple(float(weights[i]) for i in first),
        tuple(names[i] for i in last),
        kl,
    )


def nearest(vectors: np.ndarray, query: np.ndarray, n: int) -> list[Neighbour]:
    """The most similar first; of those that tie (`ties.py`) the one that stands first."""
    lengths = np.linalg.norm(vectors, axis=1) * max(float(np.linalg.norm(query)), 1e-12)
    similarity = merge_ties(vectors @ query / np.maximum(lengths, 1e-12))
    order = np.argsort(-similarity, kind="stable")[:n]
    return [Neighbour(int(i), float(similarity[i])) for i in order]


def end_of_topic(topic: Topic, value: float) -> tuple[str, ...]:
    """The words at the end of the dimension on which `value` lies."""
    return topic.words if value >= 0 else topic.opposite_words
