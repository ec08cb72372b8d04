"""The DCM likelihood (Dirichlet compound multinomial) of words in groups, from sparse counts.

An urn holds a mass a_w of each word. A word is drawn, and put back with one more of its kind: words come in bursts. The
probability of a sequence depends on its counts x_w and its length N alone:

    log p(x_1 .. x_N) = sum_w log a_w^(x_w) - log A^(N),        A = sum_w a_w,

where a^(n) = a (a + 1) ... (a + n - 1) is the rising factorial. Here words lie in groups, and a group has an urn of its
own: the first urn says which group, with masses b_g, the group's urn says which word. A group's word then calls for
others of the group, not only for itself:

    log p = sum_g [ log b_g^(n_g) - log A_g^(n_g) ] - log B^(N) + sum_w log a_w^(x_w)

with n_g the words of group g, A_g = sum_{w in g} a_w, b_g = s_g A_g and B = sum_g b_g. With all s_g = 1 this is one
urn. `urns.py` computes this, `rising.py` has the factorials, docs/dcm.md the derivation.

Masses are a_w = exp(weights_w . inputs), with weights [V, D] and inputs [D, S B]. Logits are [V, S B], one row per
word: sums over groups are then sums of rows. All this is computed in C where that can be, else in torch: `evaluate`.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from varitext import compiled
from varitext.compiled import EffectiveCounts
from varitext.layers import urns
from varitext.layers.grouped_counts import Entries, GroupedCounts
from varitext.layers.urns import LOG_MASS_RANGE, Urns


class Evaluated(NamedTuple):
    """The log likelihood of each column of the inputs, and its gradient."""

    log_likelihood: Tensor  # [S, B]
    group_weights: Tensor  # [G, S B]   E = B (digamma(B + N) - digamma(B)), shared as the first urn's masses are
    in_inputs: Tensor  # [D, S B]
    in_log_scales: Tensor  # [G, S B]
    in_logits: tuple[Tensor, ...]  # S times [V, B]; in torch, once [V, S B]


@torch.no_grad()
def evaluate(weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Evaluated:
    way = _evaluate_in_c if _in_c(weights, log_scales, counts) else _evaluate_in_torch
    return way(weights, inputs, log_scales, counts)


def _evaluate_in_torch(weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Evaluated:
    found = Urns(weights @ inputs, log_scales, counts)
    in_logits, in_log_scales = found.gradient()
    in_inputs = weights.T @ in_logits
    return Evaluated(found.log_likelihood(), found.group_weights(), in_inputs, in_log_scales, (in_logits,))


def _evaluate_in_c(weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Evaluated:
    samples, scales = [], log_scales.exp()
    for columns in torch.split(inputs, len(counts.batch), 1):
        logits = weights @ columns
        found = compiled.urns(logits, scales, LOG_MASS_RANGE, counts.arrays, gradient=True)
        samples.append((*found, weights.T @ logits, logits))  # logits have become their gradient
    value, group_weights, in_log_scales, in_inputs, in_logits = zip(*samples, strict=True)
    return Evaluated(torch.stack(value), _joined(group_weights), _joined(in_inputs), _joined(in_log_scales), in_logits)


def _joined(samples: tuple[Tensor, ...]) -> Tensor:
    return samples[0] if len(samples) == 1 else torch.cat(samples, -1)


@torch.no_grad()
def value_of(weights: Tensor, inputs: Tensor, log_scales: Tensor, counts: GroupedCounts) -> Tensor:
    """The log likelihood alone, [S, B]."""
    if not _in_c(weights, log_scales, counts):
        return Urns(weights @ inputs, log_scales, counts).log_likelihood()
    scales = log_scales.exp()
    samples = (
        compiled.urns(weights @ columns, scales, LOG_MASS_RANGE, counts.arrays, gradient=False).log_likelihood
        for columns in torch.split(inputs, len(counts.batch), 1)
    )
    return torch.stack([*samples])


def effective_counts(
    masses: Tensor, group_masses: Tensor, group_sums: Tensor, counts: GroupedCounts
) -> EffectiveCounts:
    """What documents' words are worth at masses that are the same for all: of words [V], and of groups [G] in the first
    urn and in their own."""
    if _in_c(masses, group_masses, counts):
        return compiled.effective_counts(counts.arrays, masses, group_masses, group_sums)
    return urns.effective_counts(masses, group_masses, group_sums, counts)


def _in_c(weights: Tensor, log_scales: Tensor, counts: GroupedCounts) -> bool:
    return compiled.usable(weights, log_scales, counts.batch.counts)


class _DCMLogLikelihood(torch.autograd.Function):
    """Value and gradient are found in one go, while the numbers are at hand; what is multiplied with the gradient later
    are the inputs, not the [V, S B] numbers."""

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

    That of one order of the words, like `multinomial_log_likelihood`: the two compare.
    """
    if not torch.is_grad_enabled():
        return value_of(weights, inputs, log_scales, counts)
    value: Tensor = _DCMLogLikelihood.apply(weights, inputs, log_scales, counts)  # type: ignore[no-untyped-call]  # torch has no types there
    return value


@torch.no_grad()
def next_word_log_probabilities(logits: Tensor, log_scales: Tensor, drawn: GroupedCounts, words: Entries) -> Tensor:
    """log p(the next word of the document is this one | h, the words drawn so far) at each entry, [S, n].

    That of the urns as the drawn words have left them: (b_g + n_g) / (B + N)  (a_w + x_w) / (A_g + n_g).
    """
    left, size = Urns(logits, log_scales, drawn), len(drawn.batch)
    drawn.words.add_to(left.masses, drawn.words.counts.expand(len(left.total), -1), size)
    of_groups = drawn.groups.counts.expand(len(left.total), -1)
    for masses in (left.group_sums, left.group_masses):
        drawn.groups.add_to(masses, of_groups, size)
    groups = words._replace(items=drawn.layout.of_words[words.items])
    word, group, within = (
        words.of(left.masses, size),
        groups.of(left.group_masses, size),
        groups.of(left.group_sums, size),
    )
    return word.log() + group.log() - within.log() - (left.total + drawn.batch.lengths).log()[:, words.documents]
