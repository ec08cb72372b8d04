"""Every system on 20newsgroups-nvdm: seconds to fit, held-out perplexity, speed of transform, peak memory.

All get the same documents, words and threads, each in a process of its own.
"""

import math
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

from lab.benchmark.systems import SYSTEMS, Setting, is_installed, system_class, version_of
from lab.child import in_child
from lab.memory import watched
from lab.speed.timing import best_seconds, seconds_of
from varitext.corpora import load_documents
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import in_memory
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

CORPUS, LATENT_DIM, THREADS = "20newsgroups-nvdm", 50, 2
QUICK_DOCUMENTS = 300
TRANSFORMS = 3  # of which the fastest counts
ORDER_SEED = 0  # of the order in which every system sees the training documents
COLUMNS = {  # key: heading, digits
    "fit_seconds": ("seconds to fit", 1),
    "per_document_perplexity": ("perplexity", 0),
    "transform_documents_per_second": ("documents per second, transform", 0),
    "peak_memory_mb": ("peak memory, MB", 0),
}


def runs(plan: Plan) -> Iterator[Run]:
    threads = plan.threads or THREADS
    for name, known in SYSTEMS.items():
        missing = None if is_installed(name) else f"{known.title} is not installed: {known.install}"
        for seed in plan.seeds_or(1):
            settings = {"system": name, "corpus": CORPUS, "latent_dim": LATENT_DIM, "threads": threads, "seed": seed}
            task = settings | {"quick": plan.quick, "data_dir": plan.data_dir and str(plan.data_dir)}
            measured = partial(in_child, "lab.benchmark.compare:measure", task, threads, known.package)
            yield Run(settings, measured, missing)


def measure(
    system: str,
    corpus: str,
    latent_dim: int,
    threads: int,
    seed: int,
    quick: bool,
    data_dir: str | None,
    share: float = 1.0,
) -> dict[str, Any]:
    """Runs in the child process; `transform` is measured only after a complete fit."""
    torch.set_num_threads(threads)
    torch.optim.AdamW([torch.zeros(1)])  # torch imports more with the first optimizer: count that as imports, too
    make = system_class(system)
    with watched() as peak:
        train, test = (load_documents(corpus, part, Path(data_dir) if data_dir else None) for part in ("train", "test"))
        most = QUICK_DOCUMENTS if quick else None
        learned, held_out = shuffled(train)[:most], non_empty(test)[:most]
        tool = make(Setting(latent_dim, threads, seed, quick, share))
        documents = tool.read(learned)
        fit_seconds = seconds_of(lambda: tool.fit(documents))
    given, repeats = tool.read(held_out), 1 if quick else TRANSFORMS
    found: dict[str, Any] = {
        "fit_seconds": fit_seconds,
        "per_document_perplexity": _perplexity(tool.bounds(held_out), held_out),
        "figure": SYSTEMS[system].figure,
        "peak_memory_mb": peak.above,
    }
    if share == 1:
        whole = best_seconds(lambda: tool.transform(given), repeats)
        found["transform_documents_per_second"] = held_out.shape[0] / whole
    if share == 1 and system.startswith("varitext"):
        fast = best_seconds(lambda: tool.transform(given, refine=False), repeats)  # type: ignore[call-arg]
        found["fast_documents_per_second"] = held_out.shape[0] / fast
    conditions = {"version": version_of(system), "cores": os.cpu_count(), "load_average": os.getloadavg()[0]}
    sizes = dict(zip(("documents", "words"), learned.shape, strict=True))
    return found | conditions | sizes | {"sha256": {"train": train.sha256, "test": test.sha256}}


def shuffled(documents: Documents) -> csr_matrix:
    """Shuffle the documents: many tools read them in file order, and files are often sorted by label."""
    counts = non_empty(documents)
    return counts[np.random.default_rng(ORDER_SEED).permutation(counts.shape[0])]


def non_empty(documents: Documents) -> csr_matrix:
    counts = in_memory(documents.counts)
    return counts[np.flatnonzero(counts.getnnz(1))]


def _perplexity(bounds: np.ndarray, counts: csr_matrix) -> float | None:
    found = per_document_perplexity(bounds, np.asarray(counts.sum(1), np.float64).ravel())
    return found if math.isfinite(found) else None


def table(records: list[Record]) -> str:
    """One row per system; `relative` is relative to varitext's default model."""
    found = {record["settings"]["system"]: record for record in records}
    ours = found["varitext"]["result"] if "varitext" in found else {}
    head = ["", "settings", *(word for heading, _ in COLUMNS.values() for word in (heading, "relative"))]
    rows = []
    for name in (name for name in SYSTEMS if name in found):
        result, cells = found[name]["result"], []
        for key, (_, digits) in COLUMNS.items():
            value = result[key]
            relative = f"{value / ours[key]:.2f}" if value is not None and ours.get(key) else ""
            cells += ["-", "-"] if value is None else [f"{value:,.{digits}f}", relative]
        rows.append([f"{SYSTEMS[name].title} {result['version']}", SYSTEMS[name].settings, *cells])
    return f"{markdown_table(head, rows)}\n\n{_conditions(found)}"


def _conditions(found: dict[str, Record]) -> str:
    (first, *_), results = found.values(), [record["result"] for record in found.values()]
    settings, versions, result = first["settings"], first["versions"], first["result"]
    loads = [one["load_average"] for one in results]
    figures = "; ".join(sorted({one["figure"] for one in results}))
    fast = results[0].get("fast_documents_per_second") or found["varitext"]["result"].get("fast_documents_per_second")
    return (
        f"{settings['corpus']}: {result['documents']:,} training documents, {result['words']:,} words; "
        f"K = {settings['latent_dim']}, {settings['threads']} threads on {result['cores']} cores, load average "
        f"{min(loads):.1f} to {max(loads):.1f}; Python {versions['python']}, torch {versions['torch']}. One process "
        "per system. Peak memory is above the imports, for loading and fitting, worker processes included. Perplexity "
        f"is per document, on the same test documents (lower is better): {figures}. `varitext transform --fast`, "
        f"without refinement, gives {fast:,.0f} vectors per second."
    )


EXPERIMENT = Experiment("benchmark", "speed, perplexity and memory beside other topic models", runs, table)
