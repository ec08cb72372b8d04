"""Kernels of the DCM likelihood (`layers/dcm.py`) and of curvatures (`layers/curvature.py`), one call each."""

from typing import NamedTuple

from torch import Tensor

from varitext.compiled import call


class GroupCounts(NamedTuple):
    """Non-zero counts of groups, document by document."""

    starts: Tensor  # [B + 1]   first entry of each document, and the end
    items: Tensor  # [m]
    documents: Tensor  # [m]
    counts: Tensor  # [m]


class CountArrays(NamedTuple):
    """Counts of words and of groups, as the kernels read them."""

    starts: Tensor  # [B + 1]
    words: Tensor  # [n]
    counts: Tensor  # [n]
    lengths: Tensor  # [B]
    groups: GroupCounts
    group_of_word: Tensor  # [V]


def count_groups(starts: Tensor, words: Tensor, counts: Tensor, group_of_word: Tensor, number: int) -> GroupCounts:
    group_starts, items, documents = (each.new_empty(each.shape) for each in (starts, words, words))
    sums = counts.new_empty(counts.shape)
    sizes = len(starts) - 1, len(group_of_word), number, len(words)
    found = call("count_groups", *sizes, starts, words, counts, group_of_word, group_starts, items, documents, sums)
    return GroupCounts(group_starts, items[:found], documents[:found], sums[:found])


class EffectiveCounts(NamedTuple):
    """The effective number of n draws from a mass a: a (digamma(a + n) - digamma(a)), between 1 and n."""

    words: Tensor  # [n]
    groups: Tensor  # [B, G]   in the first urn minus in their own
    totals: Tensor  # [B]


def effective_counts(arrays: CountArrays, masses: Tensor, group_masses: Tensor, group_sums: Tensor) -> EffectiveCounts:
    """Effective counts at masses that all documents share: words [V], groups in the first urn and their own [G]."""
    groups = masses.new_zeros(len(arrays.lengths), len(group_masses))
    words, totals = (each.new_empty(each.shape) for each in (arrays.counts, arrays.lengths))
    found = EffectiveCounts(words, groups, totals)
    call("effective_counts", *groups.shape, *_entries(arrays), masses, group_masses, group_sums, *found)
    return found


class Likelihood(NamedTuple):
    """Value and gradient of the DCM likelihood (`layers/dcm.py`)."""

    log_likelihood: Tensor  # [B]
    group_weights: Tensor  # [G, B]
    in_log_scales: Tensor | None  # [G, B]


def likelihood(
    logits: Tensor, scales: Tensor, log_mass_range: tuple[float, float], arrays: CountArrays, gradient: bool
) -> Likelihood:
    """The DCM likelihood at logits [V, B]; overwrites them with their gradient if `gradient`, otherwise with masses."""
    (number, documents), groups = logits.shape, len(scales)
    of_groups = logits.new_empty(1 + gradient, groups, documents)
    found = Likelihood(logits.new_empty(documents), of_groups[0], of_groups[1] if gradient else None)
    sizes = documents, number, groups
    call("urns", *sizes, scales, *log_mass_range, arrays.group_of_word, *_entries(arrays), logits, *found)
    return found


def outer_squares(means: Tensor, within: Tensor) -> Tensor:
    """The lower triangles of r r^T + C for each column r of means [K, G]: [K (K + 1) / 2, G]."""
    means, (size, groups) = means.contiguous(), means.shape
    squares = means.new_empty(size * (size + 1) // 2, groups)
    call("outer_squares", size, groups, means, within.contiguous(), squares)
    return squares


def inverse_cholesky(curvature: Tensor, expected: Tensor, worth: Tensor, jitter: float) -> Tensor:
    """As in `layers/curvature.py`, for lower triangles [K (K + 1) / 2, B] minus expected expected^T / worth."""
    documents, size = expected.shape
    curvature, columns, worth = (each.contiguous() for each in (curvature, expected.T, worth))
    roots = expected.new_empty(documents, size, size)
    call("inverse_cholesky", documents, size, jitter, curvature, columns, worth, roots)
    return roots


def covariance_times(roots: Tensor, vectors: Tensor) -> Tensor:
    """M^T M v for each lower triangular M, [B, K, K], and v, [B, K]."""
    vectors = vectors.contiguous()
    products = vectors.new_empty(vectors.shape)
    call("covariance_times", *vectors.shape, roots, vectors, products)
    return products


def _entries(arrays: CountArrays) -> tuple[Tensor, ...]:
    groups = arrays.groups
    return arrays.starts, arrays.words, arrays.counts, groups.starts, groups.items, groups.counts, arrays.lengths
