"""What is measured of a ranker that users get: how it ranks, what it costs, and its joint picture of candidates."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab.experiments.joint_measures import joint_measures
from varitext.reproduce.answer_fits import DATA, fit_ranker, load_part, record_of
from varitext.reproduce.engine import Plan

COLUMNS = ("dev MAP", "MAP", "MRR", "calibration error", "CPU seconds")


def measure(corpus: str, model: str, seed: int, plan: Plan, **settings: Any) -> dict[str, Any]:
    started = time.process_time()
    ranker = fit_ranker(corpus, model, seed, plan, **settings)
    seconds = time.process_time() - started
    comparison = ranker.fitted_.comparison
    assert comparison is not None  # of a ranker that was just fitted
    dev, test, protocol = load_part(corpus, "dev", plan), load_part(corpus, "test", plan), DATA[corpus].protocol
    found = {
        "dev_map": round(ranker.fitted_.dev_map, 5),
        "dev_floors": {"word_count": round(comparison.word_count, 5), "bm25": round(comparison.bm25, 5)},
        "fit_cpu_seconds": round(seconds, 1),  # of all threads, data and vectors read: a busy machine changes little
        "joint": joint_measures(ranker, dev, test, protocol) if corpus == "wikiqa" else None,
    }
    return record_of(ranker.evaluate(test, protocol), per_question=True) | found


def columns(found: list[dict[str, Any]]) -> Iterator[str]:
    """`COLUMNS` of a row, from the results of its seeds."""
    for name in ("dev_map", "map", "mrr"):
        values = [one[name] for one in found]
        yield f"{np.mean(values):.4f}" + (f" ± {np.std(values):.4f}" if len(values) > 1 else "")
    yield f"{np.mean([one['ece'] for one in found]):.3f}"
    yield f"{np.mean([one['fit_cpu_seconds'] for one in found]):.0f}"
