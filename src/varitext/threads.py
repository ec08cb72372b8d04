"""How many threads a computation uses."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def running_on(threads: int | None) -> Iterator[None]:
    """Run the block with so many threads, as many as now if None, and leave the process as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
