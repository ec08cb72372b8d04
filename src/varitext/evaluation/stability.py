"""Does another seed tell the same story? How alike the topics of several fits are, and the neighbours of documents.

topics           the topics of two fits are matched one to one so that the sum of their likeness is largest; the mean
                 likeness of the matched, where a topic without a partner counts 0
neighbourhoods   for each document, the share of its n nearest documents in one fit that are among its n nearest in the
                 other, by cosine

Latent spaces may be rotated between fits; neither measure depends on the axes of the document vectors.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from varitext.errors import InputError
from varitext.evaluation.ties import merge_ties
from varitext.evaluation.topic_words import PERSISTENCE, TopicWords, jaccard, rank_biased_overlap, topic_words
from varitext.evaluation.vectors import checked_vectors, unit_rows
from varitext.records import check_at_least

BLOCK = 256  # documents whose similarity to all others is held at once


@dataclass(frozen=True)
class TopicStabilityRecord:
    """1 means the same topics from every fit; means over all pairs of fits."""

    jaccard: float
    rbo: float
    jaccard_by_pair: tuple[float, ...]  # fits 0-1, 0-2, ..., 1-2, ...
    rbo_by_pair: tuple[float, ...]
    n_fits: int
    n_topics: tuple[int, ...]
    persistence: float
    matching: str = "one to one, largest sum; a topic without a partner counts 0"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class NeighbourhoodStabilityRecord:
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

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def topic_stability_record(
    fits: Sequence[Iterable[Any]], words: int | None = None, persistence: float = PERSISTENCE
) -> TopicStabilityRecord:
    """How alike the topics of several fits are; each fit is a list of topics from any tool."""
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
    """How alike document vectors of several fits are, by the nearest documents of at most `centres` drawn ones."""
    vectors = [checked_vectors(fit, "vectors") for fit in fits]
    check_at_least("neighbours", neighbours, 1)
    check_at_least("centres", centres, 1)
    size = len(vectors[0]) if vectors else 0
    if any(len(fit) != size for fit in vectors) or size <= neighbours:
        raise InputError(f"every fit needs the same documents, more than {neighbours}: {[len(fit) for fit in vectors]}")
    chosen = np.sort(np.random.default_rng(seed).permutation(size)[:centres])
    nearest = [nearest_documents(unit_rows(fit), chosen, neighbours) for fit in vectors]
    overlaps = tuple(_mean_overlap(first, second) for first, second in _pairs(nearest))
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


def _mean_overlap(first: np.ndarray, second: np.ndarray) -> float:
    return float((first[:, :, None] == second[:, None, :]).any(2).mean())


def _pairs(fits: Sequence[list[TopicWords] | np.ndarray]) -> list[tuple[Any, Any]]:
    if len(fits) < 2:
        raise InputError(f"stability compares at least two fits, not {len(fits)}")
    return list(itertools.combinations(fits, 2))
