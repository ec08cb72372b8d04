"""Do topics repeat each other? The share of different words, and how unlike the rankings are.

unique words    different words / all words of the topics
inverted RBO    1 - mean over pairs of topics of their rank-biased overlap
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from varitext.errors import InputError
from varitext.evaluation.topic_words import PERSISTENCE, rank_biased_overlap, topic_words


@dataclass(frozen=True)
class DiversityRecord:
    """1 means that no two topics share a word; both go down as topics repeat each other."""

    unique_words: float
    inverted_rbo: float | None  # None for a single topic: there is no pair
    n_topics: int
    n_topics_left_out: int  # without any word
    words_per_topic: int  # the longest; the share of unique words falls as topics get longer
    persistence: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def diversity_record(
    topics: Iterable[Any], words: int | None = None, persistence: float = PERSISTENCE
) -> DiversityRecord:
    """The diversity of topics from any tool: lists of words, best first; `words` takes only so many of each."""
    given = topic_words(topics, words)
    filled = [topic for topic in given if topic]
    if not filled:
        raise InputError(f"none of the {len(given)} topics has a word")
    overlap = rank_biased_overlap(filled, filled, persistence)
    pairs = np.triu_indices(len(filled), 1)
    return DiversityRecord(
        unique_words=len({word for topic in filled for word in topic}) / sum(map(len, filled)),
        inverted_rbo=1 - float(overlap[pairs].mean()) if len(filled) > 1 else None,
        n_topics=len(given),
        n_topics_left_out=len(given) - len(filled),
        words_per_topic=max(map(len, filled)),
        persistence=persistence,
    )
