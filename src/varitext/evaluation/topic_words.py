"""Topics as any tool gives them, as plain tuples of words, best first; and how much two topics have in common.

Jaccard       |A & B| / |A | B|                                           order does not count
RBO           (1-p)/p [ sum_d X_d/d p^d  +  sum_{d>s} X_s (d-s)/(s d) p^d ]  +  [ (X_l - X_s)/l + X_s/s ] p^l
              rank-biased overlap, extrapolated (Webber et al. 2010): X_d words are shared by the first d of both, s and
              l are the shorter and the longer length, d runs to l; the first ranks count most
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from varitext.errors import InputError

TopicWords = tuple[str, ...]
PERSISTENCE = 0.9  # p: the first ten ranks carry 86 % of the weight


def topic_words(topics: Iterable[Any], words: int | None = None) -> list[TopicWords]:
    """The first `words` of each topic, or all of them; a topic is a list of words, of (word, weight) pairs, or a
    `Topic`."""
    if isinstance(topics, str):
        raise InputError("topics are a list of lists of words, not one string")
    if words is not None and words < 1:
        raise InputError(f"a topic needs at least one word, not {words}")
    read = [_words_of(topic, number)[:words] for number, topic in enumerate(topics, start=1)]
    if not read:
        raise InputError("there are no topics")
    return read


def jaccard(first: Sequence[TopicWords], second: Sequence[TopicWords]) -> np.ndarray:
    """Of every topic of the first list with every one of the second; 0 where one has no words.  [T, U]"""
    memberships = _memberships(first, second)
    shared = (memberships[0] @ memberships[1].T).toarray()
    sizes = [np.diff(membership.indptr) for membership in memberships]
    shares: np.ndarray = shared / np.maximum(sizes[0][:, None] + sizes[1] - shared, 1)
    return shares


def rank_biased_overlap(
    first: Sequence[TopicWords], second: Sequence[TopicWords], persistence: float = PERSISTENCE
) -> np.ndarray:
    """Of every topic of the first list with every one of the second; 0 where one has no words.  [T, U]"""
    if not 0 < persistence < 1:
        raise InputError(f"the persistence of a rank-biased overlap lies between 0 and 1, not {persistence}")
    first, second = _without_repeats(first), _without_repeats(second)
    lengths = np.array([len(topic) for topic in first])[:, None], np.array([len(topic) for topic in second])[None]
    shorter, longer = np.minimum(*lengths), np.maximum(*lengths)  # s and l of the formula  [T, U]
    both = np.maximum(shorter, 1)  # where there is no word all X are 0, and so is the sum
    total, at_shorter, at_longer = np.zeros((3, len(first), len(second)))
    for depth in range(1, int(longer.max(initial=0)) + 1):
        shared = _shared(first, second, depth)  # X_d  [T, U]
        at_shorter = np.where(depth <= shorter, shared, at_shorter)
        at_longer = np.where(depth <= longer, shared, at_longer)
        beyond = at_shorter * np.maximum(depth - shorter, 0) / both
        total += np.where(depth <= longer, (shared + beyond) / depth * persistence**depth, 0)
    agreement = (at_longer - at_shorter) / np.maximum(longer, 1) + at_shorter / both
    overlap: np.ndarray = (1 - persistence) / persistence * total + agreement * persistence**longer
    return overlap


def _words_of(topic: Any, number: int) -> TopicWords:
    topic = getattr(topic, "words", topic)
    if isinstance(topic, str) or not isinstance(topic, Iterable):
        raise InputError(f"topic {number} is not a list of words but {type(topic).__name__}")
    words = tuple(entry[0] if isinstance(entry, tuple) and entry else entry for entry in topic)
    wrong = [word for word in words if not isinstance(word, str)]
    if wrong:
        raise InputError(f"topic {number} has {wrong[0]!r}, which is not a word")
    return tuple(map(str, words))


def _without_repeats(topics: Sequence[TopicWords]) -> list[TopicWords]:
    return [tuple(dict.fromkeys(topic)) for topic in topics]


def _shared(first: Sequence[TopicWords], second: Sequence[TopicWords], depth: int) -> np.ndarray:
    """How many words the first `depth` of two topics share, for every two.  [T, U]"""
    memberships = _memberships([topic[:depth] for topic in first], [topic[:depth] for topic in second])
    shared: np.ndarray = (memberships[0] @ memberships[1].T).toarray()
    return shared


def _memberships(*lists: Sequence[TopicWords]) -> list[scipy.sparse.csr_matrix]:
    """Which words each topic has, over the words of all lists: [T, W] with a one for each."""
    index: dict[str, int] = {}
    columns = [[[index.setdefault(word, len(index)) for word in set(topic)] for topic in topics] for topics in lists]
    return [_indicators(rows, len(index)) for rows in columns]


def _indicators(rows: list[list[int]], width: int) -> scipy.sparse.csr_matrix:
    indices = np.array([column for row in rows for column in row], np.int64)
    starts = np.cumsum([0, *map(len, rows)])
    return scipy.sparse.csr_matrix((np.ones(len(indices)), indices, starts), shape=(len(rows), width))
