"""The Dirichlet-compound-multinomial (DCM) likelihood of words in groups, from sparse counts; it models burstiness.

In Polya's urn there is a mass a_w of each word, and a word that is drawn is put back with one more of its kind. The
probability of a sequence depends only on its counts x_w and its length N:

    log p(x_1 .. x_N) = sum_w log a_w^(x_w) - log A^(N),        A = sum_w a_w,

where a^(n) = a (a + 1) ... (a + n - 1) is the rising factorial. Here words are in groups, each with an urn of its own:
the first urn, with masses b_g, gives the group, and the group's urn gives the word. A word then makes the others of
its group more probable, not only itself:

    log p = sum_g [ log b_g^(n_g) - log A_g^(n_g) ] - log B^(N) + sum_w log a_w^(x_w)

with n_g the words of group g, A_g = sum_{w in g} a_w, b_g = s_g A_g and B = sum_g b_g. With all s_g = 1 this is a
single urn. docs/explanation/dcm-likelihood.md has the derivation.

Masses are a_w = exp(weights_w . inputs), with weights [V, D] and inputs [D, S B]. Logits are [V, S B], one row per
word, so that sums over groups are sums of rows. Everything is computed in C (`compiled/kernels.c`, single precision
on the CPU) if possible, and otherwise in torch (`Masses`).
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from varitext import compiled
from varitext.compiled import dcm as compiled_dcm
from varitext.compiled.dcm import EffectiveCounts
from varitext.layers.grouped_counts import Entries, GroupedCounts, log_rising_falling

LOG_MASS_RANGE = (-60.0, 30.0)  # of a_w: sums of exp() stay finite, and no mass vanishes
LOG2_E = math.log2(math.e)


class Masses:
    """The masses of words and groups at logits [V, S B], and the log likelihood of counts with its gradient, in torch.

    Autograd does not see any of this.
    """

    @torch.no_grad()
    def __init__(self, logits: Tensor, log_scales: Tensor, counts: GroupedCounts):
        (number, columns), groups = logits.shape, len(log_scales)
        self.size, self.counts, self.scales = len(counts.batch), counts, log_scales.exp()[:, None]
        rows = logits.new_empty(number + 2 * groups + 1, columns)
        self.masses, self.group_masses, self.group_sums, total = torch.split(rows, [number, groups, groups, 1])
        # exp2 is several times faster than exp in torch
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
        """The gradient of each column's log likelihood in its logits, [V, S B], and in the log scales, [G, S B]."""
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


class Evaluated(NamedTuple):
    """The log likelihood of each column of the inputs, and its gradient."""

    log_likelihood: Tensor  # [S, B]
    group_weights: Tensor  # [G, S B]   E = B (digamma(B + N) - digamma(B)), shared as the first urn's masses are
    in_inputs: Tensor  # [D, S B]
    in_log_scales: Tensor  # [G, S B]
    in_logits: tuple[Tensor, ...]  # S times [V, B]; in torch, once [V, S B]


@torch.no_grad()
def evaluate(weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Evaluated:
    if not _in_c(weights, log_scales, counts):
        masses = Masses(weights @ inputs, log_scales, counts)
        in_logits, in_log_scales = masses.gradient()
        in_inputs = weights.T @ in_logits
        return Evaluated(masses.log_likelihood(), masses.group_weights(), in_inputs, in_log_scales, (in_logits,))
    samples, scales = [], log_scales.exp()
    for columns in torch.split(inputs, len(counts.batch), 1):
        logits = weights @ columns
        found = compiled_dcm.likelihood(logits, scales, LOG_MASS_RANGE, counts.arrays, gradient=True)
        samples.append((*found, weights.T @ logits, logits))  # logits have become their gradient
    value, group_weights, in_scales, in_columns, in_each = zip(*samples, strict=True)
    return Evaluated(torch.stack(value), _joined(group_weights), _joined(in_columns), _joined(in_scales), in_each)


def _joined(samples: tuple[Tensor, ...]) -> Tensor:
    return samples[0] if len(samples) == 1 else torch.cat(samples, -1)


@torch.no_grad()
def value_of(weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Tensor:
    if not _in_c(weights, log_scales, counts):
        return Masses(weights @ inputs, log_scales, counts).log_likelihood()
    scales = log_scales.exp()
    samples = (
        compiled_dcm.likelihood(weights @ columns, scales, LOG_MASS_RANGE, counts.arrays, gradient=False).log_likelihood
        for columns in torch.split(inputs, len(counts.batch), 1)
    )
    return torch.stack([*samples])


@torch.no_grad()
def effective_counts(
    masses: Tensor, group_masses: Tensor, group_sums: Tensor, counts: GroupedCounts
) -> EffectiveCounts:
    """Effective counts at masses that all documents share: words [V], groups [G] in the first urn and in their own."""
    if _in_c(masses, group_masses, counts):
        return compiled_dcm.effective_counts(counts.arrays, masses, group_masses, group_sums)
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


def _in_c(weights: Tensor, log_scales: Tensor, counts: GroupedCounts) -> bool:
    return compiled.usable(weights, log_scales, counts.batch.counts)


class _DCMLogLikelihood(torch.autograd.Function):
    """Computes value and gradient together; the backward pass multiplies the inputs, not the [V, S B] numbers."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Tensor:
        found = evaluate(weights, inputs, log_scales, counts)
        ctx.found, ctx.inputs = found, inputs
        return found.log_likelihood

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        found, by_column = ctx.found, gradient.reshape(-1)
        parts = torch.split(ctx.inputs * by_column, [each.shape[1] for each in found.in_logits], 1)
        in_weights = parts[0] @ found.in_logits[0].T  # [D, V]   faster than the other way round
        for part, in_logits in zip(parts[1:], found.in_logits[1:], strict=True):
            in_weights.addmm_(part, in_logits.T)
        return in_weights.T, found.in_inputs * by_column, found.in_log_scales @ by_column, None


def dcm_log_likelihood(weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Tensor:
    """log p(X | h) of each document and sample, [S, B]; log_scales [G] are log s_g.

    It is the likelihood of one order of the words, so it is comparable with `multinomial_log_likelihood`.
    """
    if not torch.is_grad_enabled():
        return value_of(weights, inputs, log_scales, counts)
    value: Tensor = _DCMLogLikelihood.apply(weights, inputs, log_scales, counts)  # type: ignore[no-untyped-call]  # torch has no types there
    return value


@torch.no_grad()
def next_word_log_probabilities(logits: Tensor, log_scales: Tensor, drawn: GroupedCounts, words: Entries) -> Tensor:
    """log p(next word | h, the words drawn so far) of the word at each entry, [S, n].

    The urns have changed with the words drawn: (b_g + n_g) / (B + N)  (a_w + x_w) / (A_g + n_g).
    """
    left, size = Masses(logits, log_scales, drawn), len(drawn.batch)
    drawn.words.add_to(left.masses, drawn.words.counts.expand(len(left.total), -1), size)
    of_groups = drawn.groups.counts.expand(len(left.total), -1)
    for masses in (left.group_sums, left.group_masses):
        drawn.groups.add_to(masses, of_groups, size)
    groups = words._replace(items=drawn.layout.of_words[words.items])
    word, group = words.of(left.masses, size), groups.of(left.group_masses, size)
    within = groups.of(left.group_sums, size)
    return word.log() + group.log() - within.log() - (left.total + drawn.batch.lengths).log()[:, words.documents]
