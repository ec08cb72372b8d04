"""What the machine allows: the rate of matrix products, memory bandwidth, and how near to it a piece of work comes."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

ENOUGH_SECONDS = 60.0
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")


def seconds_of(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def best_seconds(action: Callable[[], object], repeats: int) -> float:
    """Of that many times; of fewer if they take over a minute, when a little noise does not matter."""
    found = [seconds_of(action)]
    while len(found) < repeats and sum(found) < ENOUGH_SECONDS:
        found.append(seconds_of(action))
    return min(found)


def multiply_rate(size: int = 1024, repeats: int = 20) -> float:
    """Floating-point operations per second of a large matrix product, in the threads that torch has now."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    torch.mm(a, b)
    return 2.0 * size**3 / best_seconds(lambda: torch.mm(a, b), repeats)


def memory_rate(megabytes: int = 256, repeats: int = 5) -> float:
    """Bytes per second that a copy reads and writes."""
    source = torch.zeros(megabytes << 18)
    target = torch.empty_like(source).copy_(source)
    return 2.0 * (megabytes << 20) / best_seconds(lambda: target.copy_(source), repeats)


def multiply_operations(action: Callable[[], object]) -> int:
    """Floating-point operations of all matrix products in the action, which makes them in this thread: torch counts no
    other."""
    with FlopCounterMode(display=False) as counter:
        action()
    return int(counter.get_total_flops())


def where_time_goes(action: Callable[[], object], named: int = 5) -> dict[str, float]:
    """Share of the time in each kind of operation, matrix products as one kind, the largest first.

    What runs between torch's operations, above all Python, is not among them: the shares are of what is.
    """
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        action()
    spent: dict[str, float] = {}
    for event in profiled.key_averages():
        kind = "matrix products" if event.key in PRODUCTS else event.key.removeprefix("aten::")
        spent[kind] = spent.get(kind, 0.0) + event.self_cpu_time_total
    whole = sum(spent.values())
    largest = sorted(spent.items(), key=lambda entry: -entry[1])[:named]
    return {kind: time / whole for kind, time in largest}


def speed_limits(action: Callable[[], object], seconds: float) -> dict[str, Any]:
    """How near the action comes to what its matrix products allow: it took that many seconds, in the threads that torch
    has now, and does the same work in this one."""
    operations, rate = multiply_operations(action), multiply_rate()
    return {
        "multiply_gflops": operations / 1e9,
        "multiply_gflops_per_second": rate / 1e9,
        "memory_gb_per_second": memory_rate() / 1e9,
        "share_of_multiply_limit": operations / rate / seconds,
        "where_time_goes": where_time_goes(action),
    }
