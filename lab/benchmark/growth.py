"""How the cost of training grows with documents, words and latent dimensions.

Every point is one epoch on synthetic documents, in a process of its own. Linear growth is a slope of 1 of log cost
against log size; for cost per document, a slope of 0.
"""

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from lab.child import in_child
from lab.memory import watched
from varitext.batches.counts import CountBatches
from varitext.corpora import load_documents
from varitext.corpora.sharded_counts import Counts
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer
from varitext.documents.model import DocumentModel
from varitext.documents.settings import DocumentSettings
from varitext.layers.counts import estimated_log_normaliser, sample_words
from varitext.models.documents.nvdm import NVDM
from varitext.report.drawing import INCH, Figure, drawing_style, svg_text
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table
from varitext.training.trainer import Trainer

FULL, SAMPLED = "full", "sampled"
FIT_EPOCHS = 5
WARM_UP = 3  # batches
SLICES = 5  # of an epoch; the median of their rates counts
DRAWS = 100  # of sets of words, for the bias
AXES = {"documents": "documents", "words": "words", "latent": "latent dimensions"}
COSTS = {"documents": "seconds per epoch", "words": "seconds per document", "latent": "seconds per document"}
COLOURS = {FULL: "#1f5fa8", SAMPLED: "#c4561d"}
PANEL, HEIGHT = 320, 270  # pixels


class Size(NamedTuple):
    """One point: the curve it belongs to, and all sizes."""

    curve: str
    documents: int = 10_000
    words: int = 2000
    latent_dim: int = 50
    softmax: str = FULL
    epochs: int = 0  # of a complete fit, to compare perplexities


