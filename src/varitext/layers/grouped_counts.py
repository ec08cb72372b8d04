"""Counts of words that lie in groups: which words and which groups a batch of documents has, and how often."""

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from varitext import compiled
from varitext.batches.counts import CountBatch
from varitext.compiled import CountArrays
from varitext.layers.rising import Falling


class WordGroups(NamedTuple):
    """Which words lie in which of G groups; a group may be empty."""

    of_words: Tensor  # [V]
    order: Tensor  # [V]   the words, group by group
    starts: Tensor  # [G]   the place in `order` where each group begins

    @classmethod
    def of(cls, groups: Tensor, number: int) -> "WordGroups":
        ordered = torch.sort(groups, stable=True)
        starts = torch.searchsorted(ordered.values, torch.arange(number, device=groups.device))
        return cls(groups, ordered.indices, starts)

    def sums(self, rows: Tensor, weights: Tensor | None = None) -> Tensor:
        """Of rows [V, M], one per word, times weights [V] if there are any: [G, M]."""
        ordered = None if weights is None else weights.index_select(0, self.order)
        return functional.embedding_bag(self.order, rows, self.starts, mode="sum", per_sample_weights=ordered)


class Entries(NamedTuple):
    """Counts above zero: of words, or of groups, in each document."""

    items: Tensor  # [n]
    documents: Tensor  # [n]
    counts: Tensor  # [n]

    def of(self, rows: Tensor, documents: int) -> Tensor:
        """The values of rows [items, S B] at these entries: [S, n]."""
        return rows.take(self.places(rows.shape[1], documents))

    def add_to(self, rows: Tensor, values: Tensor, documents: int) -> None:
        """The other way: `values` [S, n] into rows. No two entries are of the same item and document."""
        rows.put_(self.places(rows.shape[1], documents), values, accumulate=True)

    def sums(self, values: Tensor, documents: int) -> Tensor:
        """Of `values` [S, n] over each document's entries: [S, B]."""
        return values.new_zeros(len(values), documents).index_add_(1, self.documents, values)

    def places(self, columns: int, documents: int) -> Tensor:
        """In flattened rows of S B columns, [S, n]."""
        first = torch.arange(0, columns, documents, device=self.items.device)[:, None]  # [S, 1]   column of each sample
        return first + (self.items * columns + self.documents)


class Factorials(NamedTuple):
    """All rising factorials of a batch in one falling order: words, groups in the first urn and in their own, totals.

    Items are rows of the masses of all these, [V + 2 G + 1, S B], in the order in which they are named here.
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
    """A batch's counts of words and of groups; and as those want them who compute in C, or in torch."""

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
        groups = compiled.count_groups(starts, batch.words, batch.counts, of_words, len(self.layout.starts))
        return CountArrays(starts, batch.words, batch.counts, batch.lengths, groups, of_words)

    @cached_property
    def factorials(self) -> Factorials:
        return Factorials.of(self.batch, self.groups, self.layout)
