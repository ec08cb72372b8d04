"""Ctrl-C as a request to stop at the next safe moment, not an exception in the middle of an update."""

import signal
import threading
from types import FrameType


class Interruption:
    """Within the block, the first Ctrl-C sets `requested`; a second one interrupts at once."""

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
