"""Where the time of the document models goes: a step of training and a block of `transform`, by part, one thread.

    python benchmarks/hot_paths.py [--json results/hot_paths.json]

CPU seconds, so that a busy machine changes little but the caches; the best of several rounds over the same batches. The
share of the matrix-multiply limit is what a large matrix product would take for the products alone, over what it took.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import torch

from lab.benchmark.limits import multiply_operations
from varitext.batches.counts import CountBatches
from varitext.corpora import load_documents
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer, hold_out
from varitext.documents.posterior import BLOCK
from varitext.documents.settings import DocumentSettings
from varitext.files import write_json
from varitext.reproduce.provenance import provenance

BATCHES, ROUNDS = 24, 5
PARTS = {
    "nvdm_dcm": {
        "inference network": ("encode",),
        "heights and slopes": ("decoder.log_joint", "decoder.height"),
        "curvature": ("decoder.covariance_root",),
        "likelihood of the sample": ("log_likelihood",),
    },
    "nvdm": {
        "inference network": ("encode",),
        "heights and slopes": ("refine",),
        "likelihood of the sample": ("log_likelihood",),
    },
}


class Clock:
    """CPU seconds of parts; one inside another is not expected."""

    def __init__(self):
        self.seconds = defaultdict(float)

    def time(self, owner: object, name: str, part: str) -> None:
        action = getattr(owner, name)

        def timed(*arguments, **settings):
            started = time.process_time()
            try:
                return action(*arguments, **settings)
            finally:
                self.seconds[part] += time.process_time() - started

        setattr(owner, name, timed)

    def shares(self, action, rounds: int = ROUNDS) -> dict[str, object]:
        """Of the fastest round: what it took, and the share of each part."""
        found = []
        for _ in range(rounds + 1):  # the first warms up
            self.seconds.clear()
            started = time.process_time()
            action()
            found.append((time.process_time() - started, dict(self.seconds)))
        whole, parts = min(found[1:], key=lambda each: each[0])
        return {"cpu_seconds": whole, "shares": {part: seconds / whole for part, seconds in parts.items()}}


def multiply_rate(size: int = 1024, repeats: int = 20) -> float:
    """Floating-point operations per CPU second of a large matrix product."""
    a, b = torch.randn(size, size), torch.randn(size, size)

    def seconds() -> float:
        started = time.process_time()
        torch.mm(a, b)
        return time.process_time() - started

    return 2.0 * size**3 / min(seconds() for _ in range(repeats))


def measured(name: str, train, test) -> dict[str, object]:
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

    operations = {action: multiply_operations(action) for action in (learn, transform)}
    clock = Clock()
    for part, places in PARTS[name].items():
        for place in places:
            owner, _, method = place.rpartition(".")
            clock.time(network.get_submodule(owner), method, part)
    clock.time(torch.autograd, "backward", "gradients")
    clock.time(trainer.optimizers[0], "step", "optimiser")
    found = SimpleNamespace(training=clock.shares(learn), transform=clock.shares(transform))
    rate = multiply_rate()
    for path, action, documents in (
        (found.training, learn, sum(len(batch) for batch in batches)),
        (found.transform, transform, len(blocks) * BLOCK),
    ):
        path["documents_per_cpu_second"] = documents / path["cpu_seconds"]
        path["share_of_multiply_limit"] = operations[action] / rate / path["cpu_seconds"]
    return vars(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train, test = (load_documents("20newsgroups-nvdm", part).counts for part in ("train", "test"))
    result: dict[str, object] = {"load_average": os.getloadavg()[0]} | provenance()
    result |= {name: measured(name, train, test) for name in PARTS}
    print(json.dumps(result, indent=2))
    if arguments.json:
        write_json(arguments.json, result)


if __name__ == "__main__":
    main()
