"""The process that started this one. If it is gone before the processes of a run have met, they would wait for ever."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STARTED_BY = os.getppid()  # as it was when this was imported: the command line does that before anything slow
SECONDS_BETWEEN_LOOKS = 0.5


@contextmanager
def ending_with_launcher() -> Iterator[None]:
    """Within, this process ends if the one that started it is gone: nobody would ever answer what is waited for."""
    done = threading.Event()
    threading.Thread(target=_watch, args=(done,), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _watch(done: threading.Event) -> None:
    while not done.wait(SECONDS_BETWEEN_LOOKS):
        if os.getppid() != STARTED_BY:
            print("varitext: the launcher went away before all processes had started", file=sys.stderr, flush=True)
            os._exit(1)  # the main thread waits within torch, where no exception reaches it
