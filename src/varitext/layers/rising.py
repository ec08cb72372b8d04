"""Rising factorials a^(n) = a (a + 1) ... (a + n - 1): their logarithms and slopes in a, for whole n.

Most words of a document stand there once or twice, so factors are taken one by one as long as there are any, up to
eight; Stirling's series does the rest. This is not only faster than a difference of log Gammas but right where that
loses all its digits: at large a.

What costs here is the number of operations, not their size. So all factorials of a batch go into one call, in the
order of their n: every factor then works on the first so many of them.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

SUMMED = 8  # factors of a^(n) taken one by one; from there on Stirling's series is exact to rounding


class LogRising(NamedTuple):
    """log a^(n) = log Gamma(a + n) - log Gamma(a), and its derivative in a."""

    value: Tensor
    slope: Tensor


class Falling(NamedTuple):
    """Whole numbers n in falling order, as far as factors are taken one by one."""

    order: Tensor  # [e]   which number stands at each place
    numbers: Tensor  # [e]   n in that order
    above: tuple[int, ...]  # how many of them are above 0, above 1, .. above SUMMED

    @classmethod
    def of(cls, numbers: Tensor) -> "Falling":
        factors = numbers.clamp(max=SUMMED + 1).to(torch.uint8)
        order = _falling_order(factors)
        each = torch.bincount(factors, minlength=SUMMED + 2).flip(0).cumsum(0)  # how many are SUMMED + 1, SUMMED, ..
        return cls(order, numbers.index_select(0, order), tuple(each[:-1].flip(0).tolist()))

    def places(self) -> Tensor:
        """Where each number went: the order the other way round, [e]."""
        places = torch.empty_like(self.order)
        return places.index_copy_(0, self.order, torch.arange(len(places), device=places.device))


def _falling_order(factors: Tensor) -> Tensor:
    if factors.device.type == "cpu":  # numpy counts numbers of eight bits instead of comparing them
        return torch.from_numpy(np.argsort(SUMMED + 1 - factors.numpy(), kind="stable"))
    return torch.sort(factors, descending=True, stable=True).indices


def log_rising(a: Tensor, n: Tensor) -> LogRising:
    """For a of shape [..., e] and whole n, [e]."""
    falling = Falling.of(n)
    value, slope = log_rising_falling(a[..., falling.order], falling)
    places = falling.places()
    return LogRising(value[..., places], slope[..., places])


def log_rising_falling(a: Tensor, falling: Falling) -> LogRising:
    """The same where a is in falling order already."""
    value, slope = torch.zeros_like(a), torch.zeros_like(a)
    for factor, above in enumerate(falling.above[:SUMMED]):
        if not above:
            return LogRising(value, slope)
        shifted = a[..., :above] + factor
        value[..., :above] += shifted.log()
        slope[..., :above] += shifted.reciprocal_()
    if large := falling.above[SUMMED]:
        rest = _log_rising_of_large(a[..., :large] + SUMMED, falling.numbers[:large] - SUMMED)
        value[..., :large] += rest.value
        slope[..., :large] += rest.slope
    return LogRising(value, slope)


def _log_rising_of_large(a: Tensor, n: Tensor) -> LogRising:
    """Stirling's series at a + n minus that at a, the large terms subtracted on paper; a is at least 8."""
    low, high, growth = a.reciprocal(), (a + n).reciprocal(), torch.log1p(n / a)
    value = n * a.log() + (a + n - 0.5) * growth - n + _stirling(high) - _stirling(low)
    return LogRising(value, growth - 0.5 * (high - low) - _stirling_slope(high) + _stirling_slope(low))


def _stirling(inverse: Tensor) -> Tensor:
    square = inverse.square()
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))


def _stirling_slope(inverse: Tensor) -> Tensor:
    square = inverse.square()
    return square * (1 / 12 - square * (1 / 120 - square / 252))
