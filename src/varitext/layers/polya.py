"""The Polya likelihood (Dirichlet compound multinomial) of words in groups, from sparse counts.

An urn holds a mass a_w of each word. A word is drawn, and put back with one more of its kind: words come in bursts. The
probability of a sequence depends on its counts x_w and its length N alone:

    log p(x_1 .. x_N) = sum_w log a_w^(x_w) - log A^(N),        A = sum_w a_w,

where a^(n) = a (a + 1) ... (a + n - 1) is the rising factorial. Here words lie in groups, and a group has an urn of its
own: the first urn says which group, with masses b_g, the group's urn says which word. A group's word then calls for
others of the group, not only for itself:

    log p = sum_g [ log b_g^(n_g) - log A_g^(n_g) ] - log B^(N) + sum_w log a_w^(x_w)

with n_g the words of group g, A_g = sum_{w in g} a_w, b_g = s_g A_g and B = sum_g b_g. With all s_g = 1 this is one
urn. The derivation is in docs/polya.md.

Logits are [V, S B], one row per word: sums over groups are then sums of rows.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from varitext.batches.counts import CountBatch

LOG_MASS_RANGE = (-60.0, 30.0)  # of a_w: sums of exp() stay finite, and no mass vanishes
SUMMED = 8  # factors of a^(n) taken one by one; from there on Stirling's series is exact to rounding


class LogRising(NamedTuple):
    """log a^(n) = log Gamma(a + n) - log Gamma(a), and its derivative in a."""

    value: Tensor
    slope: Tensor


def log_rising(a: Tensor, n: Tensor) -> LogRising:
    """For a of shape [..., e] and whole n, [e]."""
    order = torch.sort(n, descending=True, stable=True).indices
    back = torch.empty_like(order).index_copy_(0, order, torch.arange(len(n), device=n.device))
    value, slope = log_rising_falling(a[..., order], n[order])
    return LogRising(value[..., back], slope[..., back])


def log_rising_falling(a: Tensor, n: Tensor) -> LogRising:
    """The same where n is sorted, the largest first: then every step works on the first so many of them.

    Most words of a document stand there once or twice, so factors are taken one by one as long as there are any. This
    is not only faster than a difference of log Gammas but right where that loses all its digits: at large a.
    """
    value, slope = torch.zeros_like(a), torch.zeros_like(a)
    numbers = torch.arange(SUMMED + 1, dtype=n.dtype, device=n.device)
    for factor, above in enumerate(torch.searchsorted(-n, -numbers).tolist()):  # how many n are above `factor`
        if not above:
            return LogRising(value, slope)
        shifted = a[..., :above] + factor
        if factor < SUMMED:
            value[..., :above] += shifted.log()
            slope[..., :above] += shifted.reciprocal_()
        else:
            rest = _log_rising_of_large(shifted, n[:above] - SUMMED)
            value[..., :above] += rest.value
            slope[..., :above] += rest.slope
    return LogRising(value, slope)


def _log_rising_of_large(a: Tensor, n: Tensor) -> LogRising:
    """Stirling's series at a + n minus that at a, the large terms subtracted on paper; a is at least 8."""
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
    """Counts above zero: of words, or of groups, in each document. The largest come first."""

    items: Tensor  # [n]
    documents: Tensor  # [n]
    counts: Tensor  # [n]

    @classmethod
    def sorted(cls, items: Tensor, documents: Tensor, counts: Tensor) -> "Entries":
        falling = torch.sort(counts, descending=True, stable=True)
        return cls(items[falling.indices], documents[falling.indices], falling.values)

    def of(self, rows: Tensor, documents: int) -> Tensor:
        """The values of rows [items, S B] at these entries: [S, n]."""
        return rows.take(self._places(rows, documents))

    def add_to(self, rows: Tensor, values: Tensor, documents: int) -> None:
        """The other way: `values` [S, n] into rows. No two entries are of the same item and document."""
        rows.put_(self._places(rows, documents), values, accumulate=True)

    def sums(self, values: Tensor, documents: int) -> Tensor:
        """Of `values` [S, n] over each document's entries: [S, B]."""
        return values.new_zeros(len(values), documents).index_add_(1, self.documents, values)

    def _places(self, rows: Tensor, documents: int) -> Tensor:
        """In the flattened rows, [S, n]."""
        columns = rows.shape[1]
        first = torch.arange(0, columns, documents, device=rows.device)[:, None]  # [S, 1]   column of each sample
        return first + self.items * columns + self.documents


class GroupedCounts(NamedTuple):
    """A batch's counts of words and of groups."""

    batch: CountBatch
    words: Entries
    groups: Entries
    layout: WordGroups

    @classmethod
    def of(cls, batch: CountBatch, layout: WordGroups) -> "GroupedCounts":
        number = len(layout.starts)
        dense = batch.counts.new_zeros(len(batch) * number)
        dense.index_add_(0, batch.documents * number + layout.of_words[batch.words], batch.counts)
        pairs = torch.nonzero(dense)[:, 0]
        words = Entries.sorted(batch.words, batch.documents, batch.counts)
        return cls(batch, words, Entries.sorted(pairs % number, pairs // number, dense[pairs]), layout)


class PolyaGradient(NamedTuple):
    logits: Tensor  # [V, S B]
    log_scales: Tensor  # [G]


class Urns:
    """The masses that logits [V, S B] give words and groups, and what the counts say of them: value and gradient."""

    def __init__(self, logits: Tensor, log_scales: Tensor, counts: GroupedCounts):
        size = self.size = len(counts.batch)
        self.counts, self.scales = counts, log_scales.exp()[:, None]
        self.masses = logits.clamp(*LOG_MASS_RANGE).exp_()  # [V, S B]   a_w
        self.group_sums = counts.layout.sums(self.masses)  # [G, S B]   A_g
        self.group_masses = self.group_sums * self.scales  # [G, S B]   b_g
        self.total = self.group_masses.sum(0).view(-1, size)  # [S, B]   B
        self.words = log_rising_falling(counts.words.of(self.masses, size), counts.words.counts)  # [S, n]
        self.groups = log_rising_falling(counts.groups.of(self.group_masses, size), counts.groups.counts)  # [S, m]
        self.within = log_rising_falling(counts.groups.of(self.group_sums, size), counts.groups.counts)  # [S, m]
        self.all = log_rising(self.total, counts.batch.lengths)  # [S, B]

    def log_likelihood(self) -> Tensor:
        words, groups = self.counts.words, self.counts.groups
        in_groups = groups.sums(self.groups.value - self.within.value, self.size)
        return words.sums(self.words.value, self.size) + in_groups - self.all.value  # [S, B]

    def gradient(self, weights: Tensor) -> PolyaGradient:
        """Of sum(weights * log_likelihood), weights [S, B]."""
        counts, size = self.counts, self.size
        in_groups = (-weights * self.all.slope).reshape(1, -1).repeat(len(self.scales), 1)  # [G, S B]   in b_g
        counts.groups.add_to(in_groups, self.groups.slope * weights[:, counts.groups.documents], size)
        in_scales = (in_groups * self.group_masses).sum(1)
        in_groups *= self.scales  # now in A_g
        counts.groups.add_to(in_groups, -self.within.slope * weights[:, counts.groups.documents], size)
        in_words = in_groups[counts.layout.of_words]  # [V, S B]   in a_w
        counts.words.add_to(in_words, self.words.slope * weights[:, counts.words.documents], size)
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
