"""A batch of token sequences, padded."""

from collections.abc import Sequence
from dataclasses import dataclass

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
