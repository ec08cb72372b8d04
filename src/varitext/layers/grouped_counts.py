"""The input of the DCM likelihood: counts of words and of their groups, and their rising factorials.

The rising factorial a^(n) = a (a + 1) ... (a + n - 1) is needed as a logarithm, with its slope in a, for whole n. Most
words of a document occur once or twice, so up to eight factors are multiplied one by one; Stirling's series does the
rest. This is faster than a difference of log Gammas, and accurate at large a, where the difference loses all digits.

The number of operations determines the cost, not their size. So all factorials of a batch go into one call, sorted by
n: each factor then works on a leading part of them.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from varitext import compiled
from varitext.batches.counts import CountBatch
from varitext.compiled.dcm import CountArrays, count_groups

SUMMED = 8  # factors of a^(n) taken one by one; from there on Stirling's series is exact to rounding


class LogRising(NamedTuple):
    """log a^(n) = log Gamma(a + n) - log Gamma(a), and its derivative in a."""

    value: Tensor
    slope: Tensor


class Falling(NamedTuple):
    """Whole numbers n in falling order; numbers above `SUMMED` are not sorted among themselves."""

    order: Tensor  # [e]   which number is at each position
    numbers: Tensor  # [e]   n in that order
    above: tuple[int, ...]  # how many of them are above 0, above 1, .. above SUMMED

    @classmethod
    def of(cls, numbers: Tensor) -> "Falling":
        factors = numbers.clamp(max=SUMMED + 1).to(torch.uint8)
        if factors.device.type == "cpu":  # numpy sorts 8-bit numbers by counting
            order = torch.from_numpy(np.argsort(SUMMED + 1 - factors.numpy(), kind="stable"))
        else:
            order = torch.sort(factors, descending=True, stable=True).indices
        each = torch.bincount(factors, minlength=SUMMED + 2).flip(0).cumsum(0)  # how many are SUMMED + 1, SUMMED, ..
        return cls(order, numbers.index_select(0, order), tuple(each[:-1].flip(0).tolist()))

    def places(self) -> Tensor:
        """The position of each number in the order, [e]: the inverse permutation."""
        places = torch.empty_like(self.order)
        return places.index_copy_(0, self.order, torch.arange(len(places), device=places.device))


def log_rising_falling(a: Tensor, falling: Falling) -> LogRising:
    """log a^(n) for a of shape [..., e] in falling order of n."""
    value, slope = torch.zeros_like(a), torch.zeros_like(a)
    for factor, above in enumerate(falling.above[:SUMMED]):
        if not above:
            return LogRising(value, slope)
        shifted = a[..., :above] + factor
        value[..., :above] += shifted.log()
        slope[..., :above] += shifted.reciprocal_()
    if large := falling.above[SUMMED]:
        rest = _log_rising_of_large(a[..., :large] + SUMMED, falling.numbers[:large] - SUMMED)
        value[..., :large] += rest.value
        slope[..., :large] += rest.slope
    return LogRising(value, slope)


def _log_rising_of_large(a: Tensor, n: Tensor) -> LogRising:
    """Stirling's series at a + n minus that at a, with the large terms cancelled by hand; a is at least 8."""
    low, high, growth = a.reciprocal(), (a + n).reciprocal(), torch.log1p(n / a)
    value = n * a.log() + (a + n - 0.5) * growth - n + _stirling(high) - _stirling(low)
    return LogRising(value, growth - 0.5 * (high - low) - _stirling_slope(high) + _stirling_slope(low))


def _stirling(inverse: Tensor) -> Tensor:
    square = inverse.square()
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))


def _stirling_slope(inverse: Tensor) -> Tensor:
    square = inverse.square()
    return square * (1 / 12 - square * (1 / 120 - square / 252))


class WordGroups(NamedTuple):
    """The group of each word, out of G groups; a group may be empty."""

    of_words: Tensor  # [V]
    order: Tensor  # [V]   the words, group by group
    starts: Tensor  # [G]   the place in `order` where each group begins

    @classmethod
    def of(cls, groups: Tensor, number: int) -> "WordGroups":
        ordered = torch.sort(groups, stable=True)
        starts = torch.searchsorted(ordered.values, torch.arange(number, device=groups.device))
        return cls(groups, ordered.indices, starts)

    def sums(self, rows: Tensor, weights: Tensor | None = None) -> Tensor:
        """Sums over each group of rows [V, M], times weights [V] if given: [G, M]."""
        ordered = None if weights is None else weights.index_select(0, self.order)
        return functional.embedding_bag(self.order, rows, self.starts, mode="sum", per_sample_weights=ordered)


