"""One system on one corpus, in this process: time to fit, held-out perplexity, speed of transform, peak memory.

    python -m lab.benchmark.measuring '{"system": "tomotopy", "corpus": "20newsgroups-nvdm", ...}'

`running.py` starts it, so that every system has a process, threads and memory of its own. Prints one JSON object.
"""

import json
import math
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix

from lab.benchmark.limits import best_seconds, seconds_of, speed_limits
from lab.benchmark.systems import (
    FastSystem,
    Setting,
    System,
    TextSystem,
    known_system,
    system_class,
    version_of,
)
from varitext.corpora import load_documents, parts
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import in_memory
from varitext.errors import InputError
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.reproduce.provenance import provenance
from varitext.runtime.memory import watched
from varitext.text import count_texts

QUICK_DOCUMENTS = 300
TRANSFORMS = 3  # of which the fastest counts
ORDER_SEED = 0  # of the order in which every system sees the training documents


@dataclass(frozen=True)
class Task:
    """What a measuring process is told."""

    system: str
    corpus: str
    latent_dim: int = 50
    threads: int = 2
    seed: int = 0
    quick: bool = False
    data_dir: str | None = None

    @property
    def setting(self) -> Setting:
        return Setting(self.latent_dim, self.threads, self.seed, self.quick)


class Part(NamedTuple):
    counts: csr_matrix  # [D, V]
    texts: list[str] | None  # of the same documents, if the corpus has them


class Parts(NamedTuple):
    """The same documents for every system."""

    train: Part  # shuffled: many tools take documents as they come, and files are often sorted by label
    test: Part
    sha256: dict[str, str]


def corpus_parts(corpus: str, data_dir: str | None, quick: bool) -> Parts:
    """Train and test documents over the words of train; those without any word are left out."""
    if not {"train", "test"} <= set(parts(corpus)):
        raise InputError(f"{corpus} has no train and test parts: a benchmark needs both")
    documents = {part: load_documents(corpus, part, data_dir) for part in ("train", "test")}
    train, test = _counts(**documents)
    order = np.random.default_rng(ORDER_SEED).permutation(np.flatnonzero(train.getnnz(1)))
    most = QUICK_DOCUMENTS if quick else None
    return Parts(
        _part(train, documents["train"], order[:most]),
        _part(test, documents["test"], np.flatnonzero(test.getnnz(1))[:most]),
        {part: one.sha256 for part, one in documents.items()},
    )


def _counts(train: Documents, test: Documents) -> tuple[csr_matrix, csr_matrix]:
    if train.counts is not None and test.counts is not None:
        return in_memory(train.counts), in_memory(test.counts)
    counted = count_texts(train.texts or ())
    return counted.counts, count_texts(test.texts or (), vocabulary=counted.vocabulary).counts


def _part(counts: csr_matrix, documents: Documents, rows: np.ndarray) -> Part:
    texts = documents.texts
    return Part(counts[rows], None if texts is None else [texts[row] for row in rows])


def measure(task: Task) -> dict[str, Any]:
    system_module = system_class(task.system)  # imports, which the peak leaves out
    with watched() as peak:
        train, test, sha256 = corpus_parts(task.corpus, task.data_dir, task.quick)
        system = system_module(task.setting)
        documents = _read(system, train)
        fit_seconds = seconds_of(lambda: system.fit(documents))
    given = _read(system, test)
    transform_seconds = best_seconds(lambda: system.transform(given), 1 if task.quick else TRANSFORMS)
    result: dict[str, Any] = {
        "fit_seconds": fit_seconds,
        "per_document_perplexity": _perplexity(system, test.counts),
        "figure": known_system(task.system).figure,
        "transform_documents_per_second": test.counts.shape[0] / transform_seconds,
        "peak_memory_mb": peak.above,
    }
    if isinstance(system, FastSystem):
        result["transform_limits"] = speed_limits(lambda: system.transform_here(given, True), transform_seconds)
        fast_seconds = best_seconds(lambda: system.transform_fast(given), 1 if task.quick else TRANSFORMS)
        result["fast_documents_per_second"] = test.counts.shape[0] / fast_seconds
        result["fast_limits"] = speed_limits(lambda: system.transform_here(given, False), fast_seconds)
    documents_and_words = dict(zip(("documents", "words"), train.counts.shape, strict=True))
    return result | conditions(task) | documents_and_words | {"sha256": sha256}


def _read(system: System | TextSystem, part: Part) -> Any:
    return system.read_texts(part.texts or []) if isinstance(system, TextSystem) else system.read(part.counts)


def _perplexity(system: System | TextSystem, counts: csr_matrix) -> float | None:
    if isinstance(system, TextSystem):
        return None
    found = per_document_perplexity(system.bounds(counts), np.asarray(counts.sum(1), np.float64).ravel())
    return found if math.isfinite(found) else None


def conditions(task: Task) -> dict[str, Any]:
    return {
        "task": {name: value for name, value in asdict(task).items() if name != "data_dir"},
        "version": version_of(task.system),
        **provenance(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    torch.set_num_threads(task.threads)
    torch.optim.AdamW([torch.zeros(1)])  # what torch imports at the first optimiser belongs to the imports
    printed, sys.stdout = sys.stdout, sys.stderr  # whatever a peer prints is not the result
    result = measure(task)
    print(json.dumps(result), file=printed, flush=True)


if __name__ == "__main__":
    main()
