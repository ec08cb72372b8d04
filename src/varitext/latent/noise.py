"""Random noise with one row per example: always for the whole batch, even if several processes share it.

The random numbers therefore do not depend on the number of processes. Drawing rows that are not used costs little.
They come from torch's global generator or, within `drawn_from`, from the caller's own, as threads require.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from varitext.runtime.processes import current_share

_generator: ContextVar[torch.Generator | None] = ContextVar("generator", default=None)


@contextmanager
def drawn_from(generator: torch.Generator) -> Iterator[None]:
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


_common: ContextVar[int | None] = ContextVar("common", default=None)


@contextmanager
def common_normal(seed: int) -> Iterator[None]:
    """Within this context, in this thread, all examples get the same normal numbers, with mean 0 and variance 1 over
    the samples: an example's estimate depends neither on the others nor on its place among them."""
    token = _common.set(seed)
    try:
        yield
    finally:
        _common.reset(token)


def normal(samples: int, like: Tensor) -> Tensor:
    """Standard normal numbers, [S, *like.shape]; the first axis of `like` is the examples."""
    if (seed := _common.get()) is not None:
        drawn = torch.randn(samples, 1, *like.shape[1:], generator=torch.Generator().manual_seed(seed))
        if samples > 1:
            drawn = (drawn - drawn.mean(0)) / drawn.std(0, correction=0)
        return drawn.to(like).expand(samples, *like.shape)
    return _own_rows(_whole_batch(samples, like).normal_(generator=_generator.get()))


def uniform(samples: int, like: Tensor) -> Tensor:
    """Numbers from 0 (included) to 1 (excluded), [S, *like.shape]."""
    return _own_rows(_whole_batch(samples, like).uniform_(generator=_generator.get()))


def exponential(samples: int, like: Tensor) -> Tensor:
    """Numbers from Exponential(1), [S, *like.shape]."""
    return _own_rows(_whole_batch(samples, like).exponential_(generator=_generator.get()))


def _whole_batch(samples: int, like: Tensor) -> Tensor:
    share = current_share()
    shape = like.shape if share is None else (share.whole, *like.shape[1:])
    return torch.empty(samples, *shape, dtype=like.dtype, device=like.device)


def _own_rows(noise: Tensor) -> Tensor:
    share = current_share()
    return noise if share is None else noise[:, share.rows]  # [S, B, ...]
