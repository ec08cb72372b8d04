"""Requests wait here for their model; requests that need the same computation share one call."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import scipy.sparse

from varitext.corpora.sharded_counts import in_memory
from varitext.documents.model import DocumentModel, Posterior
from varitext.serve.guards import Limits, Metrics, Refusal

COLLECT_SECONDS = 0.003  # how long the first of a batch waits for others
MAX_TOGETHER = 64  # requests in one batch
MAX_CHARACTERS = 200_000  # of text in one batch: bounds memory
SERVED_BLOCK = 16  # documents per matrix product, always: small enough for a single text
RETRY_AFTER = 1  # seconds
RECENT_CALLS = 16  # whose mean time and size predict the next


class BatchJob(NamedTuple):
    """A request that needs the posterior of some texts; it can share a call of the model with others."""

    texts: Sequence[str]
    result: Callable[[DocumentModel, scipy.sparse.csr_matrix, Posterior], Any]
    prepare: Callable[[DocumentModel, scipy.sparse.csr_matrix], scipy.sparse.csr_matrix] = lambda _, counts: counts

    def counts(self, model: DocumentModel) -> scipy.sparse.csr_matrix:
        return self.prepare(model, in_memory(model.count(self.texts)))


class SingleJob(NamedTuple):
    """A request that has the model to itself, because its draws would depend on what else is in the call."""

    result: Callable[[], Any]


class _Waiting(NamedTuple):
    job: BatchJob | SingleJob
    answer: asyncio.Future[Any]
    since: float  # seconds, by the clock of `time.perf_counter`


class _Call(NamedTuple):
    """A call of a model."""

    seconds: float
    requests: int


class Worker:
    """The one thread in which models run: they share torch's random generator, and two at once would change each
    other's draws. Next is the model whose first request has waited longest."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="varitext-models")
        self.queues: list[BatchQueue] = []
        self.arrived = asyncio.Event()

    def expected_wait(self) -> float:
        """Seconds that the waiting requests of all models will take."""
        return sum(len(queue) * queue.seconds_per_request() for queue in self.queues)

    async def serve(self) -> None:
        while True:
            if not self.arrived.is_set():
                await self.arrived.wait()
                await asyncio.sleep(COLLECT_SECONDS)
            if waiting := [queue for queue in self.queues if len(queue)]:
                await min(waiting, key=lambda queue: queue.oldest()).serve_batch()
            else:
                self.arrived.clear()


class BatchQueue:
    """The queue of one model. All but the jobs themselves runs in the event loop."""

    def __init__(self, name: str, model: Any, worker: Worker, limits: Limits, metrics: Metrics):
        self.name = name
        self._model = model
        self._worker = worker
        self._limits = limits
        self._metrics = metrics
        self._waiting: deque[_Waiting] = deque()
        self._open: set[asyncio.Future[Any]] = set()  # answers that a client waits for, including those in progress
        self._recent: deque[_Call] = deque(maxlen=RECENT_CALLS)
        worker.queues.append(self)

    def __len__(self) -> int:
        return len(self._waiting)

    def oldest(self) -> float:
        return self._waiting[0].since

    def seconds_per_request(self) -> float:
        """In recent calls; before the first, nothing is expected to take time."""
        return sum(call.seconds for call in self._recent) / max(1, sum(call.requests for call in self._recent))

    async def ask(self, job: BatchJob | SingleJob) -> Any:
        """The job's result, or a `Refusal` if it would wait too long or takes too long."""
        wait = self._worker.expected_wait()
        if len(self) >= self._limits.queue or wait > self._limits.wait_seconds:
            later = max(RETRY_AFTER, math.ceil(wait))
            raise Refusal(503, f"too many requests are waiting: try again in {later} s", later)
        waiting = _Waiting(job, asyncio.get_running_loop().create_future(), time.perf_counter())
        self._waiting.append(waiting)
        self._open.add(waiting.answer)
        self._worker.arrived.set()
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await waiting.answer
        except TimeoutError:
            raise Refusal(504, f"no answer within {self._limits.seconds:g} s: send fewer or shorter texts") from None
        finally:
            self._open.discard(waiting.answer)

    def refuse_all(self) -> None:
        """Answer every waiting request with a 503."""
        for answer in self._open:
            _answer(answer, Refusal(503, "the server is stopping", RETRY_AFTER))

    async def serve_batch(self) -> None:
        if batch := self._next_batch():
            self._metrics.batch(self.name, len(batch))
            outcomes = await self._outcomes([one.job for one in batch])
            for waiting, outcome in zip(batch, outcomes, strict=True):
                _answer(waiting.answer, outcome)

    async def _outcomes(self, jobs: list[BatchJob | SingleJob]) -> list[Any]:
        """An error goes to the clients of the batch, and the queue continues."""
        try:
            call = asyncio.get_running_loop().run_in_executor(self._worker.thread, _timed, self._model, jobs)
            outcomes, seconds = await call
            self._recent.append(_Call(seconds, len(jobs)))
            return outcomes
        except Exception as error:
            return [error] * len(jobs)

    def _next_batch(self) -> list[_Waiting]:
        """The first request, and if it can share a call, all others that can and fit; the rest keep their order.

        Requests whose client has gone or has timed out are dropped.
        """
        batch: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        characters = 0
        for waiting in self._waiting:
            if waiting.answer.done():
                continue
            if isinstance(waiting.job, SingleJob):
                size, shares = MAX_CHARACTERS, False
            else:
                size = sum(map(len, waiting.job.texts))
                shares = characters + size <= MAX_CHARACTERS
            if not batch or (shares and len(batch) < MAX_TOGETHER):
                batch.append(waiting)
                characters += size
            else:
                others.append(waiting)
        self._waiting = others
        return batch


def _timed(model: Any, jobs: list[BatchJob | SingleJob]) -> tuple[list[Any], float]:
    started = time.perf_counter()
    return run_batch(model, jobs), time.perf_counter() - started


def run_batch(model: Any, jobs: list[BatchJob | SingleJob]) -> list[Any]:
    """The result of each job, or its exception; a job that fails does not affect the others."""
    if isinstance(jobs[0], SingleJob):
        return [_attempt(jobs[0].result)]
    together = [job for job in jobs if not isinstance(job, SingleJob)]  # all of them, see `_next_batch`
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
