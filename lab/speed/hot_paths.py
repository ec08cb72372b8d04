"""Where the time of the document models goes: a training step and a block of `transform`, by part, one thread.

Processor seconds, the best of several rounds over the same batches. The share of the matrix-multiply limit is the time
of a large torch matrix product with the same number of operations, divided by the time taken. For two threads, seconds
by the clock, of the same work.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from typing import Any
from unittest.mock import patch

import torch
from scipy.sparse import csr_matrix

from lab.speed.timing import median_seconds, multiply_operations, multiply_rate
from varitext.batches.counts import CountBatches
from varitext.corpora import load_documents
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer, hold_out
from varitext.documents.posterior import BLOCK, means_of
from varitext.documents.settings import DocumentSettings
from varitext.models.documents import nvdm_dcm
from varitext.runtime.devices import running_on

BATCHES, ROUNDS = 24, 5
PARTS = {
    "nvdm_dcm": {"bounds and gradients, in C": ("set_gradients",), "posterior, in C": ("document_means",)},
    "nvdm": {
        "inference network": ("encode",),
        "heights and slopes": ("posterior",),
        "likelihood of the sample": ("log_likelihood",),
    },
}


def measure(quick: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    train, test = (load_documents("20newsgroups-nvdm", part).counts for part in ("train", "test"))
    parts = {name: measured(name, train, test, rounds=1 if quick else ROUNDS) for name in PARTS}
    return {"load_average": os.getloadavg()[0]} | parts


class Clock:
    """Processor seconds of parts, which must not be nested."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def time(self, owner: object, name: str, part: str) -> None:
        action = getattr(owner, name)

        def timed(*arguments, **settings):
            started = time.process_time()
            try:
                return action(*arguments, **settings)
            finally:
                self.seconds[part] += time.process_time() - started

        setattr(owner, name, timed)

    def shares(self, action: Callable[[], None], rounds: int) -> dict[str, Any]:
        """Seconds of the fastest round, and the share of each part."""
        found = []
        for _ in range(rounds + 1):  # the first warms up
            self.seconds.clear()
            started = time.process_time()
            action()
            found.append((time.process_time() - started, dict(self.seconds)))
        whole, parts = min(found[1:], key=lambda each: each[0])
        return {"cpu_seconds": whole, "shares": {part: seconds / whole for part, seconds in parts.items()}}


def measured(name: str, train: csr_matrix, test: csr_matrix, rounds: int) -> dict[str, Any]:
    settings = DocumentSettings(name, epochs=1)
    counts, held_out = hold_out(train, settings.dev_share, 0)
    recipe = choose_recipe(name, settings, counts)
    network = build_network(name, recipe, counts, 0, "cpu")
    trainer = choose_trainer(network, recipe, counts, held_out, "cpu")
    trainer.train()
    batches = list(islice(trainer.task.batches(0), BATCHES))
    blocks = [batch for batch, _ in islice(CountBatches(test).in_equal_blocks(BLOCK), BATCHES)]

    def learn() -> None:
        network.train()
        for batch in batches:
            trainer._step(batch)

    @torch.no_grad()
    def transform() -> None:
        network.eval()
        for batch in blocks:
            network.document_means(batch)

    with patch.object(nvdm_dcm, "usable", lambda *tensors: False):  # torch counts its own operations, not those in C
        operations = {action: multiply_operations(action) for action in (learn, transform)}
    whole = test[: len(blocks) * BLOCK]
    threads = two_threads(learn, lambda number: means_of(network.eval(), whole, threads=number), rounds)
    clock = Clock()
    for part, places in PARTS[name].items():
        for place in places:
            owner, _, method = place.rpartition(".")
            clock.time(network.get_submodule(owner), method, part)
    clock.time(torch.autograd, "backward", "gradients")
    clock.time(trainer.optimizers[0], "step", "optimiser")
    found, rate = {}, multiply_rate(time.process_time)
    for path, action, documents in (
        ("training", learn, sum(map(len, batches))),
        ("transform", transform, len(blocks) * BLOCK),
    ):
        found[path] = clock.shares(action, rounds)
        seconds = found[path]["cpu_seconds"]
        found[path]["documents_per_cpu_second"] = documents / seconds
        found[path]["share_of_multiply_limit"] = operations[action] / rate / seconds
        found[path]["two_threads_over_one"] = threads[path][0] / threads[path][1]
        found[path]["share_of_multiply_limit_two_threads"] = operations[action] / (2 * rate) / threads[path][1]
    return found


def two_threads(learn: Callable[[], None], transform: Callable[[int], object], rounds: int) -> dict[str, list[float]]:
    """Median seconds by the clock of one thread and of two, which take turns."""

    def learning(number: int) -> Callable[[], None]:
        def learned() -> None:
            with running_on(number, parallel_jobs=True):
                learn()

        return learned

    return {
        "training": median_seconds(learning(1), learning(2), repeats=rounds, warm_up=1),
        "transform": median_seconds(lambda: transform(1), lambda: transform(2), repeats=rounds, warm_up=1),
    }