def sizes(quick: bool) -> Iterator[Size]:
    """All points, small sizes first and those along `documents` last."""
    scale = 40 if quick else 1
    for words in (2000, 5000, 10_000, 20_000, 50_000, 100_000):
        epochs = FIT_EPOCHS if words >= 20_000 and not quick else 0
        for softmax in (FULL, SAMPLED) if words > 5000 else (FULL,):
            yield Size("words", 10_000 // scale, words // scale, 50 if scale == 1 else 8, softmax, epochs)
    for latent_dim in (10, 20, 50, 100, 200, 500):
        yield Size("latent", 10_000 // scale, latent_dim=latent_dim // min(scale, 10))
    for documents in (10_000, 50_000, 200_000, 800_000):
        yield Size("documents", documents // scale)


def runs(plan: Plan) -> Iterator[Run]:
    for size in sizes(plan.quick):
        settings = {name: value for name, value in size._asdict().items() if name != "epochs"}
        yield Run(settings, partial(measured, size, plan.threads or 1))


def measured(size: Size, threads: int) -> dict[str, Any]:
    """Measure one point. Documents are drawn in another process, so that their memory does not count."""
    with tempfile.TemporaryDirectory() as name:
        train, test = (str(Path(name) / part) for part in ("train", "test"))
        drawn = [(train, size.documents, 1), *([(test, 1000, 2)] if size.epochs else [])]
        for folder, documents, seed in drawn:
            task = {"folder": folder, "documents": documents, "words": size.words, "seed": seed}
            in_child("lab.benchmark.synthetic:write_documents", task, 1)
        task = {"train": train, "test": test, "latent_dim": size.latent_dim, "softmax": size.softmax}
        task |= {"threads": threads, "epochs": size.epochs}
        return {"epochs": size.epochs} | in_child("lab.benchmark.growth:measure_point", task, threads)


# Run in the child process


def measure_point(train: str, test: str, latent_dim: int, softmax: str, threads: int, epochs: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    counts = load_documents(train).counts
    assert counts is not None  # a shard folder
    settings = DocumentSettings("nvdm", latent_dim, softmax=softmax, threads=threads)
    with watched() as peak:
        trainer = _trainer(settings, counts)
        per_document = _seconds_per_document(trainer)
    found: dict[str, Any] = {"seconds_per_document": per_document, "peak_memory_mb": peak.above}
    network: nn.Module = trainer.model
    if epochs:
        model = DocumentModel("nvdm", latent_dim, softmax=softmax, threads=threads, epochs=epochs)
        model.fit(load_documents(train))
        network, record = model.fitted_.network, model.perplexity_record(load_documents(test))
        found |= {"fit_seconds": model.fitted_.fit_seconds, "per_document_perplexity": record.per_document_perplexity}
        found |= {"unigram_perplexity": record.unigram_per_document_perplexity}
    if softmax == SAMPLED and isinstance(network, NVDM):
        found |= normaliser_bias(network, counts)
    return found


def _trainer(settings: DocumentSettings, counts: Counts) -> Trainer:
    recipe = choose_recipe("nvdm", settings, counts)
    network = build_network("nvdm", recipe, counts, seed=0, device="cpu")
    network.train()
    trainer = choose_trainer(network, recipe, counts, counts[:100], "cpu")
    assert isinstance(trainer, Trainer)  # NVDM learns by gradients
    return trainer


def _seconds_per_document(trainer: Trainer) -> float:
    """Median over slices of one epoch, which is little affected by other work on the machine."""
    batches = trainer.task.batches(0)
    for batch in itertools.islice(batches, WARM_UP):
        trainer._step(batch)
    size = max(1, (trainer.task.steps_per_epoch - WARM_UP) // SLICES)
    rates: list[float] = []
    while len(rates) < SLICES:
        started, seen = time.perf_counter(), 0
        for batch in itertools.islice(batches, size):
            trainer._step(batch)
            seen += len(batch)
        if not seen:
            break
        rates.append((time.perf_counter() - started) / seen)
    return statistics.median(rates)


@torch.no_grad()
def normaliser_bias(network: NVDM, counts: Counts) -> dict[str, float]:
    """Bias and spread of the estimate of log Z, in nats, at the posterior means of some documents."""
    torch.manual_seed(0)
    batch = next(CountBatches(counts).in_order(100))
    h = network.eval().posterior(network.encode(batch)).mean[None]
    exact = torch.logsumexp(network.decoder(h), -1)
    logs = network.get_buffer("word_log_frequencies")
    off = torch.stack([estimated_log_normaliser(network.decoder, h, sample_words(logs)) - exact for _ in range(DRAWS)])
    return {"log_normaliser_bias": float(off.mean()), "log_normaliser_spread": float(off.std(0).mean())}


# Tables and figure


class Curve(NamedTuple):
    """Cost against one size, in ascending order of size."""

    along: str
    softmax: str
    sizes: np.ndarray
    seconds: np.ndarray  # of an epoch for `documents`, of a document for the others
    megabytes: np.ndarray

    @property
    def slope(self) -> float:
        """Of log seconds against log size, by least squares: 1 is linear."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


def curves(records: list[Record]) -> list[Curve]:
    points = [record["settings"] | record["result"] for record in records]
    found = []
    for along in AXES:
        for softmax in (FULL, SAMPLED):
            chosen = [one for one in points if (one["curve"], one["softmax"]) == (along, softmax)]
            if len(chosen) > 1:
                found.append(_curve(along, softmax, chosen))
    return found


def _curve(along: str, softmax: str, points: list[dict[str, Any]]) -> Curve:
    name = "latent_dim" if along == "latent" else along
    points = sorted(points, key=lambda one: one[name])
    seconds = [one["seconds_per_document"] * (one["documents"] if along == "documents" else 1) for one in points]
    columns = ([one[name] for one in points], seconds, [one["peak_memory_mb"] or np.nan for one in points])
    return Curve(along, softmax, *(np.array(column, float) for column in columns))


def table(records: list[Record]) -> str:
    return f"{growth_table(records)}\n\n{softmax_table(records)}"


def growth_table(records: list[Record]) -> str:
    head = ["along", "softmax in training", "sizes", "cost at the smallest", "at the largest", "slope", "memory, MB"]
    rows = []
    for curve in curves(records):
        extent = f"{curve.sizes[0]:,.0f} to {curve.sizes[-1]:,.0f}"
        memory = f"{curve.megabytes[0]:,.0f} to {curve.megabytes[-1]:,.0f}"
        ends = [f"{value:.3g} {COSTS[curve.along]}" for value in (curve.seconds[0], curve.seconds[-1])]
        rows.append([AXES[curve.along], curve.softmax, extent, *ends, f"{curve.slope:.2f}", memory])
    return markdown_table(head, rows)


def softmax_table(records: list[Record]) -> str:
    """The sampled softmax beside the full one, at every vocabulary size that has both."""
    points = [record["settings"] | record["result"] for record in records]
    found = {(one["words"], one["softmax"]): one for one in points if one["curve"] == "words"}
    head = ["words", "step time, full / sampled", "bias of the log normaliser, nats", "std of one estimate"]
    head += ["perplexity, full", "sampled", "seconds to fit, full", "sampled"]
    rows = []
    for words in sorted({words for words, softmax in found if softmax == SAMPLED and (words, FULL) in found}):
        full, sampled = found[words, FULL], found[words, SAMPLED]
        gain = full["seconds_per_document"] / sampled["seconds_per_document"]
        off = [f"{sampled['log_normaliser_bias']:.4f}", f"{sampled['log_normaliser_spread']:.4f}"]
        keys = ("per_document_perplexity", "fit_seconds")
        fits = [f"{one[key]:,.0f}" if key in one else "" for key in keys for one in (full, sampled)]
        rows.append([f"{words:,}", f"{gain:.2f}", *off, *fits])
    return markdown_table(head, rows)


def figure(records: list[Record]) -> str:
    """One panel per kind of size, both axes logarithmic."""
    found = curves(records)
    names = [name for name in AXES if any(curve.along == name for curve in found)]
    with drawing_style():
        size = (len(names) * PANEL / INCH, HEIGHT / INCH)
        drawing = Figure(size, layout="constrained", label="Growth of the cost of training")
        for axes, name in zip(drawing.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            for curve in (curve for curve in found if curve.along == name):
                label = f"{curve.softmax} softmax, slope {curve.slope:.2f}"
                axes.loglog(curve.sizes, curve.seconds, "o-", color=COLOURS[curve.softmax], markersize=5, label=label)
            axes.set(title=COSTS[name], xlabel=AXES[name])
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:,g}")
            axes.minorticks_off()
            axes.legend(fontsize=10, loc="lower right")
    return svg_text(drawing)


EXPERIMENT = Experiment("growth", "growth of the cost of training with documents, words and K", runs, table, figure)
