"""Are topics still where they were? A model's topics before and after it has learned from more documents, or those of
two fits.

likeness    of two topics: the correlation of their weights over the words that both models have, a word weighing as
            much as it is frequent. 1 is the same topic, 0 unrelated, -1 the same with its ends exchanged.
in_place    the mean likeness of topic k to topic k
matched     the mean likeness under the one-to-one matching for which it is largest: what is left of it when topics may
            change their numbers, as they do between two fits
top_words   the mean share (Jaccard) of the ten first words that topic k keeps

All means weigh a topic by its KL before: one without any says nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from varitext.errors import InputError
from varitext.evaluation.topic_words import jaccard
from varitext.evaluation.topics import rank_topics

TOP_WORDS = 10


class TopicSpace(NamedTuple):
    """The topics of a model, and how frequent its words are."""

    word_vectors: np.ndarray  # [V, K]
    frequencies: np.ndarray  # [V]
    words: Sequence[str]
    kl_per_unit: np.ndarray  # [K] nats


@dataclass(frozen=True)
class TopicAlignmentRecord:
    in_place: float
    lowest: float  # likeness of the topic that changed most
    matched: float
    moved: int  # topics whose partner in the matching has another number
    top_words: float
    n_topics: int
    n_words: int  # that both have

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def topic_alignment_record(before: TopicSpace, after: TopicSpace) -> TopicAlignmentRecord:
    """How alike the topics are; both models need the same number of them."""
    if before.word_vectors.shape[1] != after.word_vectors.shape[1]:
        sizes = f"{before.word_vectors.shape[1]} and {after.word_vectors.shape[1]}"
        raise InputError(f"only models with as many topics as each other can be aligned, not {sizes}")
    place = {word: row for row, word in enumerate(after.words)}
    shared = np.array([(row, place[word]) for row, word in enumerate(before.words) if word in place]).reshape(-1, 2)
    if len(shared) < 2:
        raise InputError("the models share fewer than two words: their topics cannot be compared")
    old, new = shared.T
    likeness = topic_likeness(before.word_vectors[old], after.word_vectors[new], before.frequencies[old])  # [K, K]
    _, partner = linear_sum_assignment(before.kl_per_unit[:, None] * likeness, maximize=True)
    numbers = np.arange(len(likeness))
    words = [_first_words(space, rows) for space, rows in ((before, old), (after, new))]
    return TopicAlignmentRecord(
        in_place=_mean(likeness.diagonal(), before.kl_per_unit),
        lowest=float(likeness.diagonal().min()),
        matched=_mean(likeness[numbers, partner], before.kl_per_unit),
        moved=int((partner != numbers).sum()),
        top_words=_mean(jaccard(*words).diagonal(), before.kl_per_unit),
        n_topics=len(likeness),
        n_words=len(shared),
    )


def topic_likeness(first: np.ndarray, second: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The weighted correlation of every column of the first, [V, K], with every one of the second; 0 for a constant."""
    shares = np.asarray(frequencies, np.float64)[:, None] / np.sum(frequencies, dtype=np.float64)
    parts = []
    for vectors in (first, second):
        centred = np.asarray(vectors, np.float64) - (shares * vectors).sum(0)
        weighted = np.sqrt(shares) * centred
        parts.append(weighted / np.maximum(np.linalg.norm(weighted, axis=0), 1e-12))
    likeness: np.ndarray = parts[0].T @ parts[1]  # [K, K]
    return likeness


def _first_words(space: TopicSpace, rows: np.ndarray) -> list[tuple[str, ...]]:
    """Of each topic, by its number, among the words that both models have."""
    names = [space.words[row] for row in rows]
    topics = rank_topics(space.word_vectors[rows], space.frequencies[rows], names, space.kl_per_unit, TOP_WORDS)
    return [topic.words for topic in sorted(topics, key=lambda topic: topic.number)]


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    """By weight; the plain mean where nothing weighs anything."""
    return float(np.average(values, weights=weights if weights.sum() > 0 else None))
