"""The Polya likelihood (Dirichlet compound multinomial) of words in groups, from sparse counts.

An urn holds a mass a_w of each word. A word is drawn, and put back with one more of its kind: words come in bursts. The
probability of a sequence depends on its counts x_w and its length N alone:

    log p(x_1 .. x_N) = sum_w log a_w^(x_w) - log A^(N),        A = sum_w a_w,

where a^(n) = a (a + 1) ... (a + n - 1) is the rising factorial. Here words lie in groups, and a group has an urn of its
own: the first urn says which group, with masses b_g, the group's urn says which word. A group's word then calls for
others of the group, not only for itself:

    log p = sum_g [ log b_g^(n_g) - log A_g^(n_g) ] - log B^(N) + sum_w log a_w^(x_w)

with n_g the words of group g, A_g = sum_{w in g} a_w, b_g = s_g A_g and B = sum_g b_g. With all s_g = 1 this is one
urn. `rising.py` has the factorials, docs/polya.md the derivation.

Logits are [V, S B], one row per word: sums over groups are then sums of rows.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from varitext.batches.counts import CountBatch
from varitext.layers.rising import Falling, log_rising_falling

LOG_MASS_RANGE = (-60.0, 30.0)  # of a_w: sums of exp() stay finite, and no mass vanishes
LOG2_E = math.log2(math.e)


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

    def sums(self, rows: Tensor) -> Tensor:
        """Of rows [V, M], one per word: [G, M]."""
        return functional.embedding_bag(self.order, rows, self.starts, mode="sum")


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


class GroupedCounts(NamedTuple):
    """A batch's counts of words and of groups."""

    batch: CountBatch
    words: Entries
    groups: Entries
    layout: WordGroups
    factorials: Factorials

    @classmethod
    def of(cls, batch: CountBatch, layout: WordGroups) -> "GroupedCounts":
        number = len(layout.starts)
        dense = batch.counts.new_zeros(len(batch) * number)
        dense.index_add_(0, batch.documents * number + layout.of_words.index_select(0, batch.words), batch.counts)
        pairs = torch.nonzero(dense)[:, 0]
        groups = Entries(pairs % number, pairs // number, dense.index_select(0, pairs))
        words = Entries(batch.words, batch.documents, batch.counts)
        return cls(batch, words, groups, layout, Factorials.of(batch, groups, layout))


class PolyaGradient(NamedTuple):
    logits: Tensor  # [V, S B]
    log_scales: Tensor  # [G]


class Urns:
    """The masses that logits [V, S B] give words and groups, and what the counts say of them: value and gradient.

    No gradient runs through this: it is written out.
    """

    @torch.no_grad()
    def __init__(self, logits: Tensor, log_scales: Tensor, counts: GroupedCounts):
        (number, columns), groups = logits.shape, len(log_scales)
        self.size, self.counts, self.scales = len(counts.batch), counts, log_scales.exp()[:, None]
        rows = logits.new_empty(number + 2 * groups + 1, columns)
        self.masses, self.group_masses, self.group_sums, total = torch.split(rows, [number, groups, groups, 1])
        # a power of two: torch has it several times faster than exp()
        torch.clamp(logits, *LOG_MASS_RANGE, out=self.masses).mul_(LOG2_E).exp2_()  # [V, S B]   a_w
        self.group_sums.copy_(counts.layout.sums(self.masses))  # [G, S B]   A_g
        torch.mul(self.group_sums, self.scales, out=self.group_masses)  # [G, S B]   b_g
        torch.sum(self.group_masses, 0, keepdim=True, out=total)
        self.total = total.view(-1, self.size)  # [S, B]   B
        self.places = counts.factorials.entries.places(columns, self.size)
        self.rising = log_rising_falling(rows.take(self.places), counts.factorials.falling)  # [S, e]

    def log_likelihood(self) -> Tensor:
        factorials = self.counts.factorials
        return factorials.entries.sums(self.rising.value * factorials.signs, self.size)  # [S, B]

    def group_weights(self) -> Tensor:
        """E = B (digamma(B + N) - digamma(B)), shared as the first urn's masses are: [G, S B]."""
        slope = self.rising.slope.index_select(1, self.counts.factorials.totals)
        return self.group_masses * slope.view(1, -1)

    def gradient(self, weights: Tensor | None = None) -> PolyaGradient:
        """Of sum(weights * log_likelihood), weights [S, B]; None are ones."""
        factorials, (number, columns) = self.counts.factorials, self.masses.shape
        slopes = self.rising.slope * factorials.signs
        if weights is not None:
            slopes *= weights.index_select(1, factorials.entries.documents)
        words, others = factorials.words, torch.cat([factorials.groups, factorials.within, factorials.totals])
        in_masses = self.masses.new_zeros(2 * len(self.scales) + 1, columns)
        places = self.places.index_select(1, others) - number * columns
        in_masses.put_(places, slopes.index_select(1, others))
        in_groups, in_sums, in_total = torch.split(in_masses, [len(self.scales), len(self.scales), 1])
        in_groups += in_total  # [G, S B]   in b_g
        in_scales = (in_groups * self.group_masses).sum(1)
        in_sums.addcmul_(in_groups, self.scales)  # [G, S B]   in A_g
        in_words = in_sums.index_select(0, self.counts.layout.of_words)  # [V, S B]   in a_w
        in_words.put_(self.places.index_select(1, words), slopes.index_select(1, words), accumulate=True)
        return PolyaGradient(in_words.mul_(self.masses), in_scales)


class _PolyaLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Tensor:
        ctx.urns = urns = Urns(logits, log_scales, counts)
        return urns.log_likelihood()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        return *ctx.urns.gradient(gradient), None


def polya_log_likelihood(logits: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Tensor:
    """log p(X | h) of each document and sample, [S, B]; logits [V, S B] are log a_w, log_scales [G] are log s_g.

    That of one order of the words, like `multinomial_log_likelihood`: the two compare.
    """
    value: Tensor = _PolyaLogLikelihood.apply(logits, log_scales, counts)  # type: ignore[no-untyped-call]  # torch has no types there
    return value


@torch.no_grad()
def next_word_log_probabilities(logits: Tensor, log_scales: Tensor, drawn: GroupedCounts, words: Entries) -> Tensor:
    """log p(the next word of the document is this one | h, the words drawn so far) at each entry, [S, n].

    That of the urns as the drawn words have left them: (b_g + n_g) / (B + N)  (a_w + x_w) / (A_g + n_g).
    """
    urns, size = Urns(logits, log_scales, drawn), len(drawn.batch)
    drawn.words.add_to(urns.masses, drawn.words.counts.expand(len(urns.total), -1), size)
    of_groups = drawn.groups.counts.expand(len(urns.total), -1)
    for masses in (urns.group_sums, urns.group_masses):
        drawn.groups.add_to(masses, of_groups, size)
    groups = words._replace(items=drawn.layout.of_words[words.items])
    word, group, within = (
        words.of(urns.masses, size),
        groups.of(urns.group_masses, size),
        groups.of(urns.group_sums, size),
    )
    return word.log() + group.log() - within.log() - (urns.total + drawn.batch.lengths).log()[:, words.documents]