class Entries(NamedTuple):
    """Non-zero counts of words, or of groups, in each document."""

    items: Tensor  # [n]
    documents: Tensor  # [n]
    counts: Tensor  # [n]

    def of(self, rows: Tensor, documents: int) -> Tensor:
        """The values of rows [items, S B] at these entries: [S, n]."""
        return rows.take(self.places(rows.shape[1], documents))

    def add_to(self, rows: Tensor, values: Tensor, documents: int) -> None:
        """Add `values` [S, n] to rows at these entries, each of which is a different item or document."""
        rows.put_(self.places(rows.shape[1], documents), values, accumulate=True)

    def sums(self, values: Tensor, documents: int) -> Tensor:
        """Sums of `values` [S, n] over each document's entries: [S, B]."""
        return values.new_zeros(len(values), documents).index_add_(1, self.documents, values)

    def places(self, columns: int, documents: int) -> Tensor:
        """Indices into flattened rows of S B columns, [S, n]."""
        first = torch.arange(0, columns, documents, device=self.items.device)[:, None]  # [S, 1]   column of each sample
        return first + (self.items * columns + self.documents)


class Factorials(NamedTuple):
    """All rising factorials of a batch in one falling order: words, groups in the first urn and in their own, totals.

    Items index the rows of all these masses, [V + 2 G + 1, S B], in this order.
    """

    entries: Entries
    signs: Tensor  # [e]   1 for a factor of the probability, -1 for a divisor
    falling: Falling
    words: Tensor  # [n]   places of the words' factorials, in the order of the batch
    groups: Tensor  # [m]   of the groups' in the first urn
    within: Tensor  # [m]   of the groups' own
    totals: Tensor  # [B]   of the documents' totals

    @classmethod
    def of(cls, batch: CountBatch, groups: Entries, layout: "WordGroups") -> "Factorials":
        size, device = len(batch), batch.words.device
        first, number = batch.vocabulary_size, len(layout.starts)
        total = torch.full((size,), first + 2 * number, device=device)
        items = torch.cat([batch.words, first + groups.items, first + number + groups.items, total])
        everyone = torch.arange(size, device=device)
        documents = torch.cat([batch.documents, groups.documents, groups.documents, everyone])
        falling = Falling.of(torch.cat([batch.counts, groups.counts, groups.counts, batch.lengths]))
        lengths = [len(batch.words), len(groups.items), len(groups.items), size]
        signs = torch.ones_like(falling.numbers)
        parts = torch.split(falling.places(), lengths)
        signs.index_fill_(0, torch.cat(parts[2:]), -1)
        order = falling.order
        entries = Entries(items.index_select(0, order), documents.index_select(0, order), falling.numbers)
        return cls(entries, signs, falling, *parts)


class GroupedCounts:
    """A batch's counts of words and of groups, in the form that the C kernels or torch need."""

    def __init__(self, batch: CountBatch, layout: WordGroups):
        self.batch, self.layout = batch, layout
        self.words = Entries(batch.words, batch.documents, batch.counts)

    @cached_property
    def groups(self) -> Entries:
        if compiled.usable(self.batch.counts):
            return Entries(*self.arrays.groups[1:])
        number, batch = len(self.layout.starts), self.batch
        dense = batch.counts.new_zeros(len(batch) * number)
        dense.index_add_(0, batch.documents * number + self.layout.of_words.index_select(0, batch.words), batch.counts)
        pairs = torch.nonzero(dense)[:, 0]
        return Entries(pairs % number, pairs // number, dense.index_select(0, pairs))

    @cached_property
    def arrays(self) -> CountArrays:
        batch, of_words = self.batch, self.layout.of_words
        starts = torch.cat([batch.starts, batch.starts.new_tensor([len(batch.words)])])
        groups = count_groups(starts, batch.words, batch.counts, of_words, len(self.layout.starts))
        return CountArrays(starts, batch.words, batch.counts, batch.lengths, groups, of_words)

    @cached_property
    def factorials(self) -> Factorials:
        return Factorials.of(self.batch, self.groups, self.layout)
