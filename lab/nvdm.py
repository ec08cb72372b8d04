"""Speed of NVDM on the paper's files, as ratios in one run, on two threads.

    python benchmarks/nvdm.py [--quick] [--json results/nvdm.json]

Measures an epoch against a straightforward dense PyTorch NVDM (interleaved, medians), seconds of fitting from a cold
start to the paper's test perplexity of 836, the fraction of the matrix-multiply limit, peak memory of a fit above the
imports, and import times. `--quick` leaves out the dense model's 60 epochs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from lab.benchmark.systems.plain_nvdm import DenseFit
from varitext.corpora import load_documents
from varitext.documents.fitting import DocumentTask, build_network, choose_recipe, choose_trainer, hold_out
from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel
from varitext.documents.posterior import perplexity_of
from varitext.documents.settings import DocumentSettings
from varitext.files import write_json
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce.provenance import provenance
from varitext.runtime.devices import running_on
from varitext.training.trainer import Trainer

THREADS, SEED = 2, 0
TARGET = 836.0  # the paper's test perplexity, K = 50


def epochs_side_by_side(counts, repeats: int = 5) -> dict[str, float]:
    """Median seconds of an epoch, ours and the dense model's, taking turns."""
    recipe = NVDM.recipe("recommended", counts.shape[0], counts.sum() / counts.shape[0])
    network = NVDM(counts.shape[1], 50, **recipe.architecture)
    network.learn_frequencies(torch.from_numpy(np.asarray(counts.sum(0)).ravel()))
    trainer = Trainer(network, DocumentTask(counts, counts[:100], recipe.training, recipe.objective), recipe.training)
    network.train()
    dense = DenseFit(counts.toarray())
    ours, theirs = [], []
    for epoch in range(repeats + 1):
        ours.append(_seconds(lambda epoch=epoch: [trainer._step(batch) for batch in trainer.task.batches(epoch)]))
        theirs.append(_seconds(dense.epoch))
    ours, theirs = statistics.median(ours[1:]), statistics.median(theirs[1:])  # the first warms up
    documents = counts.shape[0]
    return {
        "epoch_seconds": ours,
        "dense_epoch_seconds": theirs,
        "epoch_speed_up": theirs / ours,
        "documents_per_second": documents / ours,
        "fraction_of_matrix_multiply_limit": documents * _training_flops(network) / ours / _multiply_rate(),
    }


def _training_flops(network: NVDM) -> float:
    """Multiply-adds of the dense layers, forward and both backward products, per document."""
    layers = [module for module in network.modules() if isinstance(module, torch.nn.Linear)]
    return sum(6.0 * layer.weight.numel() for layer in layers)


def _multiply_rate(size: int = 1024, repeats: int = 20) -> float:
    """Floating-point operations per second of a large matrix product, same threads, same run."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    a @ b
    return 2.0 * size**3 / min(_seconds(lambda: a @ b) for _ in range(repeats))


def _seconds(action) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


class Watch:
    """Takes the test perplexity at every round, with the clock of the fit stopped meanwhile."""

    def __init__(self, test):
        self.test, self.network = test, None
        self.paused, self.started, self.reached = 0.0, time.perf_counter(), None

    def step(self, share_done: float, elbo: float, kl: float) -> None: ...

    def note(self, message: str) -> None: ...

    def round(self, record: dict[str, float]) -> None:
        now = time.perf_counter()
        seconds = now - self.started - self.paused
        if self.reached is None and record["epoch"] >= 5:
            found = perplexity_of(self.network.eval(), self.test.counts, PREDICTION_SAMPLES, SEED)
            self.network.train()
            if found.per_document_perplexity <= TARGET:
                self.reached = {"seconds": seconds, "epoch": record["epoch"]}
                self.reached["test_perplexity"] = found.per_document_perplexity
        self.paused += time.perf_counter() - now


def seconds_to_target(train, test, epochs: int) -> dict[str, float] | None:
    """From the start of a fit to the first round whose test perplexity is at most the paper's; only for this clock."""
    watch, settings = Watch(test), DocumentSettings("nvdm", epochs=epochs)
    with running_on(THREADS):
        counts, held_out = hold_out(train.counts, settings.dev_share, SEED)
        recipe = choose_recipe("nvdm", settings, counts)
        watch.network = build_network("nvdm", recipe, counts, SEED, "cpu")
        choose_trainer(watch.network, recipe, counts, held_out, "cpu", progress=watch).train()
    return watch.reached


def peak_memory() -> float:
    """Megabytes above the imports at the peak of a fit, in a process of its own (Linux)."""
    script = (
        "import varitext.documents.model\nfrom varitext.corpora import load_documents\n"
        "def memory(name):\n"
        "    line = next(line for line in open('/proc/self/status') if line.startswith(name))\n"
        "    return int(line.split()[1]) / 1024\n"
        "before = memory('VmRSS')\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"  # the peak counts from here
        "varitext.documents.model.DocumentModel('nvdm', threads=2).fit(load_documents('20newsgroups-nvdm', 'train'))\n"
        "print(memory('VmHWM') - before)"
    )
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def import_seconds() -> dict[str, float]:
    """Best of five, as a user meets them: interpreter start included."""
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "import_varitext": [sys.executable, "-c", "import varitext"],
        "varitext_help": [str(Path(sys.executable).with_name("varitext")), "--help"],
    }
    return {
        name: min(_seconds(lambda c=command: subprocess.run(c, capture_output=True, check=True)) for _ in range(5))
        for name, command in commands.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="do not fit the dense model to the end")
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    train, test = load_documents("20newsgroups-nvdm", "train"), load_documents("20newsgroups-nvdm", "test")
    result: dict[str, object] = {"threads": THREADS, "torch": torch.__version__, "load_average": os.getloadavg()[0]}
    result |= provenance()
    result |= epochs_side_by_side(train.counts)
    result["to_836"] = seconds_to_target(train, test, epochs=20)
    model = DocumentModel("nvdm", threads=THREADS).fit(train)
    record = model.perplexity_record(test)
    result["fit"] = {"seconds": model.fitted_.fit_seconds, "test_perplexity": record.per_document_perplexity}
    counts = test.counts
    result["transform_documents_per_second"] = counts.shape[0] / min(
        _seconds(lambda: model.transform(counts)) for _ in range(3)
    )
    result["peak_memory_mb"] = peak_memory()
    result["seconds"] = import_seconds()
    if not arguments.quick:
        dense = DenseFit(train.counts.toarray())
        seconds = _seconds(lambda: [dense.epoch() for _ in range(60)])
        result["dense_fit"] = {"seconds": seconds, "test_perplexity": dense.perplexity(test.counts.toarray())}
    print(json.dumps(result, indent=2))
    if arguments.json:
        write_json(arguments.json, result)


if __name__ == "__main__":
    main()
