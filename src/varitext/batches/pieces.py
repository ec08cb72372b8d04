"""Question and candidate as one sequence of word pieces, padded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class PairPieces(NamedTuple):
    """Of one pair."""

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
        """Some of them, no wider than they need."""
        width = int(self.lengths[chosen].max())
        return PieceBatch(*(values[chosen, :width] for values in (self.tokens, self.segments, self.mask)))

    def to(self, device: torch.device | str) -> "PieceBatch":
        return PieceBatch(self.tokens.to(device), self.segments.to(device), self.mask.to(device))
