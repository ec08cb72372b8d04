"""A run that is asked to stop (Ctrl-C), and one whose launcher is gone."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STARTED_BY = os.getppid()  # at import, which the command line does before anything slow
POLL_SECONDS = 0.5


class Interruption:
    """Within the block, the first Ctrl-C only sets `requested`; a second one interrupts at once."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> "Interruption":
        self._here = threading.current_thread() is threading.main_thread()  # Python delivers signals to no other
        if self._here:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._here:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def ending_with_launcher() -> Iterator[None]:
    """Within the block, end this process if the one that started it is gone: the others would wait forever."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            if os.getppid() != STARTED_BY:
                print("varitext: the launcher went away before all processes had started", file=sys.stderr, flush=True)
                os._exit(1)  # the main thread waits within torch, where no exception reaches it

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
