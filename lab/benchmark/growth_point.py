"""One point of a growth curve, in this process: seconds of training per document, and peak memory.

    python -m lab.benchmark.growth_point '{"folder": "train", "latent_dim": 50, "softmax": "full", ...}'

With `test` it also fits in earnest and takes the held-out perplexity; with a sampled softmax it looks at the bias.
"""

import itertools
import json
import statistics
import sys
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from lab.benchmark.limits import seconds_of
from varitext.batches.counts import CountBatches
from varitext.corpora import load_documents
from varitext.corpora.sharded_counts import Counts
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer
from varitext.documents.model import DocumentModel
from varitext.documents.settings import DocumentSettings
from varitext.layers.counts import estimated_log_normaliser, sample_words
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce.provenance import provenance
from varitext.runtime.memory import watched
from varitext.training.trainer import Trainer

WARM_UP = 3  # batches
SLICES = 5  # of an epoch; the median of their rates counts
DRAWS = 100  # of sets of words, for the bias


@dataclass(frozen=True)
class Point:
    """What a process is told."""

    folder: str  # of shards
    latent_dim: int = 50
    softmax: str = "full"
    threads: int = 2
    epochs: int = 0  # of a fit in earnest; 0 for none
    test: str | None = None


def measure(point: Point) -> dict[str, Any]:
    torch.set_num_threads(point.threads)
    train = load_documents(point.folder)
    assert train.counts is not None  # a shard folder
    settings = DocumentSettings("nvdm", point.latent_dim, softmax=point.softmax, threads=point.threads)
    with watched() as peak:
        trainer = _trainer(settings, train.counts)
        per_document = _seconds_per_document(trainer)
    found: dict[str, Any] = {"seconds_per_document": per_document, "peak_memory_mb": peak.above, **provenance()}
    network: nn.Module = trainer.model
    if point.epochs and point.test:
        model = DocumentModel(**vars(replace(settings, epochs=point.epochs))).fit(train)
        network, record = model.fitted_.network, model.perplexity_record(load_documents(point.test))
        found |= {"fit_seconds": model.fitted_.fit_seconds, "per_document_perplexity": record.per_document_perplexity}
        found |= {"unigram_perplexity": record.unigram_per_document_perplexity}
    if point.softmax == "sampled" and isinstance(network, NVDM):
        found |= normaliser_bias(network, train.counts)
    return found


def _trainer(settings: DocumentSettings, counts: Counts) -> Trainer:
    recipe = choose_recipe("nvdm", settings, counts)
    network = build_network("nvdm", recipe, counts, seed=0, device="cpu")
    network.train()
    trainer = choose_trainer(network, recipe, counts, counts[:100], "cpu")
    assert isinstance(trainer, Trainer)  # NVDM learns by gradients
    return trainer


def _seconds_per_document(trainer: Trainer) -> float:
    """One epoch, cut into slices: the median leaves out what else the machine did."""
    batches = trainer.task.batches(0)
    for batch in itertools.islice(batches, WARM_UP):
        trainer._step(batch)
    size = max(1, (trainer.task.steps_per_epoch - WARM_UP) // SLICES)
    rates: list[float] = []
    while len(rates) < SLICES:
        seen = 0

        def run() -> None:
            nonlocal seen
            for batch in itertools.islice(batches, size):
                trainer._step(batch)
                seen += len(batch)

        seconds = seconds_of(run)
        if not seen:
            break
        rates.append(seconds / seen)
    return statistics.median(rates)


@torch.no_grad()
def normaliser_bias(network: NVDM, counts: Counts) -> dict[str, float]:
    """How far the estimate of log Z is from the exact one, in nats, at the posterior means of some documents."""
    torch.manual_seed(0)
    batch = next(CountBatches(counts).in_order(100))
    h = network.eval().posterior(network.encode(batch)).mean[None]
    exact = torch.logsumexp(network.decoder(h), -1)
    logs = network.get_buffer("word_log_frequencies")
    off = torch.stack([estimated_log_normaliser(network.decoder, h, sample_words(logs)) - exact for _ in range(DRAWS)])
    return {"log_normaliser_bias": float(off.mean()), "log_normaliser_spread": float(off.std(0).mean())}


def main() -> None:
    printed, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps(measure(Point(**json.loads(sys.argv[1])))), file=printed, flush=True)


if __name__ == "__main__":
    main()
