"""Masses of words and groups in their urns, and what counts say of them: value and gradient, written out in torch.

compiled/kernels.c has the same for single precision on the CPU.
"""

import math

import torch
from torch import Tensor

from varitext.compiled import EffectiveCounts
from varitext.layers.grouped_counts import GroupedCounts
from varitext.layers.rising import log_rising_falling

LOG_MASS_RANGE = (-60.0, 30.0)  # of a_w: sums of exp() stay finite, and no mass vanishes
LOG2_E = math.log2(math.e)


class Urns:
    """The masses that logits [V, S B] give words and groups, and what the counts say of them.

    No gradient runs through this.
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

    def gradient(self) -> tuple[Tensor, Tensor]:
        """Of each column's log likelihood in its logits, [V, S B], and in the log scales, [G, S B]."""
        factorials, (number, columns) = self.counts.factorials, self.masses.shape
        slopes = self.rising.slope * factorials.signs
        words, others = factorials.words, torch.cat([factorials.groups, factorials.within, factorials.totals])
        in_masses = self.masses.new_zeros(2 * len(self.scales) + 1, columns)
        places = self.places.index_select(1, others) - number * columns
        in_masses.put_(places, slopes.index_select(1, others))
        in_groups, in_sums, in_total = torch.split(in_masses, [len(self.scales), len(self.scales), 1])
        in_groups += in_total  # [G, S B]   in b_g
        in_log_scales = in_groups * self.group_masses
        in_sums.addcmul_(in_groups, self.scales)  # [G, S B]   in A_g
        in_words = in_sums.index_select(0, self.counts.layout.of_words)  # [V, S B]   in a_w
        in_words.put_(self.places.index_select(1, words), slopes.index_select(1, words), accumulate=True)
        return in_words.mul_(self.masses), in_log_scales


@torch.no_grad()
def effective_counts(
    masses: Tensor, group_masses: Tensor, group_sums: Tensor, counts: GroupedCounts
) -> EffectiveCounts:
    """At masses that are the same for all documents: of words [V], and of groups [G] in the first urn and in theirs."""
    factorials, size = counts.factorials, len(counts.batch)
    every = torch.cat([masses, group_masses, group_sums, group_masses.sum()[None]])
    every = every.index_select(0, factorials.entries.items)  # [e]
    effective = every * log_rising_falling(every, factorials.falling).slope
    words, groups, within, totals = (
        effective.index_select(0, places)
        for places in (factorials.words, factorials.groups, factorials.within, factorials.totals)
    )
    of_groups = totals.new_zeros(len(group_sums), size)
    counts.groups.add_to(of_groups, (groups - within)[None], size)
    return EffectiveCounts(words, of_groups.T, totals)
