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
    def from_lists(cls, sequences: Sequence[Sequence[int] | np.ndarray]) -> "TokenBatch":
        """Pad the sequences to the longest, and to at least one word."""
        mask = _mask(sequences)
        return cls(torch.from_numpy(_padded(sequences, mask)), torch.from_numpy(mask))


class PairPieces(NamedTuple):
    tokens: np.ndarray  # [T]
    segments: np.ndarray  # [T] 0 for the question, 1 for the candidate


@dataclass(frozen=True, slots=True)
class PieceBatch:
    tokens: Tensor  # [B, T]
    segments: Tensor  # [B, T]
    mask: Tensor  # [B, T] true on real pieces

    @classmethod
    def of(cls, pairs: Sequence[PairPieces]) -> "PieceBatch":
        mask = _mask([one.tokens for one in pairs])
        tokens, segments = (_padded(values, mask) for values in zip(*pairs, strict=True))
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


def _mask(sequences: Sequence[Sequence[int] | np.ndarray]) -> np.ndarray:
    lengths = np.array([len(one) for one in sequences], np.int64)
    return np.asarray(np.arange(max(1, lengths.max(initial=0))) < lengths[:, None])  # [B, T]


def _padded(sequences: Sequence[Sequence[int] | np.ndarray], mask: np.ndarray) -> np.ndarray:
    tokens = np.zeros(mask.shape, np.int64)
    tokens[mask] = np.concatenate([np.zeros(0, np.int64), *sequences])
    return tokens
