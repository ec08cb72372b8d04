"""Speed of NVDM on the paper's files: an epoch, a fit to the paper's perplexity, transform, imports."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from scipy.sparse import csr_matrix

from lab.benchmark.systems.plain_nvdm import DenseFit
from lab.speed.timing import best_seconds, median_seconds, multiply_rate, seconds_of
from varitext.corpora import load_documents
from varitext.corpora.documents import Documents
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer, hold_out
from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel
from varitext.documents.posterior import perplexity_of
from varitext.documents.settings import DocumentSettings
from varitext.models.documents.nvdm import NVDM
from varitext.runtime.devices import running_on

THREADS, SEED = 2, 0
TARGET = 836.0  # the paper's test perplexity, K = 50
DENSE_EPOCHS = 60


def measure(quick: bool) -> dict[str, Any]:
    torch.set_num_threads(THREADS)
    train, test = load_documents("20newsgroups-nvdm", "train"), load_documents("20newsgroups-nvdm", "test")
    found: dict[str, Any] = {"threads": THREADS, "load_average": os.getloadavg()[0]}
    found |= epochs_side_by_side(train.counts, repeats=1 if quick else 5)
    found["to_836"] = seconds_to_target(train, test, epochs=1 if quick else 20)
    model = DocumentModel("nvdm", threads=THREADS, epochs=1 if quick else None)
    model.fit(load_documents("20newsgroups-nvdm", "train"))
    record = model.perplexity_record(test)
    found["fit"] = {"seconds": model.fitted_.fit_seconds, "test_perplexity": record.per_document_perplexity}
    seconds = best_seconds(lambda: model.transform(test.counts), 3)
    found["transform_documents_per_second"] = test.counts.shape[0] / seconds
    found["seconds"] = import_seconds()
    dense = DenseFit(train.counts.toarray())
    seconds = seconds_of(lambda: [dense.epoch() for _ in range(1 if quick else DENSE_EPOCHS)])
    found["dense_fit"] = {"seconds": seconds, "test_perplexity": dense.perplexity(test.counts.toarray())}
    return found


def epochs_side_by_side(counts: csr_matrix, repeats: int) -> dict[str, float]:
    """Median seconds of an epoch, and those of a straightforward dense PyTorch NVDM."""
    recipe = choose_recipe("nvdm", DocumentSettings("nvdm", 50), counts)
    network = build_network("nvdm", recipe, counts, SEED, "cpu")
    trainer = choose_trainer(network, recipe, counts, counts[:100], "cpu")
    network.train()
    dense = DenseFit(counts.toarray())
    epochs = iter(range(repeats + 1))

    def epoch() -> None:
        for batch in trainer.task.batches(next(epochs)):
            trainer._step(batch)

    ours, theirs = median_seconds(epoch, dense.epoch, repeats=repeats, warm_up=1)
    documents = counts.shape[0]
    return {
        "epoch_seconds": ours,
        "dense_epoch_seconds": theirs,
        "epoch_speed_up": theirs / ours,
        "documents_per_second": documents / ours,
        "fraction_of_matrix_multiply_limit": documents * _training_flops(network) / ours / multiply_rate(),
    }


def _training_flops(network: torch.nn.Module) -> float:
    """Multiply-adds of the dense layers, forward and both backward products, per document."""
    layers = [module for module in network.modules() if isinstance(module, torch.nn.Linear)]
    return sum(6.0 * layer.weight.numel() for layer in layers)


class Watch:
    """Measures the test perplexity after every epoch, with the clock of the fit stopped meanwhile."""

    def __init__(self, network: NVDM, test: Documents):
        self.network, self.test = network, test
        self.paused, self.started, self.reached = 0.0, time.perf_counter(), None

    def step(self, share_done: float, elbo: float, kl: float) -> None: ...

    def note(self, message: str) -> None: ...

    def round(self, record: dict[str, float]) -> None:
        now = time.perf_counter()
        if self.reached is None and record["epoch"] >= 5:
            found = perplexity_of(self.network.eval(), self.test.counts, PREDICTION_SAMPLES, SEED)
            self.network.train()
            if found.per_document_perplexity <= TARGET:
                seconds = now - self.started - self.paused
                perplexity = found.per_document_perplexity
                self.reached = {"seconds": seconds, "epoch": record["epoch"], "test_perplexity": perplexity}
        self.paused += time.perf_counter() - now


def seconds_to_target(train: Documents, test: Documents, epochs: int) -> dict[str, float] | None:
    """From the start of a fit to the first epoch with a test perplexity of at most the paper's."""
    started, settings = time.perf_counter(), DocumentSettings("nvdm", epochs=epochs)
    with running_on(THREADS):
        counts, held_out = hold_out(train.counts, settings.dev_share, SEED)
        recipe = choose_recipe("nvdm", settings, counts)
        network = build_network("nvdm", recipe, counts, SEED, "cpu")
        watch = Watch(network, test)
        watch.started = started
        choose_trainer(network, recipe, counts, held_out, "cpu", progress=watch).train()
    return watch.reached


def import_seconds() -> dict[str, float]:
    """Best of five, including the start of the interpreter."""
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "import_varitext": [sys.executable, "-c", "import varitext"],
        "varitext_help": [str(Path(sys.executable).with_name("varitext")), "--help"],
    }
    return {
        name: best_seconds(lambda c=command: subprocess.run(c, capture_output=True, check=True), 5)
        for name, command in commands.items()
    }
