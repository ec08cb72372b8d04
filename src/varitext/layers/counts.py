"""The parts that models are built from: encoders, the Gaussian head, and the sparse multinomial likelihood.

Encoders plug into a model's `encode`: `CountEncoder` reads a `CountBatch`; `ConvolutionEncoder` and
`RecurrentEncoder` read a `TokenBatch`. All give one vector per example, [B, H].
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from varitext.batches.counts import CountBatch
from varitext.batches.tokens import TokenBatch
from varitext.latent.gaussian import DiagonalGaussian

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "silu": functional.silu,
    "tanh": torch.tanh,
}


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
    return _SparseTimesDense.apply(weight, values, batch)


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
    return _MultinomialLogLikelihood.apply(logits, batch)


def scaled_log_counts(batch: CountBatch, scale: float = 7.0) -> Tensor:
    """log(1 + count), brought to one length per document: long documents and repeated words cannot blow up training.

    7 is about the length of an ordinary document's vector of log counts, so that short and long ones look alike.
    """
    logs = torch.log1p(batch.counts)
    squares = torch.zeros_like(batch.lengths).index_add_(0, batch.documents, logs.square())
    return logs * (scale * squares.clamp(min=1e-12).rsqrt())[batch.documents]  # [n]


class MLP(nn.Module):
    """Linear layers, each followed by the activation."""

    def __init__(self, input_dim: int, hidden_dim: int, hidden_layers: int, activation: str = "relu"):
        super().__init__()
        sizes = [input_dim] + [hidden_dim] * hidden_layers
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(sizes))
        self.activation = ACTIVATIONS[activation]

    def forward(self, hidden: Tensor) -> Tensor:
        for layer in self.layers:
            hidden = self.activation(layer(hidden))
        return hidden  # [B, H]


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
        return self.mlp(self.activation(hidden + centred_log_length(batch)[:, None] * self.length_weights))  # [B, H]


def centred_log_length(batch: CountBatch) -> Tensor:
    """About zero for a document of fifty words."""
    return torch.log1p(batch.lengths) - 4  # [B]


class ConvolutionEncoder(nn.Module):
    """Convolutions of several widths over word vectors, each followed by the maximum over positions."""

    def __init__(self, vocabulary_size: int, embedding_dim: int, hidden_dim: int, widths: tuple[int, ...] = (1, 3, 5)):
        super().__init__()
        if any(width % 2 == 0 for width in widths):
            raise ValueError("convolution widths must be odd, so that every position has a centre")
        self.word_vectors = nn.Embedding(vocabulary_size, embedding_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding_dim, hidden_dim, width, padding=width // 2) for width in widths
        )
        self.output = nn.Linear(hidden_dim * len(widths), hidden_dim)

    def forward(self, batch: TokenBatch) -> Tensor:
        real = batch.mask[:, None, :]  # [B, 1, T]
        vectors = self.word_vectors(batch.tokens).transpose(1, 2) * real  # [B, E, T]
        # tanh is above -1, so a padded position never wins the maximum; a sequence of no words gives zeros
        peaks = [
            torch.tanh(convolution(vectors)).masked_fill(~real, -1.0).amax(2) * real.any(2)
            for convolution in self.convolutions
        ]
        return torch.tanh(self.output(torch.cat(peaks, 1)))  # [B, H]


class RecurrentEncoder(nn.Module):
    """An LSTM over word vectors; the state after the last real word stands for the sequence."""

    def __init__(self, vocabulary_size: int, embedding_dim: int, hidden_dim: int, layers: int = 1):
        super().__init__()
        self.word_vectors = nn.Embedding(vocabulary_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, layers, batch_first=True)

    def forward(self, batch: TokenBatch) -> Tensor:
        states, _ = self.lstm(self.word_vectors(batch.tokens))  # [B, T, H]
        last = (batch.lengths - 1).clamp(min=0)
        chosen = states[torch.arange(len(batch), device=states.device), last]
        return chosen * (batch.lengths > 0)[:, None]  # [B, H]


class GaussianHead(nn.Module):
    """mean = l_1(pi), log_std = l_2(pi); log_std starts at zero, as in the paper, and stays within bounds."""

    def __init__(self, hidden_dim: int, latent_dim: int):
        super().__init__()
        self.mean = nn.Linear(hidden_dim, latent_dim)
        self.log_std = nn.Linear(hidden_dim, latent_dim)
        nn.init.zeros_(self.log_std.weight)
        nn.init.zeros_(self.log_std.bias)

    def forward(self, hidden: Tensor) -> DiagonalGaussian:
        return DiagonalGaussian(self.mean(hidden), self.log_std(hidden)).within_bounds()
