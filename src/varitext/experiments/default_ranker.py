"""The default ranker on WikiQA and QASent: what each kind of feature brings, and what an ensemble does; five seeds."""

import itertools
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.answers.settings import DEFAULT_MODEL
from varitext.experiments.answer_fits import DATA, fit_ranker, load_part, record_of
from varitext.experiments.joint_measures import joint_measures
from varitext.experiments.runs import Experiment, Plan, Record, Run, markdown_table

SEEDS = 5
TOGETHER = 5  # networks of the ensemble, which has one run
VARIANTS: dict[str, str | None] = {
    "all features": None,
    "without features of words": "counts,position",
    "without counts": "words,position",
    "without position": "words,counts",
}
ENSEMBLE = f"ensemble of {TOGETHER}, all features"


def runs(plan: Plan) -> Iterator[Run]:
    for corpus in DATA:
        whole, *ablations = (_runs_of(corpus, variant, plan) for variant in VARIANTS)
        yield from whole
        settings = {"corpus": corpus, "model": DEFAULT_MODEL, "variant": ENSEMBLE, "seed": 0}
        yield Run(settings, partial(measure, corpus, 0, plan, ensemble=2 if plan.quick else TOGETHER))
        yield from itertools.chain(*ablations)


def _runs_of(corpus: str, variant: str, plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        settings = {"corpus": corpus, "model": DEFAULT_MODEL, "variant": variant, "seed": seed}
        yield Run(settings, partial(measure, corpus, seed, plan, features=VARIANTS[variant]))


def measure(corpus: str, seed: int, plan: Plan, **settings: Any) -> dict[str, Any]:
    started = time.process_time()
    ranker = fit_ranker(corpus, DEFAULT_MODEL, seed, plan, **settings)
    seconds = time.process_time() - started
    comparison = ranker.comparison_
    assert comparison is not None  # of a ranker that was just fitted
    dev, test, protocol = load_part(corpus, "dev", plan), load_part(corpus, "test", plan), DATA[corpus].protocol
    found = {
        "dev_map": round(ranker.dev_map_, 5),
        "dev_floors": {"word_count": round(comparison.word_count, 5), "bm25": round(comparison.bm25, 5)},
        "fit_cpu_seconds": round(seconds, 1),  # of all threads, data and vectors read: a busy machine changes little
        "joint": joint_measures(ranker, dev, test, protocol) if corpus == "wikiqa" else None,
    }
    return record_of(ranker.evaluate(test, protocol), per_question=True) | found


def table(records: list[Record]) -> str:
    head = ["corpus", "ranker", "seeds", "dev MAP", "MAP", "MRR", "calibration error", "CPU seconds"]
    rows = []
    for corpus in DATA:
        for variant in (*VARIANTS, ENSEMBLE):
            named = {"corpus": corpus, "variant": variant}
            found = [one["result"] for one in records if named.items() <= one["settings"].items()]
            if found:
                rows.append([corpus, variant, str(len(found)), *_columns(found)])
    return markdown_table(head, rows)


def _columns(found: list[dict[str, Any]]) -> Iterator[str]:
    for name in ("dev_map", "map", "mrr"):
        values = [one[name] for one in found]
        yield f"{np.mean(values):.4f}" + (f" ± {np.std(values):.4f}" if len(values) > 1 else "")
    yield f"{np.mean([one['ece'] for one in found]):.3f}"
    yield f"{np.mean([one['fit_cpu_seconds'] for one in found]):.0f}"


EXPERIMENT = Experiment("default-ranker", "the default ranker, with an ablation of its features", runs, table)
