"""Latent dimensions as ranked words, and how far the dimensions of two models agree.

likeness    of two dimensions: the correlation of their weights over the words that both models have, each word weighted
            by its frequency. 1: identical, 0: unrelated, -1: identical with the ends exchanged
in_place    the mean likeness of dimension k to dimension k
matched     the mean likeness under the one-to-one matching for which it is largest, since the numbers of dimensions
            change between two fits
top_words   the mean share (Jaccard) of its first ten words that dimension k keeps

All means weight a dimension by its KL before: one without any carries no information.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from varitext.errors import InputError
from varitext.evaluation.columns import merge_ties
from varitext.evaluation.topic_quality import jaccard
from varitext.records import DictRecord

FREQUENT_SHARE = 0.8  # of the text: its words may stand for a topic


class LatentDimension(NamedTuple):
    """One latent dimension as ranked words; its negative end has words too."""

    number: int
    words: tuple[str, ...]  # the strongest positive connections, strongest first
    weights: tuple[float, ...]
    opposite_words: tuple[str, ...]
    kl: float  # nats per training document that the dimension carries


def rank_dimensions(
    word_vectors: np.ndarray, frequencies: np.ndarray, names: Sequence[str], kl: np.ndarray, words: int
) -> list[LatentDimension]:
    """The dimensions, those of the largest KL first; `word_vectors` is [V, K], `kl` [K].

    Only the frequent words that make up `FREQUENT_SHARE` of the text are ranked: rare ones have the largest weights and
    say the least.
    """
    by_frequency = np.argsort(-frequencies, kind="stable")
    enough = np.searchsorted(np.cumsum(frequencies[by_frequency]), FREQUENT_SHARE) + 1
    candidates = by_frequency[: max(enough, 2 * words)]
    candidate_names = [names[candidate] for candidate in candidates]
    return [
        _dimension(int(number), word_vectors[candidates, number], candidate_names, float(kl[number]), words)
        for number in np.argsort(-merge_ties(kl), kind="stable")
    ]


def _dimension(number: int, weights: np.ndarray, names: list[str], kl: float, words: int) -> LatentDimension:
    order = np.argsort(-merge_ties(weights), kind="stable")
    first, last = order[:words], order[::-1][:words]
    return LatentDimension(
        number,
        tuple(names[i] for i in first),
        tuple(float(weights[i]) for i in first),
        tuple(names[i] for i in last),
        kl,
    )


def words_towards(dimension: LatentDimension, value: float) -> tuple[str, ...]:
    """The words at the end of the dimension on which `value` lies."""
    return dimension.words if value >= 0 else dimension.opposite_words


# Alignment


TOP_WORDS = 10


class LatentSpace(NamedTuple):
    """The latent dimensions of a model, and how frequent its words are."""

    word_vectors: np.ndarray  # [V, K]
    frequencies: np.ndarray  # [V]
    words: Sequence[str]
    kl_per_dimension: np.ndarray  # [K] nats


@dataclass(frozen=True)
class AlignmentRecord(DictRecord):
    in_place: float
    lowest: float  # likeness of the dimension that changed most
    matched: float
    moved: int  # dimensions whose partner in the matching has another number
    top_words: float
    n_topics: int
    n_words: int  # words that both models have


def alignment_record(before: LatentSpace, after: LatentSpace) -> AlignmentRecord:
    """How alike the dimensions are; both models need the same number of them."""
    if before.word_vectors.shape[1] != after.word_vectors.shape[1]:
        sizes = f"{before.word_vectors.shape[1]} and {after.word_vectors.shape[1]}"
        raise InputError(f"Cannot align models with different numbers of latent dimensions: {sizes}")
    place = {word: row for row, word in enumerate(after.words)}
    shared = np.array([(row, place[word]) for row, word in enumerate(before.words) if word in place]).reshape(-1, 2)
    if len(shared) < 2:
        raise InputError("The models share fewer than two words: their latent dimensions cannot be compared")
    old, new = shared.T
    likeness = dimension_likeness(before.word_vectors[old], after.word_vectors[new], before.frequencies[old])  # [K, K]
    _, partner = linear_sum_assignment(before.kl_per_dimension[:, None] * likeness, maximize=True)
    numbers = np.arange(len(likeness))
    words = []  # top words of each dimension, by its number, among the words that both models have
    for space, rows in ((before, old), (after, new)):
        names, vectors = [space.words[row] for row in rows], space.word_vectors[rows]
        ranked = rank_dimensions(vectors, space.frequencies[rows], names, space.kl_per_dimension, TOP_WORDS)
        words.append([dimension.words for dimension in sorted(ranked)])
    return AlignmentRecord(
        in_place=_mean(likeness.diagonal(), before.kl_per_dimension),
        lowest=float(likeness.diagonal().min()),
        matched=_mean(likeness[numbers, partner], before.kl_per_dimension),
        moved=int((partner != numbers).sum()),
        top_words=_mean(jaccard(*words).diagonal(), before.kl_per_dimension),
        n_topics=len(likeness),
        n_words=len(shared),
    )


def dimension_likeness(first: np.ndarray, second: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The weighted correlation of every column of the first, [V, K], with every one of the second; 0 for a constant."""
    shares = np.asarray(frequencies, np.float64)[:, None] / np.sum(frequencies, dtype=np.float64)
    parts = []
    for vectors in (first, second):
        centred = np.asarray(vectors, np.float64) - (shares * vectors).sum(0)
        weighted = np.sqrt(shares) * centred
        parts.append(weighted / np.maximum(np.linalg.norm(weighted, axis=0), 1e-12))
    likeness: np.ndarray = parts[0].T @ parts[1]  # [K, K]
    return likeness


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    """The weighted mean; the plain mean if all weights are zero."""
    return float(np.average(values, weights=weights if weights.sum() > 0 else None))
