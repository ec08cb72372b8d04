"""The generative side of `nvdm_dcm.py`, with value, gradient and curvature of log p(h, X).

    log a_w = h^T R_w + b_w + l_w log N      masses of words; N the document's length
    log s_g                                  scale of group g in the first urn (`layers/dcm.py`)

Gradient and curvature of log p(h, X) = log p(X | h) - |h|^2 / 2 in h:

    gradient    R^T (d log p / d log a) - h
    curvature   I + E (Cov_g(r_g) + C)

E = B (digamma(B + N) - digamma(B)) is the effective number of independent words among the document's N in the first
urn. r_g is the mean word vector of group g and C the covariance of word vectors within groups, both by the masses at
h = 0: this takes G K^2 instead of V K^2 operations per document, and only G numbers per document. The true second
derivative has further terms of either sign; without them the curvature is positive definite for every h.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.corpora.sharded_counts import Counts, some_rows
from varitext.layers.counts import SampledWords, centred_log_length, sparse_times_dense
from varitext.layers.curvature import covariance_root, outer_squares
from varitext.layers.dcm import (
    LOG_MASS_RANGE,
    dcm_log_likelihood,
    effective_counts,
    evaluate,
    next_word_log_probabilities,
    value_of,
)
from varitext.layers.grouped_counts import Entries, GroupedCounts, WordGroups

FIRST_TOTAL = 150.0  # total mass at initialization, about where training ends
FIRST_LOG_SCALE = -0.5
LENGTH_RANGE = (-4.0, 4.0)  # of the centred log length, against extrapolation
DOCUMENTS = 20_000  # largest sample from which groups are found
MIN_DIMENSIONS, MAX_DIMENSIONS = 5, 100
WORDS_PER_DIMENSION = 20  # with as many dimensions as words, all words would be orthogonal
MIN_WORDS = 5  # per group, on average
ROUNDING = 2e-6  # relative accuracy of a value in single precision


class GroupMoments(NamedTuple):
    """Masses at h = 0, and moments of word vectors by group: the same for all documents."""

    masses: Tensor  # [V]   a_w
    sums: Tensor  # [G]   A_g
    group_masses: Tensor  # [G]   b_g
    means: Tensor  # [G, K]   r_g
    mean: Tensor  # [K]   of all word vectors
    variances: Tensor  # [K]   of all word vectors, along the columns of `directions`
    directions: Tensor  # [K, K]
    squares: Tensor  # [K (K + 1) / 2, G]   r_g r_g^T + C, as lower triangles


class LogJoint(NamedTuple):
    """log p(h, X) at h, one row per document."""

    h: Tensor  # [B, K]
    value: Tensor  # [B]
    gradient: Tensor  # [B, K]
    group_weights: Tensor  # [B, G]   E times the first urn's probabilities, as the curvature needs them

    def where_higher(self, other: "LogJoint") -> "LogJoint":
        """Document by document, this one if its value is higher, otherwise the other.

        Near the maximum, values differ by less than their rounding error; the mean slope along the step still gives the
        sign.
        """
        gain = self.value - other.value
        by_slope = 0.5 * ((self.gradient + other.gradient) * (self.h - other.h)).sum(1)
        better = torch.where(gain.abs() <= ROUNDING * other.value.abs(), by_slope, gain) > 0  # false for NaN
        rows = better[:, None]
        return LogJoint(*(torch.where(rows if a.dim() > 1 else better, a, b) for a, b in zip(self, other, strict=True)))


class DCMDecoder(nn.Module):
    """The parameters of the DCM likelihood, and what inference computes from them."""

    group_of_word: Tensor  # [V]

    def __init__(self, latent_dim: int, vocabulary_size: int, groups: int):
        super().__init__()
        self.linear = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.linear.weight, std=0.05)
        self.length_weights = nn.Parameter(torch.zeros(vocabulary_size))  # l
        self.group_log_scales = nn.Parameter(torch.full((groups,), FIRST_LOG_SCALE))  # log s
        self.register_buffer("group_of_word", torch.arange(vocabulary_size) % groups)
        self._sorted: tuple[WordGroups, int] | None = None

    @torch.no_grad()
    def start_from(self, word_log_frequencies: Tensor) -> None:
        self.linear.bias.copy_(word_log_frequencies + math.log(FIRST_TOTAL))

    def count(self, batch: CountBatch) -> GroupedCounts:
        """Count words and groups. Words are sorted into groups once, and again if the groups have changed."""
        groups, version = self.group_of_word, self.group_of_word._version
        if self._sorted is None or self._sorted[0].of_words is not groups or self._sorted[1] != version:
            self._sorted = WordGroups.of(groups, len(self.group_log_scales)), version
        return GroupedCounts(batch, self._sorted[0])

    def weights(self) -> Tensor:
        """R, l and b, [V, K + 2]: log a_w is their product with `inputs`."""
        return torch.cat([self.linear.weight, self.length_weights[:, None], self.linear.bias[:, None]], 1)

    def inputs(self, h: Tensor, counts: GroupedCounts) -> Tensor:
        """h of shape [S, B, K], the log length and 1: [K + 2, S B]."""
        lengths = centred_log_length(counts.batch).clamp(*LENGTH_RANGE).expand(1, *h.shape[:2])
        return torch.cat([h.permute(2, 0, 1), lengths, torch.ones_like(lengths)]).flatten(1)

    def logits(self, h: Tensor, counts: GroupedCounts) -> Tensor:
        """log a_w, one row per word, [V, S B]."""
        return self.weights() @ self.inputs(h, counts)

    def log_likelihood(self, h: Tensor, counts: GroupedCounts, weights: Tensor) -> Tensor:
        return dcm_log_likelihood(weights, self.inputs(h, counts), self.group_log_scales, counts)  # [S, B]

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of a document's first word, b_g / B a_w / A_g = s_g a_w / B, at a typical length."""
        return torch.log_softmax(self.linear(h) + self.group_log_scales[self.group_of_word], -1)  # [S, B, V]

    def next_word_log_probabilities(self, h: Tensor, drawn: GroupedCounts, words: Entries) -> Tensor:
        return next_word_log_probabilities(self.logits(h, drawn), self.group_log_scales, drawn, words)  # [S, n]

    @torch.no_grad()
    def place_words(self, first: int) -> None:
        """Assign the words from `first` on, which have vectors, to the groups with the nearest mean direction."""
        earlier, vectors = self.group_of_word[:first], nn.functional.normalize(self.linear.weight, dim=1)
        sums = vectors.new_zeros(len(self.group_log_scales), vectors.shape[1]).index_add_(0, earlier, vectors[:first])
        self.group_of_word[first:] = (vectors[first:] @ nn.functional.normalize(sums, dim=1).T).argmax(1)

    # Some words for all, in training

    @torch.no_grad()
    def sample_words(self, own: Tensor, share: float) -> SampledWords:
        """The `own` words of a batch with weight 1, and others, each with a probability that grows with its mass, from
        `share` on, and 1 / that probability as its weight: sums of masses over words are unbiased."""
        masses = torch.softmax(self.linear.bias + self.group_log_scales[self.group_of_word], 0)
        probability = (share * len(masses) * masses).clamp(share, 1).index_fill(0, own, 1.0)
        words = (torch.rand_like(probability) < probability).nonzero()[:, 0]
        return SampledWords(words, -probability[words].log())

    def of_words(self, chosen: SampledWords) -> dict[str, Tensor]:
        """Parameters and buffers of a decoder of these words only, whose masses are multiplied by their weights."""
        weight, bias, lengths, groups = (
            each.index_select(0, chosen.words)
            for each in (self.linear.weight, self.linear.bias, self.length_weights, self.group_of_word)
        )
        bias = bias + chosen.log_weights
        return {"linear.weight": weight, "linear.bias": bias, "length_weights": lengths, "group_of_word": groups}

    # What inference needs; no gradient runs through it

    @torch.no_grad()
    def moments(self, layout: WordGroups) -> GroupMoments:
        word_vectors, scales = self.linear.weight, self.group_log_scales.exp()
        masses = self.linear.bias.clamp(*LOG_MASS_RANGE).exp()
        sums = layout.sums(masses[:, None])[:, 0]
        means = layout.sums(word_vectors, masses) / sums.clamp(min=torch.finfo(sums.dtype).tiny)[:, None]  # empty: 0
        group_masses = sums * scales
        total = group_masses.sum()
        shares = masses * (scales / total).index_select(0, layout.of_words)  # [V]   shares of words
        square = (word_vectors * shares[:, None]).T @ word_vectors  # [K, K]
        of_groups = (group_masses / total)[:, None]  # [G, 1]
        within = square - (means * of_groups).T @ means  # C
        expected = (of_groups.T @ means)[0]
        covariance = square - torch.outer(expected, expected)
        if torch.isfinite(covariance).all():
            variances, directions = torch.linalg.eigh(covariance)
            axes = variances.clamp(min=0), directions
        else:  # training has diverged; the loss will show it
            axes = torch.full_like(expected, math.nan), torch.full_like(covariance, math.nan)
        squares = outer_squares(means, within)
        return GroupMoments(masses, sums, group_masses, means, expected, *axes, squares)

    @torch.no_grad()
    def newton_step_from_zero(self, counts: GroupedCounts, moments: GroupMoments) -> Tensor:
        """One Newton step from h = 0 at a typical length, [B, K], without operations of size V per document.

        A word enters with its effective count a_w (digamma(a_w + x_w) - digamma(a_w)), between 1 for a word of small
        mass and its count for one of large mass.
        """
        worth = effective_counts(moments.masses, moments.group_masses, moments.sums, counts)
        gradient = sparse_times_dense(counts.batch, worth.words, self.linear.weight) + worth.groups @ moments.means
        along = (gradient - worth.totals[:, None] * moments.mean) @ moments.directions
        step: Tensor = along / (1 + worth.totals[:, None] * moments.variances) @ moments.directions.T
        return step  # [B, K]

    @torch.no_grad()
    def log_joint(self, h: Tensor, counts: GroupedCounts, weights: Tensor | None = None) -> LogJoint:
        weights = self.weights() if weights is None else weights
        found = evaluate(weights, self.inputs(h[None], counts), self.group_log_scales, counts)
        gradient = found.in_inputs[: h.shape[1]].T - h
        return LogJoint(h, found.log_likelihood[0] - _distance(h), gradient, found.group_weights.T)

    @torch.no_grad()
    def height(self, h: Tensor, counts: GroupedCounts, weights: Tensor) -> Tensor:
        """Only the value of `log_joint`, [B]."""
        value = value_of(weights, self.inputs(h[None], counts), self.group_log_scales, counts)
        return value[0] - _distance(h)

    @torch.no_grad()
    def covariance_root(self, group_weights: Tensor, moments: GroupMoments, batch: CountBatch | None = None) -> Tensor:
        """M with M^T M the inverse of the curvature, lower triangular, [B, K, K]."""
        expected = group_weights @ moments.means  # [B, K]   E times the mean of r_g
        return covariance_root(self._squares(group_weights, moments, batch), expected, group_weights.sum(1))

    def _squares(self, group_weights: Tensor, moments: GroupMoments, batch: CountBatch | None) -> Tensor:
        return moments.squares @ group_weights.T  # [K (K + 1) / 2, B]


def _distance(h: Tensor) -> Tensor:
    return 0.5 * h.square().sum(1)  # [B]   minus log p(h), up to a constant


def group_words(counts: Counts, groups: int) -> np.ndarray:
    """The group of each word, [V]: k-means on word directions in a low-rank space of documents."""
    rows = some_rows(np.random.default_rng(0), counts.shape[0], DOCUMENTS)
    present = (counts[rows] > 0).astype(np.float64)
    document_counts = np.asarray(present.sum(0)).ravel()
    scaled = scipy.sparse.csr_matrix(present @ scipy.sparse.diags(1 / np.sqrt(document_counts + 1)))
    dimensions = min(MAX_DIMENSIONS, max(MIN_DIMENSIONS, scaled.shape[1] // WORDS_PER_DIMENSION), *scaled.shape)
    vectors = normalize(randomized_svd(scaled, dimensions, random_state=0)[2].T)  # [V, dimensions]
    distinct = len(np.unique(vectors.round(6), axis=0))
    number = max(1, min(groups, len(vectors) // MIN_WORDS, distinct))
    return np.asarray(KMeans(number, n_init=1, random_state=0).fit_predict(vectors), np.int64)
