"""The multinomial likelihood of large vocabularies, with the softmax's normaliser estimated from some of the words.

    log p(X | h) = h (R X) + b X - N log Z(h),    Z(h) = sum_w exp(h R_w + b_w)

Only Z needs every word. Its estimate takes the most frequent words as they are and draws the others from their
frequencies q, each weighed by 1 / (M q):

    Z'(h) = sum_{w frequent} exp(h R_w + b_w)  +  (1/M) sum_m exp(h R_{w_m} + b_{w_m}) / q(w_m)

E[Z'] = Z. The logarithm of Z' is too low by about Var(Z') / (2 Z^2), which falls with 1/M, so the likelihood that
training maximises is a little too high. Evaluation never uses it. `docs/benchmark.md` has the bias as measured.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from varitext.batches.counts import CountBatch
from varitext.layers.counts import sparse_times_dense

FREQUENT = 4096  # words that are always taken
DRAWN = 4096  # of the others


class SampledWords(NamedTuple):
    """Words that stand for the whole vocabulary, and how much each stands for."""

    words: Tensor  # [M]
    log_weights: Tensor  # [M]   log of 1, or of 1 / (M q)


def sample_words(log_frequencies: Tensor, frequent: int = FREQUENT, drawn: int = DRAWN) -> SampledWords:
    """The most frequent words and some of the others, drawn with replacement; all words if there are no others."""
    if frequent >= len(log_frequencies):
        words = torch.arange(len(log_frequencies), device=log_frequencies.device)
        return SampledWords(words, torch.zeros_like(log_frequencies))
    always = torch.topk(log_frequencies, frequent).indices
    tail = log_frequencies.index_fill(0, always, -math.inf)
    log_share = torch.log_softmax(tail, 0)  # q, over the others alone
    sums = log_share.double().exp().cumsum(0)
    places = torch.rand(drawn, dtype=torch.double, device=sums.device) * sums[-1]
    chosen = torch.searchsorted(sums, places, right=True).clamp(max=len(sums) - 1)
    weights = torch.cat([log_share.new_zeros(frequent), -log_share[chosen] - math.log(drawn)])
    return SampledWords(torch.cat([always, chosen]), weights)


def estimated_log_normaliser(decoder: nn.Linear, h: Tensor, sampled: SampledWords) -> Tensor:
    """log Z'(h); exact if every word is there with weight 1. h is [S, B, K], the result [S, B]."""
    word_vectors = functional.embedding(sampled.words, decoder.weight)  # [M, K]
    shift = decoder.bias[sampled.words] + sampled.log_weights  # [M]
    return torch.logsumexp(functional.linear(h, word_vectors, shift), -1)


def sampled_log_likelihood(decoder: nn.Linear, h: Tensor, batch: CountBatch, sampled: SampledWords) -> Tensor:
    """log p(X | h) with the estimated normaliser, [S, B]; never V wide but for the gradient of the weights."""
    statistics = sparse_times_dense(batch, batch.counts.to(h.dtype), decoder.weight)  # [B, K]   R X
    biases = torch.zeros_like(statistics[:, 0])
    biases = biases.index_add(0, batch.documents, decoder.bias[batch.words] * batch.counts.to(h.dtype))  # [B]   b X
    normaliser = estimated_log_normaliser(decoder, h, sampled)
    return (h * statistics).sum(-1) + biases - batch.lengths.to(h.dtype) * normaliser
