"""Bags of words in and out: an encoder of sparse counts, and their multinomial likelihood, full or sampled.

The sampled likelihood is for large vocabularies. In log p(X | h) = h (R X) + b X - N log Z(h), only
Z(h) = sum_w exp(h R_w + b_w) needs every word. Its estimate sums the most frequent words exactly and draws M others
from their frequencies q:

    Z'(h) = sum_{w frequent} exp(h R_w + b_w)  +  (1/M) sum_m exp(h R_{w_m} + b_{w_m}) / q(w_m)

E[Z'] = Z. The logarithm of Z' is too low by about Var(Z') / (2 Z^2), which falls with 1/M, so the likelihood that
training maximises is slightly too high. Evaluation never uses it. docs/results/benchmark.md has the measured bias.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from varitext.batches.counts import CountBatch
from varitext.layers.dense import ACTIVATIONS, MLP

FREQUENT = 4096  # most frequent words, always used
DRAWN = 4096  # draws of the others


class _SparseTimesDense(torch.autograd.Function):
    """Sparse [B, V] times dense [V, H]. The forward and the backward pass each take one sum over the non-zero entries.

    The gradient is again an embedding_bag, over the entries in order of word: several times faster than torch's own.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, values: Tensor, batch: CountBatch) -> Tensor:
        ctx.batch, ctx.values = batch, values
        return functional.embedding_bag(
            batch.words, weight, batch.starts, mode="sum", per_sample_weights=values
        )  # [B, H]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        batch = ctx.batch
        by_word = torch.sort(batch.words, stable=True)
        every_word = torch.arange(batch.vocabulary_size, device=batch.words.device)
        weight_gradient = functional.embedding_bag(
            batch.documents[by_word.indices],
            gradient.contiguous(),
            torch.searchsorted(by_word.values, every_word),  # the first entry of each word
            mode="sum",
            per_sample_weights=ctx.values[by_word.indices],
        )
        return weight_gradient, None, None  # [V, H]


def sparse_times_dense(batch: CountBatch, values: Tensor, weight: Tensor) -> Tensor:
    """X @ weight, where `values` are the entries of X; differentiable in `weight`."""
    product: Tensor = _SparseTimesDense.apply(weight, values, batch)  # type: ignore[no-untyped-call]  # torch has no types there
    return product  # [B, H]


