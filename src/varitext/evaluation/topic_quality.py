"""Topics of any tool, as lists of words: do they repeat each other, and recur with another seed?

Jaccard          |A & B| / |A | B|                                           order does not count
RBO              (1-p)/p [ sum_d X_d/d p^d  +  sum_{d>s} X_s (d-s)/(s d) p^d ]  +  [ (X_l - X_s)/l + X_s/s ] p^l
                 rank-biased overlap, extrapolated (Webber et al. 2010): X_d words are shared by the first d of both, s
                 and l are the shorter and the longer length, d runs to l; the first ranks count most
unique words     different words / all words of the topics
inverted RBO     1 - mean over pairs of topics of their rank-biased overlap
stability        topics of two fits are matched one to one so that the sum of their likeness is largest; the mean
                 likeness of the matched, where a topic without a partner counts 0
neighbourhoods   for each document, the share of its n nearest documents in one fit that are among its n nearest in the
                 other, by cosine; rotations of the latent space do not matter
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from varitext.errors import InputError
from varitext.evaluation.columns import merge_ties
from varitext.evaluation.vectors import checked_vectors, unit_rows
from varitext.records import DictRecord, check_at_least

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
    """The index of every topic of the first list with every one of the second; 0 where one has no words.  [T, U]"""
    memberships = _memberships(first, second)
    shared = (memberships[0] @ memberships[1].T).toarray()
    sizes = [np.diff(membership.indptr) for membership in memberships]
    shares: np.ndarray = shared / np.maximum(sizes[0][:, None] + sizes[1] - shared, 1)
    return shares


def rank_biased_overlap(
    first: Sequence[TopicWords], second: Sequence[TopicWords], persistence: float = PERSISTENCE
) -> np.ndarray:
    """The overlap of every topic of the first list with every one of the second; 0 where one has no words.  [T, U]"""
    if not 0 < persistence < 1:
        raise InputError(f"the persistence of a rank-biased overlap lies between 0 and 1, not {persistence}")
    first, second = _without_repeats(first), _without_repeats(second)
    lengths = np.array([len(topic) for topic in first])[:, None], np.array([len(topic) for topic in second])[None]
    shorter, longer = np.minimum(*lengths), np.maximum(*lengths)  # s and l of the formula  [T, U]
    both = np.maximum(shorter, 1)  # without words all X are 0, and so is the sum
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
    """How many of their first `depth` words two topics share, for every pair of topics.  [T, U]"""
    memberships = _memberships([topic[:depth] for topic in first], [topic[:depth] for topic in second])
    shared: np.ndarray = (memberships[0] @ memberships[1].T).toarray()
    return shared


def _memberships(*lists: Sequence[TopicWords]) -> list[scipy.sparse.csr_matrix]:
    """Which words each topic has, over the words of all lists: [T, W] with a one for each."""
    index: dict[str, int] = {}
    columns = [[[index.setdefault(word, len(index)) for word in set(topic)] for topic in topics] for topics in lists]
    found = []
    for rows in columns:
        indices, starts = np.array([column for row in rows for column in row], np.int64), [0, *map(len, rows)]
        entries = (np.ones(len(indices)), indices, np.cumsum(starts))
        found.append(scipy.sparse.csr_matrix(entries, shape=(len(rows), len(index))))
    return found


# Diversity


@dataclass(frozen=True)
class DiversityRecord(DictRecord):
    """1 means that no two topics share a word; both go down as topics repeat each other."""

    unique_words: float
    inverted_rbo: float | None  # None for a single topic: there is no pair
    n_topics: int
    n_topics_left_out: int  # without any word
    words_per_topic: int  # the longest; the share of unique words falls as topics get longer
    persistence: float


def diversity_record(
    topics: Iterable[Any], words: int | None = None, persistence: float = PERSISTENCE
) -> DiversityRecord:
    """Measure how much the topics of any tool repeat each other.

    Parameters
    ----------
    topics : iterable of topics
        Each a list of words, best first, of (word, weight) pairs, or a record with `words`.
    words : int, optional
        Take only the first words of each topic (default: all).
    persistence : float, default 0.9
        p of the rank-biased overlap.

    Returns
    -------
    DiversityRecord
    """
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


# Stability over fits


BLOCK = 256  # documents whose similarity to all others is held at once


@dataclass(frozen=True)
class TopicStabilityRecord(DictRecord):
    """1 means the same topics from every fit; means over all pairs of fits."""

    jaccard: float
    rbo: float
    jaccard_by_pair: tuple[float, ...]  # fits 0-1, 0-2, ..., 1-2, ...
    rbo_by_pair: tuple[float, ...]
    n_fits: int
    n_topics: tuple[int, ...]
    persistence: float
    matching: str = "one to one, largest sum; a topic without a partner counts 0"


@dataclass(frozen=True)
class NeighbourhoodStabilityRecord(DictRecord):
    """1 means that every document keeps its neighbours; chance is `by_chance`."""

    overlap: float
    overlap_by_pair: tuple[float, ...]
    by_chance: float
    n_fits: int
    n_neighbours: int
    n_documents: int
    n_centres: int  # documents whose neighbours were looked at
    seed: int
    ties: str = "the earlier document first"


def topic_stability_record(
    fits: Sequence[Iterable[Any]], words: int | None = None, persistence: float = PERSISTENCE
) -> TopicStabilityRecord:
    """Compare the topics of several fits.

    Parameters
    ----------
    fits : sequence of lists of topics
        From any tool; at least two.
    words : int, optional
        Take only the first words of each topic (default: all).
    persistence : float, default 0.9
        p of the rank-biased overlap.

    Returns
    -------
    TopicStabilityRecord
    """
    topics = [topic_words(fit, words) for fit in fits]
    pairs = _pairs(topics)
    by_jaccard = tuple(matched_likeness(jaccard(first, second)) for first, second in pairs)
    by_rank = tuple(matched_likeness(rank_biased_overlap(first, second, persistence)) for first, second in pairs)
    return TopicStabilityRecord(
        jaccard=float(np.mean(by_jaccard)),
        rbo=float(np.mean(by_rank)),
        jaccard_by_pair=by_jaccard,
        rbo_by_pair=by_rank,
        n_fits=len(topics),
        n_topics=tuple(map(len, topics)),
        persistence=persistence,
    )


def matched_likeness(likeness: np.ndarray) -> float:
    """The mean of the best one-to-one matching of rows and columns, over the larger number of the two."""
    return float(likeness[linear_sum_assignment(likeness, maximize=True)].sum() / max(likeness.shape))


def neighbourhood_stability_record(
    fits: Sequence[np.ndarray], neighbours: int = 10, centres: int = 1000, seed: int = 0
) -> NeighbourhoodStabilityRecord:
    """Compare the document vectors of several fits by the nearest neighbours of sampled documents.

    Parameters
    ----------
    fits : sequence of arrays [D, K]
        Vectors of the same documents; at least two fits.
    neighbours : int, default 10
    centres : int, default 1000
        How many documents are sampled at most.
    seed : int, default 0

    Returns
    -------
    NeighbourhoodStabilityRecord
    """
    vectors = [checked_vectors(fit, "vectors") for fit in fits]
    check_at_least("neighbours", neighbours, 1)
    check_at_least("centres", centres, 1)
    size = len(vectors[0]) if vectors else 0
    if any(len(fit) != size for fit in vectors) or size <= neighbours:
        raise InputError(f"every fit needs the same documents, more than {neighbours}: {[len(fit) for fit in vectors]}")
    chosen = np.sort(np.random.default_rng(seed).permutation(size)[:centres])
    nearest = [nearest_documents(unit_rows(fit), chosen, neighbours) for fit in vectors]
    overlaps = tuple(float((a[:, :, None] == b[:, None, :]).any(2).mean()) for a, b in _pairs(nearest))
    return NeighbourhoodStabilityRecord(
        overlap=float(np.mean(overlaps)),
        overlap_by_pair=overlaps,
        by_chance=neighbours / (size - 1),
        n_fits=len(vectors),
        n_neighbours=neighbours,
        n_documents=size,
        n_centres=len(chosen),
        seed=seed,
    )


def nearest_documents(unit_vectors: np.ndarray, centres: np.ndarray, neighbours: int) -> np.ndarray:
    """The nearest documents of each centre, without itself.  [centres, neighbours]"""
    found = []
    for start in range(0, len(centres), BLOCK):
        block = centres[start : start + BLOCK]
        similarity = unit_vectors[block] @ unit_vectors.T
        similarity[np.arange(len(block)), block] = -np.inf
        found.append(np.argsort(-merge_ties(similarity), axis=1, kind="stable")[:, :neighbours])
    return np.concatenate(found)


def _pairs(fits: Sequence[list[TopicWords] | np.ndarray]) -> list[tuple[Any, Any]]:
    if len(fits) < 2:
        raise InputError(f"stability compares at least two fits, not {len(fits)}")
    return list(itertools.combinations(fits, 2))
