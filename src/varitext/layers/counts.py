"""Bags of words in and out: an encoder of sparse counts, and their multinomial likelihood."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from varitext.batches.counts import CountBatch
from varitext.layers.dense import ACTIVATIONS, MLP


class _SparseTimesDense(torch.autograd.Function):
    """Sparse [B, V] times dense [V, H]. Both directions are one sum over the non-zero entries.

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
    """sum_w count_w log softmax(logits)_w, without ever making the counts V wide.

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

    That of one order of the words, as in the paper: without the multinomial coefficient.
    """
    log_likelihood: Tensor = _MultinomialLogLikelihood.apply(logits, batch)  # type: ignore[no-untyped-call]  # torch has no types there
    return log_likelihood


def scaled_log_counts(batch: CountBatch, scale: float = 7.0) -> Tensor:
    """log(1 + count), brought to one length per document: long documents and repeated words cannot blow up training.

    7 is about the length of an ordinary document's vector of log counts, so that short and long ones look alike.
    """
    logs = torch.log1p(batch.counts)
    squares = torch.zeros_like(batch.lengths).index_add_(0, batch.documents, logs.square())
    return logs * (scale * squares.clamp(min=1e-12).rsqrt())[batch.documents]  # [n]


class CountEncoder(nn.Module):
    """An MLP on sparse counts (paper, appendix B.1): first layer from the non-zero counts, then ordinary layers."""

    def __init__(self, vocabulary_size: int, hidden_dim: int, hidden_layers: int = 2, activation: str = "relu"):
        super().__init__()
        bound = 1 / math.sqrt(vocabulary_size)  # what nn.Linear would do
        self.word_weights = nn.Parameter(torch.empty(vocabulary_size, hidden_dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(hidden_dim))
        # scaled counts no longer say how long a document is, and the posterior's spread depends on it
        self.length_weights = nn.Parameter(torch.zeros(hidden_dim))
        self.activation = ACTIVATIONS[activation]
        self.mlp = MLP(hidden_dim, hidden_dim, hidden_layers - 1, activation)

    def forward(self, batch: CountBatch) -> Tensor:
        hidden = sparse_times_dense(batch, scaled_log_counts(batch), self.word_weights) + self.bias
        hidden = hidden + centred_log_length(batch)[:, None] * self.length_weights
        encoded: Tensor = self.mlp(self.activation(hidden))
        return encoded  # [B, H]


def centred_log_length(batch: CountBatch) -> Tensor:
    """About zero for a document of fifty words."""
    return torch.log1p(batch.lengths) - 4  # [B]
