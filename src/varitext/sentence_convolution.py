"""Convolutions that make one vector of a sentence: their mean or their maximum over all places of the window."""

import torch
from torch import Tensor, nn

from varitext.batches import TokenBatch
from varitext.sentence_layers import WordEmbedding


class SentenceConvolution(nn.Module):
    """tanh of a linear map of each window of `width` words, with dropout on word vectors.

    A `wide` convolution also has the windows that hang over either end; else a window starts at every word, so that a
    single word has one. What lies outside is zero. Padding changes nothing, and a sentence of no words gives zeros.
    """

    def __init__(self, input_dim: int, hidden_dim: int, width: int, wide: bool = False, dropout: float = 0.0):
        super().__init__()
        self.width, self.before = width, (width - 1) * wide
        self.dropout = nn.Dropout(dropout)
        self.convolution = nn.Conv1d(input_dim, hidden_dim, width)

    def mean(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        windows, real = self._windows(batch, word_vectors)
        return (windows * real).sum(2) / real.sum(2).clamp(min=1)  # [B, H]

    def maximum(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        windows, real = self._windows(batch, word_vectors)
        # tanh is never below -1, so a window of padding never wins
        return windows.masked_fill(~real, -1.0).amax(2) * real.any(2)  # [B, H]

    def _windows(self, batch: TokenBatch, word_vectors: WordEmbedding) -> tuple[Tensor, Tensor]:
        """The map of every window, [B, H, W], and which windows the sentence has, [B, 1, W]."""
        vectors = self.dropout(word_vectors(batch.tokens)) * batch.mask[..., None]  # [B, T, E]
        outside = nn.functional.pad(vectors.transpose(1, 2), (self.before, self.width - 1))
        windows = torch.tanh(self.convolution(outside))
        places = torch.arange(windows.shape[2], device=windows.device)
        lengths = batch.lengths[:, None, None]
        return windows, (places < lengths + self.before) & (lengths > 0)
