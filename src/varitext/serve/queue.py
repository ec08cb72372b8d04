"""Requests wait here for their model; requests that need the same computation share one call."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple, Protocol

import scipy.sparse

from varitext.documents.model import DocumentModel, Posterior
from varitext.serve.guards import Limits, Metrics, Refusal

COLLECT_SECONDS = 0.003  # how long the first of a batch waits for others; while the model is busy they gather anyway
MAX_TOGETHER = 64  # requests in one batch
MAX_CHARACTERS = 200_000  # of text in one batch: bounds memory
SERVED_BLOCK = 16  # documents per matrix product: a single text must not pay for 256, and all are treated alike
RETRY_AFTER = 1  # seconds


class BatchJob(Protocol):
    """A request that needs the posterior of some documents; it can share a call of the model with others."""

    @property
    def characters(self) -> int: ...

    def counts(self, model: DocumentModel) -> scipy.sparse.csr_matrix: ...

    def result(self, model: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior) -> Any: ...


class SingleJob(NamedTuple):
    """A request that has the model to itself: its draws would depend on what else is in the call."""

    result: Callable[[], Any]


class _Waiting(NamedTuple):
    job: BatchJob | SingleJob
    answer: asyncio.Future[Any]


class BatchQueue:
    """The queue of one model. `ask` from the event loop; `serve` runs there for as long as the application does."""

    def __init__(self, name: str, model: Any, executor: Executor, limits: Limits, metrics: Metrics):
        self.name = name
        self._model = model
        self._executor = executor
        self._limits = limits
        self._metrics = metrics
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._open: set[asyncio.Future[Any]] = set()  # answers that somebody waits for, also those at work

    def __len__(self) -> int:
        return len(self._waiting)

    async def ask(self, job: BatchJob | SingleJob) -> Any:
        """The job's result, or a `Refusal` if too many wait or it takes too long."""
        if len(self) >= self._limits.queue:
            raise Refusal(503, f"{len(self)} requests wait for this model already: try again shortly", RETRY_AFTER)
        waiting = _Waiting(job, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._open.add(waiting.answer)
        self._arrived.set()
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await waiting.answer
        except TimeoutError:
            raise Refusal(504, f"no answer within {self._limits.seconds:g} s: ask for less at once") from None
        finally:
            self._open.discard(waiting.answer)

    def refuse_all(self) -> None:
        """Tell everybody who waits that there will be no answer."""
        for answer in self._open:
            _answer(answer, Refusal(503, "the server is stopping", RETRY_AFTER))

    async def serve(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(COLLECT_SECONDS)
            if batch := self._next_batch():
                self._metrics.batch(self.name, len(batch))
                outcomes = await self._outcomes([one.job for one in batch])
                for waiting, outcome in zip(batch, outcomes, strict=True):
                    _answer(waiting.answer, outcome)
            if not self._waiting:
                self._arrived.clear()

    async def _outcomes(self, jobs: list[BatchJob | SingleJob]) -> list[Any]:
        """Whatever goes wrong is told to those who asked, and the queue goes on."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, run_batch, self._model, jobs)
        except Exception as error:
            return [error] * len(jobs)

    def _next_batch(self) -> list[_Waiting]:
        """The first that waits, and if it can share, all that can too, as far as they fit; the others keep their order.

        Those whose asker has gone, or was told that it took too long, are forgotten.
        """
        batch: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        characters = 0
        for waiting in self._waiting:
            if waiting.answer.done():
                continue
            size = getattr(waiting.job, "characters", MAX_CHARACTERS)
            shares = not isinstance(waiting.job, SingleJob) and characters + size <= MAX_CHARACTERS
            if not batch or (shares and len(batch) < MAX_TOGETHER):
                batch.append(waiting)
                characters += size
            else:
                others.append(waiting)
        self._waiting = others
        return batch


def run_batch(model: Any, jobs: list[BatchJob | SingleJob]) -> list[Any]:
    """The result of each job, or the exception that it ended in; one that fails does not touch the others."""
    if isinstance(jobs[0], SingleJob):
        return [_attempt(jobs[0].result)]
    together = [job for job in jobs if not isinstance(job, SingleJob)]  # all of them: see `_next_batch`
    counted = [_attempt(partial(job.counts, model)) for job in together]
    rows = [one for one in counted if not isinstance(one, Exception)]
    if not rows:
        return counted
    posterior = model.posterior(scipy.sparse.vstack(rows, format="csr"), SERVED_BLOCK)
    outcomes, start = [], 0
    for job, counts in zip(together, counted, strict=True):
        if isinstance(counts, Exception):
            outcomes.append(counts)
            continue
        own = Posterior(*(part[start : start + counts.shape[0]] for part in posterior))
        start += counts.shape[0]
        outcomes.append(_attempt(partial(job.result, model, counts, own)))
    return outcomes


def _attempt(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        return error


def _answer(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


@contextlib.asynccontextmanager
async def serving(queues: list[BatchQueue]) -> AsyncIterator[None]:
    """All queues at work inside the block."""
    tasks = [asyncio.create_task(queue.serve()) for queue in queues]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
