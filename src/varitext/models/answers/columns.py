"""What networks read of a pair beside its words: how alike both are, which words they share, the candidate's place.

Counts are read in logarithms, so that a few large ones do not drown the rest. A place becomes itself, whether it is
known, whether it is the first, and the candidate's length; an unknown place is zero, and said to be unknown.
"""

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.models.answers.features.overlap import COUNTS, PLACE

POSITION_DROPPED = 0.1  # of the training questions, so that it also ranks where places are unknown
LIKENESS = 2  # columns of `likeness.py`: as a whole, and word by word
MIDDLE, SPREAD = 0.6, 0.25  # of likeness, about: so that it begins no smaller than the others


class PairColumns(nn.Module):
    """Has no weights. In a batch the columns stand in the order of the arguments."""

    def __init__(self, likeness: bool = False, counts: bool = False, position: bool = False):
        super().__init__()
        self.likeness, self.position = likeness, position
        self.names = COUNTS * counts + PLACE * position  # those of `overlap.py`
        self.width = LIKENESS * likeness + len(self.names) + 2 * position

    def forward(self, batch: PairBatch) -> Tensor:
        """[P, width]; all zero for a batch that has none."""
        if batch.features is None:
            return torch.zeros(len(batch), self.width, device=batch.labels.device)
        begin, end = LIKENESS * self.likeness, batch.features.shape[1] - len(PLACE) * self.position
        alike, counts, place = (batch.features[:, part] for part in (slice(begin), slice(begin, end), slice(end, None)))
        parts = [(alike - MIDDLE) / SPREAD, torch.log1p(counts)]
        if self.position:
            parts.append(self._place(place[:, 0], place[:, 1], batch))
        return torch.cat(parts, 1)

    def _place(self, position: Tensor, length: Tensor, batch: PairBatch) -> Tensor:
        known = ~position.isnan()
        if self.training:
            dropped = torch.rand(len(batch.questions), device=known.device) < POSITION_DROPPED
            known = known & ~dropped[batch.question_of]
        first = known & (position == 0)
        place = torch.where(known, position, 0.0)
        return torch.stack([place, known.to(place), first.to(place), length - 3], 1)  # [P, 4]