class _MultinomialLogLikelihood(torch.autograd.Function):
    """sum_w count_w log softmax(logits)_w, without ever expanding the counts to width V.

    Its gradient is counts - length * softmax(logits), written into one buffer.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, batch: CountBatch) -> Tensor:
        probabilities = torch.softmax(logits, -1)  # [S, B, V]   one fused pass
        normaliser = logits.amax(-1) - probabilities.amax(-1).log()  # [S, B]   exact: the largest is at least 1/V
        counts, lengths = batch.counts.to(logits.dtype), batch.lengths.to(logits.dtype)
        observed = logits[:, batch.documents, batch.words] * counts  # [S, n]
        ctx.save_for_backward(probabilities, counts, lengths)
        ctx.batch = batch
        return torch.zeros_like(normaliser).index_add_(1, batch.documents, observed) - lengths * normaliser  # [S, B]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        probabilities, counts, lengths = ctx.saved_tensors
        batch = ctx.batch
        result = probabilities * (-gradient * lengths)[..., None]
        entries = batch.documents * batch.vocabulary_size + batch.words  # [n]
        result.view(len(gradient), -1).index_add_(1, entries, counts * gradient[:, batch.documents])
        return result, None  # [S, B, V]


def multinomial_log_likelihood(logits: Tensor, batch: CountBatch) -> Tensor:
    """log p(X | h) = sum_i log p(x_i | h) over the words of each document; logits [S, B, V], result [S, B].

    It is the likelihood of one order of the words, as in the paper: without the multinomial coefficient.
    """
    log_likelihood: Tensor = _MultinomialLogLikelihood.apply(logits, batch)  # type: ignore[no-untyped-call]  # torch has no types there
    return log_likelihood


def scaled_log_counts(batch: CountBatch, scale: float = 7.0) -> Tensor:
    """log(1 + count), [n], scaled to the same norm for every document, against long documents and repeated words.

    The norm of a typical document's log counts is about 7.
    """
    logs = torch.log1p(batch.counts)
    squares = torch.zeros_like(batch.lengths).index_add_(0, batch.documents, logs.square())
    return logs * (scale * squares.clamp(min=1e-12).rsqrt())[batch.documents]  # [n]


class CountEncoder(nn.Module):
    """An MLP on sparse counts (paper, appendix B.1): first layer from the non-zero counts, then ordinary layers.

    It reads log counts, scaled to the same norm for every document, and the document's length; or, if `raw`, the counts
    as they are, as the authors' code does.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        hidden_layers: int = 2,
        activation: str = "relu",
        raw: bool = False,
    ):
        super().__init__()
        self.raw = raw
        # as in nn.Linear; for raw counts Glorot and Bengio (2010), again as the authors
        bound = math.sqrt(6 / (vocabulary_size + hidden_dim)) if raw else 1 / math.sqrt(vocabulary_size)
        self.word_weights = nn.Parameter(torch.empty(vocabulary_size, hidden_dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(hidden_dim))
        if not raw:  # scaled counts do not show the length of a document, on which the posterior variance depends
            self.length_weights = nn.Parameter(torch.zeros(hidden_dim))
        self.activation = ACTIVATIONS[activation]
        self.mlp = MLP(hidden_dim, hidden_dim, hidden_layers - 1, activation)

    def forward(self, batch: CountBatch) -> Tensor:
        values = batch.counts.to(self.bias.dtype) if self.raw else scaled_log_counts(batch)
        hidden = sparse_times_dense(batch, values, self.word_weights) + self.bias
        if not self.raw:
            hidden = hidden + centred_log_length(batch)[:, None] * self.length_weights
        encoded: Tensor = self.mlp(self.activation(hidden))
        return encoded  # [B, H]


def centred_log_length(batch: CountBatch) -> Tensor:
    """The log of the length, shifted to be about zero for a document of fifty words."""
    return torch.log1p(batch.lengths) - 4  # [B]


class SampledWords(NamedTuple):
    """Words that represent the whole vocabulary, with their weights."""

    words: Tensor  # [M]
    log_weights: Tensor  # [M]   log of 1, or of 1 / (M q)


def sample_words(log_frequencies: Tensor, frequent: int = FREQUENT, drawn: int = DRAWN) -> SampledWords:
    """The most frequent words, and others drawn with replacement; all words if there are no others."""
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
    """log Z'(h); exact if all words are sampled with weight 1. h is [S, B, K], the result [S, B]."""
    word_vectors = functional.embedding(sampled.words, decoder.weight)  # [M, K]
    shift = decoder.bias[sampled.words] + sampled.log_weights  # [M]
    return torch.logsumexp(functional.linear(h, word_vectors, shift), -1)


def sampled_log_likelihood(decoder: nn.Linear, h: Tensor, batch: CountBatch, sampled: SampledWords) -> Tensor:
    """log p(X | h) with the estimated normaliser, [S, B]; only the gradient of the weights is V wide."""
    statistics = sparse_times_dense(batch, batch.counts.to(h.dtype), decoder.weight)  # [B, K]   R X
    biases = torch.zeros_like(statistics[:, 0])
    biases = biases.index_add(0, batch.documents, decoder.bias[batch.words] * batch.counts.to(h.dtype))  # [B]   b X
    normaliser = estimated_log_normaliser(decoder, h, sampled)
    return (h * statistics).sum(-1) + biases - batch.lengths.to(h.dtype) * normaliser
