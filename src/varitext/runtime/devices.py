"""Where a computation runs: on which device, and with how many threads."""

import re
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from varitext.errors import InputError, first_line


class Workers(ThreadPoolExecutor):
    """Threads for whole jobs, in each of which torch has one thread."""

    def __init__(self, number: int):
        super().__init__(number, "worker", torch.set_num_threads, (1,))
        self.number = number


_WORKERS: ContextVar[Workers | None] = ContextVar("workers", default=None)


def check_device(name: str) -> None:
    """Refuse a device that does not exist or cannot be used on this machine."""
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise InputError(f"{name!r} is not a device: use cpu or cuda")
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"The device {name} cannot be used here ({first_line(error)}). Use cpu.") from None


def usable_device(name: str) -> str:
    """The device, or the CPU if this machine does not have it."""
    try:
        check_device(name)
    except InputError:
        return "cpu"
    return name


def note_cpu_only(model: str, device: str) -> None:
    """Say that another device has no effect on the fit of a model without gradients."""
    if device != "cpu":
        warnings.warn(f"{model} is fitted on the CPU: device {device} has no effect on its fit", stacklevel=3)


@contextmanager
def running_on(threads: int | None, parallel_jobs: bool = False) -> Iterator[None]:
    """Run the block with that many threads (None: as many as now), and leave the process as it was.

    Either all threads share every torch operation, or, with `parallel_jobs`, torch has one thread and `workers` runs
    whole jobs. Both at once would wait for each other, so the workers end with the block.
    """
    before = torch.get_num_threads()
    number = threads or before
    parallel_jobs = parallel_jobs and number > 1
    pool = Workers(number) if parallel_jobs else None
    torch.set_num_threads(1 if parallel_jobs else number)
    token = _WORKERS.set(pool)
    try:
        yield
    finally:
        _WORKERS.reset(token)
        if pool:
            pool.shutdown()
        torch.set_num_threads(before)


def workers() -> Workers | None:
    """The pool for whole jobs, each with one torch thread; None if the caller does them itself."""
    return _WORKERS.get()
