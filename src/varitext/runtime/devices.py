"""Where a computation runs: on which device, and with how many threads.

torch, which is slow to import, is imported only for another device than the CPU and for a number of threads.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from varitext.errors import InputError, first_line

Result = TypeVar("Result")


class Workers(ThreadPoolExecutor):
    """Threads for whole jobs, in each of which torch has one thread."""

    def __init__(self, number: int):
        import torch

        super().__init__(number, "worker", torch.set_num_threads, (1,))
        self.number = number


_WORKERS: ContextVar[Workers | None] = ContextVar("workers", default=None)


def check_device(name: str) -> None:
    """Refuse a device that does not exist or cannot be used on this machine."""
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise InputError(f"{name!r} is not a device: use cpu or cuda")
    if name == "cpu":
        return
    import torch

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
    """Report that another device has no effect on the fit of a model without gradients."""
    if device != "cpu":
        warnings.warn(f"{model} is fitted on the CPU: device {device} has no effect on its fit", stacklevel=3)


@contextmanager
def running_on(threads: int | None, parallel_jobs: bool = False) -> Iterator[None]:
    """Run the block with that many threads (None: as many as now), and leave the process as it was.

    Either all threads share every torch operation, or, with `parallel_jobs`, torch has one thread and `workers` runs
    whole jobs. Both at once would wait for each other, so the workers end with the block.
    """
    with nullcontext() if threads is None and not parallel_jobs else _torch_threads(threads, parallel_jobs) as pool:
        token = _WORKERS.set(pool)
        try:
            yield
        finally:
            _WORKERS.reset(token)


@contextmanager
def _torch_threads(threads: int | None, parallel_jobs: bool) -> Iterator[Workers | None]:
    """Within the block, torch has that many threads, or as many workers with one each."""
    import torch

    before = torch.get_num_threads()
    number = threads or before
    pool = Workers(number) if parallel_jobs and number > 1 else None
    torch.set_num_threads(1 if pool else number)
    try:
        yield pool
    finally:
        if pool:
            pool.shutdown()
        torch.set_num_threads(before)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within the block, numpy and scipy compute products with one thread.

    Here they are small, and threads that wait for each other cost more than they gain: on a busy machine, minutes.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def workers() -> Workers | None:
    """The pool for whole jobs, each with one torch thread; None if the caller does them itself."""
    return _WORKERS.get()


def _alone(work: Callable[..., Result], *arguments: Any) -> Result:
    _WORKERS.set(None)  # a worker that waits for others would keep them waiting
    return work(*arguments)


def in_parallel(
    work: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], on_cpu: bool = True, threads: int | None = None
) -> list[Result]:
    """The results of `work` for each job, in order; by the workers of this block or, on the CPU, by new ones."""
    with nullcontext() if workers() else running_on(threads, parallel_jobs=on_cpu):
        pool = workers()
        if pool is None:
            return [work(*job) for job in jobs]
        # this thread makes the arguments meanwhile; a worker sees the context variables of this thread
        futures = [pool.submit(copy_context().run, _alone, work, *job) for job in jobs]
        return [future.result() for future in futures]
