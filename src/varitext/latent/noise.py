"""The noise of draws, one row per example: always that of the whole batch, also where processes share it.

The random numbers then do not depend on how many processes there are. Drawing all of them costs little beside what is
done with one's own.
"""

import torch
from torch import Tensor

from varitext.runtime.processes import current_share


def normal(samples: int, like: Tensor) -> Tensor:
    """Standard normal numbers, [S, *like.shape]; the first axis of `like` are the examples."""
    return _own_rows(_whole_batch(samples, like).normal_())


def uniform(samples: int, like: Tensor) -> Tensor:
    """Between 0 and 1, 1 excluded."""
    return _own_rows(_whole_batch(samples, like).uniform_())


def exponential(samples: int, like: Tensor) -> Tensor:
    return _own_rows(_whole_batch(samples, like).exponential_())


def _whole_batch(samples: int, like: Tensor) -> Tensor:
    share = current_share()
    shape = like.shape if share is None else (share.whole, *like.shape[1:])
    return torch.empty(samples, *shape, dtype=like.dtype, device=like.device)


def _own_rows(noise: Tensor) -> Tensor:
    share = current_share()
    return noise if share is None else noise[:, share.rows]  # [S, B, ...]
