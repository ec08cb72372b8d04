"""Padded batches of token sequences: words of a sentence, or word pieces of a question and candidate together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """B word sequences, padded to the longest; `mask` is true on real words."""

    tokens: Tensor  # [B, T]
    mask: Tensor  # [B, T]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> Tensor:
        return self.mask.sum(1)  # [B]

    def to(self, device: torch.device | str) -> "TokenBatch":
        return TokenBatch(self.tokens.to(device), self.mask.to(device))

    @classmethod
    def from_lists(cls, sequences: Sequence[Sequence[int]]) -> "TokenBatch":
        width = max(1, max(map(len, sequences), default=1))
        tokens = torch.zeros(len(sequences), width, dtype=torch.long)
        mask = torch.zeros(len(sequences), width, dtype=torch.bool)
        for row, sequence in enumerate(sequences):
            tokens[row, : len(sequence)] = torch.as_tensor(sequence, dtype=torch.long)
            mask[row, : len(sequence)] = True
        return cls(tokens, mask)


class PairPieces(NamedTuple):
    """The word pieces of one pair."""

    tokens: np.ndarray  # [T]
    segments: np.ndarray  # [T] 0 for the question, 1 for the candidate


@dataclass(frozen=True, slots=True)
class PieceBatch:
    tokens: Tensor  # [B, T]
    segments: Tensor  # [B, T]
    mask: Tensor  # [B, T] true on real pieces

    @classmethod
    def of(cls, pairs: Sequence[PairPieces]) -> "PieceBatch":
        lengths = np.array([len(one.tokens) for one in pairs])
        mask = np.arange(lengths.max()) < lengths[:, None]
        tokens, segments = np.zeros(mask.shape, np.int64), np.zeros(mask.shape, np.int64)
        tokens[mask] = np.concatenate([one.tokens for one in pairs])
        segments[mask] = np.concatenate([one.segments for one in pairs])
        return cls(*map(torch.from_numpy, (tokens, segments, mask)))

    @property
    def lengths(self) -> Tensor:
        return self.mask.sum(1)  # [B]

    def rows(self, chosen: Tensor) -> "PieceBatch":
        """The `chosen` rows, trimmed to the longest of them."""
        width = int(self.lengths[chosen].max())
        return PieceBatch(*(values[chosen, :width] for values in (self.tokens, self.segments, self.mask)))

    def to(self, device: torch.device | str) -> "PieceBatch":
        return PieceBatch(self.tokens.to(device), self.segments.to(device), self.mask.to(device))
