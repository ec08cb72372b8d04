"""Speed of training with many workers, estimated from measurements of one.

Measured with the corpus of `large_corpus.py` and the recommended NVDM, K = 50: processor seconds of training per
document, of the passes over the corpus before it and of the held-out score; of a random number (every worker draws the
noise of the whole batch); and of a sum of gradients over two processes by gloo. Assumed: `Assumed` below. A step of W
workers with b documents each takes

    b * document  +  W * b * K * number  +  2 (W - 1) / W * gradient / rate  +  2 (W - 1) * latency

where the last two terms are those of a ring, which gloo uses.
"""

import json
import multiprocessing
import os
import platform
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from lab.speed.large_corpus import WORDS, write_corpus
from lab.speed.timing import best_seconds, seconds_of
from varitext.corpora import load_documents
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer, hold_out
from varitext.documents.settings import DocumentSettings
from varitext.runtime.processes import present_world
from varitext.training.trainer import Trainer

LATENT = 50
HELD_OUT = 2000  # what a large corpus holds out
WORKERS = (1, 10, 100, 1000)


@dataclass(frozen=True)
class Assumed:
    network_bytes_per_second: float = 1.25e9  # 10 Gbit/s between machines
    latency_seconds: float = 50e-6  # of one message between machines
    dollars_per_core_hour: float = 0.05
    documents: int = 100_000_000
    epochs: int = 8  # what the recommended recipe takes for that many
    documents_per_worker_and_step: int = 256


def measure(quick: bool) -> dict[str, Any]:
    measured, assumed = measure_one(500 if quick else 8192), Assumed()
    machine = {"processor": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0))}
    found = {"machine": machine | {"torch": torch.__version__}, "measured": measured, "assumed": asdict(assumed)}
    return found | {"estimates": [estimate(measured, assumed, workers) for workers in WORKERS]}


def measure_one(documents: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        about = write_corpus(f"{folder}/shards", documents, seed=1)
        before = best_seconds(lambda: trainer_of(Path(folder) / "shards"), 3, time.process_time)
        trainer = trainer_of(Path(folder) / "shards")
        score = best_seconds(trainer._score, 2, time.process_time)
        training = seconds_of(trainer.train, time.process_time) - 2 * score  # before the first step, and after the last
    gradient = sum(parameter.numel() for parameter in trainer.model.parameters()) * 4
    noise = best_seconds(lambda: torch.randn(256, 40, LATENT), 9, time.process_time) / (256 * 40 * LATENT)
    learned, held_out = trainer.task.train.shape[0], trainer.task.dev.shape[0]
    return about | {
        "vocabulary": WORDS,
        "latent_dim": LATENT,
        "documents": learned,
        "seconds_per_document": training / learned,
        "seconds_per_document_before_training": before / documents,
        "seconds_per_held_out_document": score / held_out,
        "seconds_per_number_of_noise": noise,
        "gradient_bytes": gradient,
        **two_process_sum(gradient),
    }


def trainer_of(shards: Path) -> Trainer:
    """What `fit` does before training: each process's passes over the corpus, and checks of its files."""
    counts = load_documents(str(shards)).counts.without_empty()
    settings = DocumentSettings("nvdm", LATENT, epochs=1, threads=1, batch_size=256)
    train, held_out = hold_out(counts, 0.05, 0)
    recipe = choose_recipe("nvdm", settings, train)
    network = build_network("nvdm", recipe, train, 0, "cpu")
    return choose_trainer(network, recipe, train, held_out, "cpu")


def two_process_sum(size: int, times: int = 200) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        started = [context.Process(target=_sum, args=(rank, folder, size, times)) for rank in range(2)]
        for process in started:
            process.start()
        for process in started:
            process.join()
        return json.loads((Path(folder) / "seconds").read_text())


def _sum(rank: int, folder: str, size: int, times: int) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    world, gradient, taken = present_world("cpu"), torch.zeros(size // 4), []
    before = time.process_time()
    for _ in range(times):
        started = time.perf_counter()
        world.sum_([gradient])
        taken.append(time.perf_counter() - started)
    if world.is_first:
        of_core = (time.process_time() - before) / times
        found = {"two_process_sum_seconds": min(taken), "two_process_sum_core_seconds": of_core}
        (Path(folder) / "seconds").write_text(json.dumps(found))
    distributed.destroy_process_group()


def estimate(measured: dict[str, Any], assumed: Assumed, workers: int) -> dict[str, Any]:
    each = assumed.documents_per_worker_and_step
    compute = each * measured["seconds_per_document"]
    noise = workers * each * LATENT * measured["seconds_per_number_of_noise"] if workers > 1 else 0.0
    # each of two processes sends the gradient once, in two halves
    rate = min(assumed.network_bytes_per_second, measured["gradient_bytes"] / measured["two_process_sum_core_seconds"])
    transfer = 2 * (workers - 1) / workers * measured["gradient_bytes"] / rate
    waiting = 2 * (workers - 1) * assumed.latency_seconds
    step = compute + noise + transfer + waiting
    steps = assumed.epochs * assumed.documents / (workers * each)
    before = assumed.documents * measured["seconds_per_document_before_training"]
    scores = (1 + assumed.epochs) * HELD_OUT * measured["seconds_per_held_out_document"]
    seconds = before + steps * step + scores
    parts = {
        "computing": steps * compute,
        "noise of the whole batch": steps * noise,
        "sending gradients": steps * transfer,
        "waiting for messages": steps * waiting,
        "passes before training": before,
        "held-out score": scores,
    }
    return {
        "workers": workers,
        "updates": steps,
        "step_milliseconds": 1000 * step,
        "documents_per_second": workers * each / step,
        "share_computing": steps * compute / seconds,
        "hours": seconds / 3600,
        "core_hours": workers * seconds / 3600,
        "dollars": workers * seconds / 3600 * assumed.dollars_per_core_hour,
        "seconds": parts,
        "bottleneck": max(parts, key=parts.__getitem__),
    }
