"""One thread in which all models run, so that the event loop stays free to answer."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")


class Worker:
    """A single thread: models draw from torch's one random generator, and two at once would spoil each other's draws.

    It is a daemon, so that a long computation never holds up the end of the process; nothing is written in it.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Callable[[], Any], asyncio.Future, asyncio.AbstractEventLoop]] = SimpleQueue()
        threading.Thread(target=self._work, name="varitext-models", daemon=True).start()

    async def run(self, function: Callable[[], Result]) -> Result:
        """What the function returns or raises, once the thread comes to it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._tasks.put((function, future, loop))
        return await future

    def _work(self) -> None:
        while True:
            function, future, loop = self._tasks.get()
            try:
                settle, value = future.set_result, function()
            except BaseException as error:  # whatever it is, somebody waits for it
                settle, value = future.set_exception, error
            if not loop.is_closed():
                loop.call_soon_threadsafe(_unless_done, future, settle, value)


def _unless_done(future: asyncio.Future, settle: Callable[[Any], None], value: Any) -> None:
    if not future.done():  # whoever asked may have gone
        settle(value)
