"""In how many windows of a reference corpus words stand, alone and together: what every coherence is made of.

Two words are together in as many windows as their stretches overlap (see `windows.py`). The stretches of the topics'
words are sorted once, and each meets only those that start before it ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from varitext.errors import InputError
from varitext.evaluation.topic_words import TopicWords
from varitext.evaluation.windows import Reference, Stretches, stretches_of
from varitext.text.counting import KnownIds

MAX_BLOCK = 2**20  # pairs of stretches held at once


@dataclass(frozen=True)
class Cooccurrence:
    """Numbers of windows: of each word, and of those pairs that stand together in a topic."""

    index: dict[str, int]
    occurrences: np.ndarray  # [U]
    pairs: np.ndarray  # [P]   first * U + second, first < second; sorted
    together: np.ndarray  # [P]
    n_windows: int

    def of(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Windows with both words; a word with itself counts as often as it occurs."""
        keys = _pair_keys(first, second, len(self.index))
        places = np.minimum(np.searchsorted(self.pairs, keys), max(len(self.pairs) - 1, 0))
        counted = self.together[places] if len(self.pairs) else np.zeros(np.shape(keys))
        return np.where(first == second, self.occurrences[first], counted)


def count_together(topics: Sequence[TopicWords], reference: Reference) -> Cooccurrence:
    """Count the words and pairs of the topics, and nothing else, in one pass over the reference."""
    index = {word: place for place, word in enumerate(dict.fromkeys(word for topic in topics for word in topic))}
    pairs = _pairs_of(topics, index)
    occurrences, together, n_windows = np.zeros(len(index)), np.zeros(len(pairs)), 0
    for stretches, windows in stretches_of(reference, KnownIds(index)):
        occurrences += np.bincount(stretches.words, stretches.ends - stretches.starts, len(index))
        together += _overlaps(stretches, pairs, len(index))
        n_windows += windows
    if not n_windows:
        raise InputError("the reference corpus has no documents")
    return Cooccurrence(index, occurrences, pairs, together, n_windows)


# Counting pairs


def _pairs_of(topics: Sequence[TopicWords], index: dict[str, int]) -> np.ndarray:
    keys = [np.zeros(0, np.int64)]
    for topic in topics:
        places = np.unique([index[word] for word in topic]).astype(np.int64)
        first, second = np.triu_indices(len(places), 1)
        keys.append(_pair_keys(places[first], places[second], len(index)))
    return np.unique(np.concatenate(keys))


def _pair_keys(first: np.ndarray, second: np.ndarray, width: int) -> np.ndarray:
    keys: np.ndarray = np.minimum(first, second) * width + np.maximum(first, second)
    return keys


def _overlaps(stretches: Stretches, pairs: np.ndarray, width: int) -> np.ndarray:
    """In how many windows the words of each pair are together."""
    together = np.zeros(len(pairs))
    order = np.argsort(stretches.starts, kind="stable")
    starts, ends, words = (column[order] for column in stretches)
    following = np.searchsorted(starts, ends) - np.arange(len(starts)) - 1  # that start before this one ends
    for rows in _blocks(following):
        first, second = _each_with_following(rows, following[rows])
        keys = _pair_keys(words[first], words[second], width)
        places = np.minimum(np.searchsorted(pairs, keys), max(len(pairs) - 1, 0))
        wanted = pairs[places] == keys if len(pairs) else np.zeros(len(keys), bool)
        first, second, places = first[wanted], second[wanted], places[wanted]
        overlap = np.minimum(ends[first], ends[second]) - starts[second]
        together += np.bincount(places, overlap, len(pairs))
    return together


def _each_with_following(rows: np.ndarray, following: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every row beside each of the `following` rows after it."""
    first = np.repeat(rows, following)
    within = np.arange(len(first)) - np.repeat(np.cumsum(following) - following, following)
    return first, first + 1 + within


def _blocks(sizes: np.ndarray) -> Iterator[np.ndarray]:
    """Row numbers in blocks of about `MAX_BLOCK` in total size."""
    block = np.cumsum(sizes) // MAX_BLOCK
    edges = np.flatnonzero(np.diff(block)) + 1
    yield from np.split(np.arange(len(sizes)), edges) if len(sizes) else ()
