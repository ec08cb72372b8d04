"""Parts of sentence models: word vectors, encoded sentences, dropout, convolution."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.pairs import FIRST_WORD, PADDING, UNKNOWN
from varitext.batches.tokens import TokenBatch
from varitext.errors import InputError


class WordEmbedding(nn.Module):
    """A vector per word number; the padding vector is zero and is not learned.

    The vectors of the last `fixed_words` words of the vocabulary are a buffer and stay fixed; all others are learned.
    """

    fixed: Tensor

    def __init__(self, vocabulary_size: int, embedding_dim: int, fixed_words: int = 0):
        super().__init__()
        learned = FIRST_WORD + vocabulary_size - fixed_words
        self.weight = nn.Parameter(torch.empty(learned, embedding_dim).uniform_(-0.25, 0.25))
        self.register_buffer("fixed", torch.zeros(1 + fixed_words, embedding_dim))  # row 0: all learned words
        with torch.no_grad():
            self.weight[PADDING] = 0

    @torch.no_grad()
    def start_from(self, matrix: Tensor) -> None:
        """Initialize with these vectors of the vocabulary's words, [V, E]; unknown words get the mean vector."""
        learned, fixed = self.weight[FIRST_WORD:], self.fixed[1:]
        if tuple(matrix.shape) != (len(learned) + len(fixed), learned.shape[1]):
            raise InputError(
                f"the word vectors are {' x '.join(map(str, matrix.shape))}; "
                f"this model needs {len(learned) + len(fixed)} words x {learned.shape[1]} numbers"
            )
        learned.copy_(matrix[: len(learned)])
        fixed.copy_(matrix[len(learned) :])
        self.weight[UNKNOWN] = matrix.mean(0) if len(matrix) else 0

    def forward(self, tokens: Tensor) -> Tensor:
        if len(self.fixed) == 1:
            return nn.functional.embedding(tokens, self.weight, padding_idx=PADDING)  # [..., E]
        first_fixed, numbers = len(self.weight), tokens.flatten()
        vectors = self.fixed.index_select(0, (numbers - (first_fixed - 1)).clamp(min=0))
        places = (numbers < first_fixed).nonzero()[:, 0]  # of learned words: few, so only their gradients are gathered
        learned = nn.functional.embedding(numbers[places], self.weight, padding_idx=PADDING)
        return vectors.index_copy_(0, places, learned).view(*tokens.shape, self.weight.shape[1])  # [..., E]


class Sentences(NamedTuple):
    """B encoded sentences; zero on padding."""

    states: Tensor  # [B, T, H]   s(i)
    last: Tensor  # [B, H]   s(|sentence|), zero for a sentence without words
    mask: Tensor  # [B, T]


class Dropout(nn.Module):
    """Like `nn.Dropout`, with a mask of random bits: on a CPU, one random number per element would dominate the cost.

    The dropped share is rounded to a multiple of 1/65,536.
    """

    def __init__(self, share: float):
        super().__init__()
        self.share = share
        self.threshold = round(share * 2**16) - 2**15  # 16-bit numbers below it are dropped

    def forward(self, values: Tensor) -> Tensor:
        kept = 2**15 - self.threshold  # of 2^16
        if not self.training or kept == 2**16:
            return values
        bits = torch.empty(values.numel() // 4 + 1, dtype=torch.int64, device=values.device).random_(-(2**63), None)
        mask = bits.view(torch.int16)[: values.numel()].view(values.shape) >= self.threshold
        return values * (mask * (2**16 / kept))


class SentenceConvolution(nn.Module):
    """tanh of a linear map of each window of `width` words, with dropout on word vectors; pooled to one vector.

    A window starts at every word, so a single word has one, too; a `wide` convolution also has the windows that extend
    beyond either end. Words outside are zero. Padding has no effect, and a sentence without words gives zeros.
    """

    def __init__(self, input_dim: int, maps: int, width: int, wide: bool = False, dropout: float = 0.0):
        super().__init__()
        self.before = (width - 1) * wide  # windows that start before the first word
        self.dropout = Dropout(dropout)
        limit = 1 / math.sqrt(width * input_dim)
        self.weight = nn.Parameter(torch.empty(width, input_dim, maps).uniform_(-limit, limit))
        self.bias = nn.Parameter(torch.empty(maps).uniform_(-limit, limit))

    def mean(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        windows, number = self._windows(batch, word_vectors, outside=0.0)
        return windows.sum(1) / number.clamp(min=1)[:, None]  # [B, H]

    def maximum(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        # tanh is never below -1, so a missing window is never the maximum
        windows, number = self._windows(batch, word_vectors, outside=-1.0)
        return windows.amax(1) * (number > 0)[:, None]  # [B, H]

    def _windows(self, batch: TokenBatch, word_vectors: WordEmbedding, outside: float) -> tuple[Tensor, Tensor]:
        """The map of every window, [B, W, H], `outside` where a sentence has fewer; and the number of windows, [B].

        Sentences are laid out in one line with gaps of a window between them, so nothing is computed for padding.
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
