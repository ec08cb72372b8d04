"""The posterior of h where words come from softmax(h R + b) and h from N(0, I): NVDM's and SWV's generative model.

    log p(h | X) = h^T (R X) - N log sum_w exp(h^T R_w + b_w) - |h|^2 / 2 + constant

It is concave in h, and a document enters only through R X and its length N. The decoder is a linear layer whose weight
is R^T and whose bias is b. No gradient runs through anything here.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches import CountBatch
from varitext.latent import DiagonalGaussian
from varitext.layers import sparse_times_dense


class Hill(NamedTuple):
    """log p(h, X) around h, one row per document."""

    h: Tensor  # [B, K]
    height: Tensor  # [B, 1]
    gradient: Tensor  # [B, K]
    precision: Tensor  # [B, K]   minus the second derivative, each dimension by itself


@torch.no_grad()
def newton_step(decoder: nn.Linear, batch: CountBatch) -> DiagonalGaussian:
    """One step from h = 0, and the spread there.

    The direction is gradient over curvature, each dimension by itself; its length is the best one for the whole
    curvature, without which correlated dimensions would add up to a step many times too long.
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
def climb(decoder: nn.Linear, h: Tensor, batch: CountBatch, steps: int) -> Hill:
    """Uphill from h; a document that would go down stays and takes a smaller step next."""
    statistics = sparse_times_dense(batch, batch.counts, decoder.weight)  # [B, K]   R X
    here = _hill(decoder, h, statistics, batch.lengths[:, None])
    step_size = torch.full_like(h[:, :1], 0.2)
    for _ in range(steps):
        there = _hill(decoder, here.h + step_size * here.gradient / here.precision, statistics, batch.lengths[:, None])
        better = there.height > here.height  # [B, 1]
        here = Hill(*(torch.where(better, b, a) for a, b in zip(here, there, strict=True)))
        step_size = torch.where(better, 1.3 * step_size, 0.3 * step_size)
    return here


def _hill(decoder: nn.Linear, h: Tensor, statistics: Tensor, lengths: Tensor) -> Hill:
    """log p(h, X) up to a constant, its gradient, and its curvature dimension by dimension."""
    word_vectors = decoder.weight
    logits = decoder(h)  # [B, V]
    normaliser = torch.logsumexp(logits, 1, keepdim=True)
    probabilities = logits.sub_(normaliser).exp_()
    expected = probabilities @ word_vectors  # [B, K]
    variance = (probabilities @ word_vectors.square() - expected.square()).clamp(min=0)
    height = (h * statistics - 0.5 * h.square()).sum(1, keepdim=True) - lengths * normaliser
    return Hill(h, height, statistics - lengths * expected - h, 1 + lengths * variance)
