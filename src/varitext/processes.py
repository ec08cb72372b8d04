"""Other Python processes that share the work.

They are started by command, not by `multiprocessing`: that would run the user's script again in every process, which a
notebook cannot do, a script without `if __name__ == "__main__":` must not, and a script with large imports pays for.
"""

import os
import pickle
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from varitext.errors import InputError


class OtherProcess:
    """A Python process that calls `function(item, *extra)` for every item it is sent, one after the other."""

    def __init__(self, function: Callable, extra: tuple) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from varitext.processes import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._first_message: tuple | None = (function, extra)

    def call(self, item: Any) -> Any:
        try:
            if self._first_message is not None:
                self._send(self._first_message)
                self._first_message = None
            self._send(item)
            result = pickle.load(self.process.stdout)
        except (OSError, EOFError):
            raise InputError("another process of this run ended early (out of memory?); use processes=1") from None
        if isinstance(result, Exception):
            raise result
        return result

    def _send(self, message: Any) -> None:
        pickle.dump(message, self.process.stdin, pickle.HIGHEST_PROTOCOL)
        self.process.stdin.flush()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        with suppress(OSError):  # it may have ended with something unread
            self.process.stdin.close()


def call_elsewhere(function: Callable, items: Iterable, extra: tuple, processes: int) -> Iterator[Any]:
    """`function(item, *extra)` of every item, in their order, computed by so many other processes.

    Items are read only a little ahead of the results, so a stream stays a stream. Threads of this process do nothing
    but wait for one of the others each.
    """
    others = [OtherProcess(function, extra) for _ in range(processes)]
    idle: queue.SimpleQueue[OtherProcess] = queue.SimpleQueue()
    for other in others:
        idle.put(other)

    def call(item: Any) -> Any:
        other = idle.get()
        try:
            return other.call(item)
        finally:
            idle.put(other)

    with ThreadPoolExecutor(processes) as threads:
        try:
            yield from _in_order(threads, call, items, ahead=2 * processes)
        finally:
            for other in others:
                other.stop()


def _in_order(threads: ThreadPoolExecutor, call: Callable, items: Iterable, ahead: int) -> Iterator[Any]:
    futures: deque[Future] = deque()
    for item in items:
        futures.append(threads.submit(call, item))
        if len(futures) >= ahead:
            yield futures.popleft().result()
    while futures:
        yield futures.popleft().result()


def serve() -> None:
    """What the other process runs: a function and its fixed arguments come first, then items until the pipe closes."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print must not get between the results
    try:
        function, extra = pickle.load(sys.stdin.buffer)
        while True:
            item = pickle.load(sys.stdin.buffer)
            try:
                result = function(item, *extra)
            except Exception as error:
                result = error
            pickle.dump(result, results, pickle.HIGHEST_PROTOCOL)
            results.flush()
    except (EOFError, OSError, KeyboardInterrupt):
        return
