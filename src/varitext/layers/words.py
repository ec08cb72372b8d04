"""Parts of sentence models: word vectors, encoded sentences, dropout."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.pairs import FIRST_WORD, PADDING, UNKNOWN
from varitext.errors import InputError


class WordEmbedding(nn.Module):
    """A vector per word number; that of padding is zero and is not learned.

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
        """Initialize with these vectors of the vocabulary's words, [V, E]; unknown words get their mean."""
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
