"""Convolutions that make one vector of a sentence: their mean or their maximum over all places of the window."""

import math

import torch
from torch import Tensor, nn

from varitext.batches.tokens import TokenBatch
from varitext.layers.words import Dropout, WordEmbedding


class SentenceConvolution(nn.Module):
    """tanh of a linear map of each window of `width` words, with dropout on word vectors.

    A `wide` convolution also has the windows that hang over either end; else a window starts at every word, so that a
    single word has one. What lies outside is zero. Padding changes nothing, and a sentence of no words gives zeros.
    """

    def __init__(self, input_dim: int, maps: int, width: int, wide: bool = False, dropout: float = 0.0):
        super().__init__()
        self.before = (width - 1) * wide  # how many windows start before the first word
        self.dropout = Dropout(dropout)
        limit = 1 / math.sqrt(width * input_dim)
        self.weight = nn.Parameter(torch.empty(width, input_dim, maps).uniform_(-limit, limit))
        self.bias = nn.Parameter(torch.empty(maps).uniform_(-limit, limit))

    def mean(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        windows, number = self._windows(batch, word_vectors, outside=0.0)
        return windows.sum(1) / number.clamp(min=1)[:, None]  # [B, H]

    def maximum(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        # tanh is never below -1, so a window that the sentence does not have never wins
        windows, number = self._windows(batch, word_vectors, outside=-1.0)
        return windows.amax(1) * (number > 0)[:, None]  # [B, H]

    def _windows(self, batch: TokenBatch, word_vectors: WordEmbedding, outside: float) -> tuple[Tensor, Tensor]:
        """The map of every window, [B, W, H], `outside` where a sentence has fewer, and how many it has, [B].

        All sentences stand on one line with gaps of a window between them, so that nothing is computed for padding.
        """
        width, input_dim, maps = self.weight.shape
        lengths, mask = batch.lengths, batch.mask
        words = self.dropout(word_vectors(batch.tokens[mask]))  # [n, E]
        sentence, place = mask.nonzero(as_tuple=True)  # [n] of every word
        first = torch.cumsum(lengths + width - 1, 0) - lengths  # [B] where each sentence starts, after a gap
        line = words.new_zeros(int(lengths.sum()) + (width - 1) * (len(lengths) + 1), input_dim)
        line = line.index_copy(0, first[sentence] + place, words)
        starts = len(line) - width + 1
        mapped = self.bias + sum(line[shift : shift + starts] @ self.weight[shift] for shift in range(width))
        number = torch.where(lengths > 0, lengths + self.before, 0)  # [B]
        real = torch.arange(max(1, int(number.max())), device=mask.device) < number[:, None]  # [B, W]
        sentence, place = real.nonzero(as_tuple=True)  # of every window
        windows = torch.tanh(mapped.index_select(0, first[sentence] - self.before + place))
        padded = windows.new_full((real.numel(), maps), outside)
        padded = padded.index_copy(0, sentence * real.shape[1] + place, windows)
        return padded.view(*real.shape, maps), number
