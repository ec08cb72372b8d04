"""The generative side of NVDM with a Polya likelihood, and how log p(h, X) lies around a point.

    log a_w = h^T R_w + b_w + l_w log N      masses of words; N the document's length
    log s_g                                  how much looser than one urn group g is tied to the others

(`layers/polya.py` has the urns.) Gradient and curvature of log p(h, X) = log p(X | h) - |h|^2 / 2 in h:

    gradient    R^T (d log p / d log a) - h
    curvature   I + E (Cov_g(r_g) + C)

E = B (digamma(B + N) - digamma(B)) is how many independent words the document's N are worth to the first urn. r_g is
the mean word vector of group g and C the covariance of word vectors within groups, both by the masses at h = 0: the
work is G K^2 instead of V K^2 a document, and G numbers of a document are all that it takes. The true second derivative
has terms of either sign besides; without them the curvature is positive definite for every h.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent.full_gaussian import inverse_cholesky
from varitext.layers.counts import centred_log_length, sparse_times_dense
from varitext.layers.polya import (
    LOG_MASS_RANGE,
    Entries,
    GroupedCounts,
    Urns,
    WordGroups,
    next_word_log_probabilities,
    polya_log_likelihood,
)
from varitext.layers.rising import log_rising_falling

FIRST_TOTAL = 150.0  # words that are in the urn at the start: about where training takes it
FIRST_LOG_SCALE = -0.5
LENGTH_RANGE = (-4.0, 4.0)  # of the centred log length: nothing is known of lengths beyond those seen
ROUNDING = 2e-6  # of a value: what single precision leaves open


class GroupMoments(NamedTuple):
    """Where word vectors lie at h = 0, by group."""

    means: Tensor  # [G, K]   r_g
    squares: Tensor  # [G, K (K + 1) / 2]   r_g r_g^T + C, of which the lower triangle says all

    def weighted_square(self, weights: Tensor) -> Tensor:
        """The sum over groups of r_g r_g^T + C with weights [B, G], and so symmetric: [B, K, K]."""
        latent_dim, device = self.means.shape[1], weights.device
        rows, columns = torch.tril_indices(latent_dim, latent_dim, device=device)
        places = torch.empty(latent_dim, latent_dim, dtype=torch.long, device=device)
        places[rows, columns] = places[columns, rows] = torch.arange(len(rows), device=device)
        return (weights @ self.squares).index_select(1, places.flatten()).view(-1, latent_dim, latent_dim)


class LogJoint(NamedTuple):
    """log p(h, X) at h, one row per document."""

    h: Tensor  # [B, K]
    value: Tensor  # [B]
    gradient: Tensor  # [B, K]
    group_weights: Tensor  # [B, G]   E times the first urn's probabilities: all that the curvature needs of h and X

    def where_higher(self, other: "LogJoint") -> "LogJoint":
        """This, but for documents whose value at the other h is no lower.

        Near the top values differ by less than their rounding, which would decide where a document comes to rest; the
        mean slope along the step still tells up from down there.
        """
        gain = self.value - other.value
        by_slope = 0.5 * ((self.gradient + other.gradient) * (self.h - other.h)).sum(1)
        better = torch.where(gain.abs() <= ROUNDING * other.value.abs(), by_slope, gain) > 0  # never if not a number
        rows = better[:, None]
        return LogJoint(*(torch.where(rows if a.dim() > 1 else better, a, b) for a, b in zip(self, other, strict=True)))


class PolyaDecoder(nn.Module):
    group_of_word: Tensor  # [V]

    def __init__(self, latent_dim: int, vocabulary_size: int, groups: int):
        super().__init__()
        self.linear = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.linear.weight, std=0.05)
        self.length_weights = nn.Parameter(torch.zeros(vocabulary_size))  # l
        self.group_log_scales = nn.Parameter(torch.full((groups,), FIRST_LOG_SCALE))  # log s
        self.register_buffer("group_of_word", torch.arange(vocabulary_size) % groups)

    @torch.no_grad()
    def start_from(self, word_log_frequencies: Tensor) -> None:
        self.linear.bias.copy_(word_log_frequencies + math.log(FIRST_TOTAL))

    def count(self, batch: CountBatch) -> GroupedCounts:
        return GroupedCounts.of(batch, WordGroups.of(self.group_of_word, len(self.group_log_scales)))

    def logits(self, h: Tensor, counts: GroupedCounts) -> Tensor:
        """log a_w for h of shape [S, B, K]; one row per word, [V, S B]."""
        lengths = centred_log_length(counts.batch).clamp(*LENGTH_RANGE)[None, :, None].expand(len(h), -1, 1)
        inputs = torch.cat([h, lengths], 2).flatten(0, 1)  # [S B, K + 1]
        weights = torch.cat([self.linear.weight, self.length_weights[:, None]], 1)  # [V, K + 1]
        return torch.addmm(self.linear.bias[:, None], weights, inputs.T)

    def log_likelihood(self, h: Tensor, counts: GroupedCounts) -> Tensor:
        return polya_log_likelihood(self.logits(h, counts), self.group_log_scales, counts)  # [S, B]

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of a document's first word, b_g / B a_w / A_g = s_g a_w / B, at an ordinary length."""
        return torch.log_softmax(self.linear(h) + self.group_log_scales[self.group_of_word], -1)  # [S, B, V]

    def next_word_log_probabilities(self, h: Tensor, drawn: GroupedCounts, words: Entries) -> Tensor:
        return next_word_log_probabilities(self.logits(h, drawn), self.group_log_scales, drawn, words)  # [S, n]

    @torch.no_grad()
    def place_words(self, first: int) -> None:
        """Put words from this one on, which have vectors but no group yet, to those whose vectors point their way."""
        earlier, vectors = self.group_of_word[:first], nn.functional.normalize(self.linear.weight, dim=1)
        sums = vectors.new_zeros(len(self.group_log_scales), vectors.shape[1]).index_add_(0, earlier, vectors[:first])
        self.group_of_word[first:] = (vectors[first:] @ nn.functional.normalize(sums, dim=1).T).argmax(1)

    # What inference reads; no gradient runs through it

    @torch.no_grad()
    def moments(self, layout: WordGroups) -> GroupMoments:
        word_vectors, masses = self.linear.weight, self._masses()[:, None]
        sums = layout.sums(masses)
        means = layout.sums(masses * word_vectors) / sums.clamp(min=torch.finfo(sums.dtype).tiny)  # empty groups: 0
        shares = torch.softmax(self.linear.bias + self.group_log_scales[self.group_of_word], 0)[:, None]
        centred = word_vectors - means.index_select(0, layout.of_words)
        within = (centred * shares).T @ centred  # [K, K]   C
        rows, columns = torch.tril_indices(*within.shape, device=means.device)
        squares = means.index_select(1, rows) * means.index_select(1, columns)
        return GroupMoments(means, squares.add_(within[rows, columns]))

    @torch.no_grad()
    def newton_step_from_zero(self, counts: GroupedCounts, moments: GroupMoments) -> Tensor:
        """One step from h = 0 at an ordinary length, [B, K]: nothing here is V wide for a document.

        A word enters with a_w (digamma(a_w + x_w) - digamma(a_w)), between 1 for a word that is rare in the urn and
        its count for one that is not.
        """
        batch, factorials, masses = counts.batch, counts.factorials, self._masses()
        sums = counts.layout.sums(masses[:, None])[:, 0]  # [G]
        group_masses = sums * self.group_log_scales.exp()
        every = torch.cat([masses, group_masses, sums, group_masses.sum()[None]])
        every = every.index_select(0, factorials.entries.items)  # [e]
        effective = every * log_rising_falling(every, factorials.falling).slope
        words, groups, within, worth = (
            effective.index_select(0, places)
            for places in (factorials.words, factorials.groups, factorials.within, factorials.totals)
        )
        of_groups = worth.new_zeros(len(sums), len(batch))
        counts.groups.add_to(of_groups, (groups - within)[None], len(batch))
        gradient = sparse_times_dense(batch, words, self.linear.weight) + of_groups.T @ moments.means
        shares = group_masses / group_masses.sum()
        expected = shares @ moments.means  # [K]
        covariance = moments.weighted_square(shares[None])[0] - torch.outer(expected, expected)
        if not torch.isfinite(covariance).all():  # training has diverged, and will see it in the loss
            return torch.full_like(gradient, math.nan)
        variances, directions = torch.linalg.eigh(covariance)
        along = (gradient - worth[:, None] * expected) @ directions
        step: Tensor = along / (1 + worth[:, None] * variances.clamp(min=0)) @ directions.T
        return step  # [B, K]

    @torch.no_grad()
    def log_joint(self, h: Tensor, counts: GroupedCounts) -> LogJoint:
        urns = Urns(self.logits(h[None], counts), self.group_log_scales, counts)
        gradient = (self.linear.weight.T @ urns.gradient().logits).T - h
        return LogJoint(h, _height(h, urns), gradient, urns.group_weights().T)

    @torch.no_grad()
    def height(self, h: Tensor, counts: GroupedCounts) -> Tensor:
        """The value of `log_joint` alone, [B]."""
        return _height(h, Urns(self.logits(h[None], counts), self.group_log_scales, counts))

    @torch.no_grad()
    def covariance_root(self, group_weights: Tensor, moments: GroupMoments) -> Tensor:
        """M with M^T M the inverse of the curvature, lower triangular, [B, K, K]."""
        expected = group_weights @ moments.means  # [B, K]   E times the mean of r_g
        worth = group_weights.sum(1, keepdim=True).clamp(min=1e-12)
        found = moments.weighted_square(group_weights)
        return inverse_cholesky(found.addcmul_(expected[:, :, None], (expected / worth)[:, None, :], value=-1))

    def _masses(self) -> Tensor:
        return self.linear.bias.clamp(*LOG_MASS_RANGE).exp()  # [V]   at h = 0


def _height(h: Tensor, urns: Urns) -> Tensor:
    return urns.log_likelihood()[0] - 0.5 * h.square().sum(1)  # [B]   log p(h, X)
