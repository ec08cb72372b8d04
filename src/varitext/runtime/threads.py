"""How many threads a computation uses, and whether they share each step of it or take a job each."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_WORKERS: ContextVar[ThreadPoolExecutor | None] = ContextVar("workers", default=None)


@contextmanager
def running_on(threads: int | None, parallel_jobs: bool = False) -> Iterator[None]:
    """Run the block with that many threads, as many as now if None, and leave the process as it was.

    Threads share every operation of torch; or, `parallel_jobs`, torch has one, and `workers` has them for whole jobs.
    Only one of the two: both at once would wait for each other. So the workers are gone, too, when the block ends.
    """
    before = torch.get_num_threads()
    number = threads or before
    parallel_jobs = parallel_jobs and number > 1
    pool = ThreadPoolExecutor(number, "worker", torch.set_num_threads, (1,)) if parallel_jobs else None
    torch.set_num_threads(1 if parallel_jobs else number)
    token = _WORKERS.set(pool)
    try:
        yield
    finally:
        _WORKERS.reset(token)
        if pool:
            pool.shutdown()
        torch.set_num_threads(before)


def workers() -> ThreadPoolExecutor | None:
    """Who takes whole jobs, each with one thread of torch; None, and the caller does them itself."""
    return _WORKERS.get()
