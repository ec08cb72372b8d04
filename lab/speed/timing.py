"""Seconds of an action, by the clock or of the processor, and the rate of matrix products to compare them with."""

import statistics
import time
from collections.abc import Callable

import torch
from torch.utils.flop_counter import FlopCounterMode

ENOUGH_SECONDS = 60.0
Action = Callable[[], object]


def seconds_of(action: Action, clock: Callable[[], float] = time.perf_counter) -> float:
    """By the clock; with `time.process_time`, of the processor, which other programs hardly change."""
    started = clock()
    action()
    return clock() - started


def best_seconds(action: Action, repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The fastest of several repeats; of fewer if they take more than a minute."""
    found = [seconds_of(action, clock)]
    while len(found) < repeats and sum(found) < ENOUGH_SECONDS:
        found.append(seconds_of(action, clock))
    return min(found)


def median_seconds(*actions: Action, repeats: int, warm_up: int = 0) -> list[float]:
    """The median of each action; they take turns, so that other work on the machine slows all of them alike."""
    found = [[seconds_of(action) for action in actions] for _ in range(warm_up + repeats)]
    return [statistics.median(times) for times in zip(*found[warm_up:], strict=True)]


def multiply_rate(clock: Callable[[], float] = time.perf_counter, size: int = 1024, repeats: int = 20) -> float:
    """Floating-point operations per second of a large matrix product, on the current number of threads."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    torch.mm(a, b)
    return 2.0 * size**3 / best_seconds(lambda: torch.mm(a, b), repeats, clock)


def multiply_operations(action: Action) -> int:
    """Floating-point operations of all matrix products in the action, which must run in this thread."""
    with FlopCounterMode(display=False) as counter:
        action()
    return int(counter.get_total_flops())
