"""The posterior of h when words come from softmax(h R + b) and h from N(0, I): the generative model of NVDM and SWV.

    log p(h | X) = h^T (R X) - N log sum_w exp(h^T R_w + b_w) - |h|^2 / 2 + constant

It is concave in h, and depends on a document only through R X and its length N. The decoder is a linear layer with
weight R^T and bias b. No gradient runs through anything here.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import DiagonalGaussian, FullGaussian
from varitext.layers.counts import sparse_times_dense
from varitext.layers.curvature import covariance_root, outer_squares

ROUNDING = 1e-5  # nats per word: the accuracy of a value in single precision
MAX_PRODUCTS = 2**22  # numbers held at once: 16 MB


class LogJoint(NamedTuple):
    """log p(h, X) around h, one row per document."""

    h: Tensor  # [B, K]
    value: Tensor  # [B, 1]
    gradient: Tensor  # [B, K]


class Curved(NamedTuple):
    """log p(h, X) with its curvature."""

    joint: LogJoint
    precision: Tensor  # [B, K]   minus the second derivative in each dimension


@torch.no_grad()
def newton_step(decoder: nn.Linear, batch: CountBatch) -> DiagonalGaussian:
    """Take one step from h = 0; also gives the standard deviation there.

    The direction is gradient over curvature in each dimension. The length is optimal for the full curvature; otherwise
    correlated dimensions would give a step many times too long.
    """
    word_vectors, frequencies = decoder.weight, torch.softmax(decoder.bias, 0)
    expected = frequencies @ word_vectors  # [K]   E[R_w] under the model at h = 0
    covariance = (word_vectors * frequencies[:, None]).T @ word_vectors - torch.outer(expected, expected)  # [K, K]
    lengths = batch.lengths[:, None]
    gradient = sparse_times_dense(batch, batch.counts, word_vectors) - lengths * expected  # [B, K]
    precision = 1 + lengths * covariance.diagonal().clamp(min=0)
    direction = gradient / precision
    curvature = (direction.square() + lengths * (direction @ covariance) * direction).sum(1, keepdim=True)
    best_length = (gradient * direction).sum(1, keepdim=True) / curvature.clamp(min=1e-12)
    return DiagonalGaussian(best_length * direction, -0.5 * precision.log()).within_bounds()


@torch.no_grad()
def gradient_ascent(decoder: nn.Linear, h: Tensor, batch: CountBatch, steps: int) -> LogJoint:
    """Ascend from h, scaled by the curvature there. A document that would go down stays; its next step is smaller."""
    log_joint = _LogJointOf(decoder, batch)
    here, precision = log_joint.first(h)
    step_size = torch.full_like(h[:, :1], 0.2)
    for _ in range(steps):
        there = log_joint.at(here.h + step_size * here.gradient / precision)
        better = log_joint.gain(here, there) > 0  # [B, 1]   false for NaN
        here = LogJoint(*(torch.where(better, b, a) for a, b in zip(here, there, strict=True)))
        step_size = torch.where(better, 1.3 * step_size, 0.3 * step_size)
    return here


@torch.no_grad()
def precision_at(decoder: nn.Linear, h: Tensor, batch: CountBatch) -> Tensor:
    """Minus the second derivative of log p(h, X), in each dimension, [B, K]."""
    return _LogJointOf(decoder, batch).first(h).precision


@torch.no_grad()
def laplace_posterior(decoder: nn.Linear, h: Tensor, batch: CountBatch) -> FullGaussian:
    """The Gaussian around h with the full curvature I + N Cov(R_w) there: dimensions that share words are correlated.

    The second moments of word vectors are V K^2 numbers, so words are processed in parts.
    """
    word_vectors, size = decoder.weight, h.shape[1]
    weights = torch.softmax(decoder(h), 1) * batch.lengths[:, None]  # [B, V]   expected counts
    squares = h.new_zeros(size * (size + 1) // 2, len(h))
    nothing, some = h.new_zeros(size, size), max(1, MAX_PRODUCTS // len(squares))
    for start in range(0, len(word_vectors), some):
        chosen = slice(start, start + some)
        squares.addmm_(outer_squares(word_vectors[chosen], nothing), weights[:, chosen].T)
    return FullGaussian(h, torch.ones_like(h), covariance_root(squares, weights @ word_vectors, batch.lengths))


class _LogJointOf:
    """log p(h, X) of a batch up to a constant, its gradient, and its curvature in each dimension.

    The normaliser and the mean of the word vectors under softmax(h R + b) are sums over all words with the same weights
    exp(h R_w + b_w): one matrix product gives them all. The weights are relative to the largest at the first h, which
    the product for the logits subtracts; later h are near. If they overflow or vanish nevertheless, the value is NaN or
    minus infinity, and the step is not taken.

    Logits are in bits, because exp2 is several times faster than exp in torch.
    """

    def __init__(self, decoder: nn.Linear, batch: CountBatch):
        word_vectors = self.word_vectors = decoder.weight
        ones = word_vectors.new_ones(len(word_vectors), 1)
        in_nats = torch.cat([word_vectors, decoder.bias[:, None]], 1)
        self.logit_weights = torch.cat([in_nats / math.log(2), -ones], 1).T  # [K + 2, V]
        self.moments = torch.cat([word_vectors, ones], 1)  # [V, K + 1]
        self.statistics = sparse_times_dense(batch, batch.counts, word_vectors)  # [B, K]   R X
        self.lengths = batch.lengths[:, None]
        self.one = torch.ones_like(self.statistics[:, :1])
        self.shift = torch.zeros_like(self.one)  # [B, 1]   in bits

    def first(self, h: Tensor) -> Curved:
        logits = self._logits(h)
        self.shift = logits.amax(1, keepdim=True)
        weights = logits.sub_(self.shift).exp2_()
        sums = weights @ torch.cat([self.moments, self.word_vectors.square()], 1)
        expected, total, square = torch.split(sums, [h.shape[1], 1, h.shape[1]], 1)
        variance = (square / total - (expected / total).square()).clamp(min=0)
        return Curved(self._evaluated(h, sums[:, : self.moments.shape[1]]), 1 + self.lengths * variance)

    def at(self, h: Tensor) -> LogJoint:
        return self._evaluated(h, self._logits(h).exp2_() @ self.moments)

    def gain(self, here: LogJoint, there: LogJoint) -> Tensor:
        """How much higher `there` is, [B, 1].

        Near the maximum, values differ by less than their rounding error; the mean slope along the step still gives the
        sign.
        """
        gain = there.value - here.value
        by_slope = 0.5 * ((here.gradient + there.gradient) * (there.h - here.h)).sum(1, keepdim=True)
        return torch.where(gain.abs() > ROUNDING * self.lengths, gain, by_slope)

    def _logits(self, h: Tensor) -> Tensor:
        return torch.cat([h, self.one, self.shift], 1) @ self.logit_weights  # [B, V]

    def _evaluated(self, h: Tensor, sums: Tensor) -> LogJoint:
        """Value and gradient at h, from the sums of the weights with the word vectors and with 1, [B, K + 1]."""
        total = sums[:, -1:].where(sums[:, -1:] > 0, torch.nan)
        normaliser = self.shift * math.log(2) + total.log()
        value = (h * self.statistics - 0.5 * h.square()).sum(1, keepdim=True) - self.lengths * normaliser
        return LogJoint(h, value, self.statistics - self.lengths * (sums[:, :-1] / total) - h)
