"""The default ranker on WikiQA and QASent: what each kind of feature brings, and what an ensemble does; five seeds."""

import itertools
from collections.abc import Iterator
from functools import partial

from lab.experiments.ranker_measures import COLUMNS, columns, measure
from varitext.answers.settings import DEFAULT_MODEL
from varitext.reproduce.answer_fits import DATA
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

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
        yield Run(settings, partial(measure, corpus, DEFAULT_MODEL, 0, plan, ensemble=2 if plan.quick else TOGETHER))
        yield from itertools.chain(*ablations)


def _runs_of(corpus: str, variant: str, plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        settings = {"corpus": corpus, "model": DEFAULT_MODEL, "variant": variant, "seed": seed}
        yield Run(settings, partial(measure, corpus, DEFAULT_MODEL, seed, plan, features=VARIANTS[variant]))


def table(records: list[Record]) -> str:
    head = ["corpus", "ranker", "seeds", *COLUMNS]
    rows = []
    for corpus in DATA:
        for variant in (*VARIANTS, ENSEMBLE):
            named = {"corpus": corpus, "variant": variant}
            found = [one["result"] for one in records if named.items() <= one["settings"].items()]
            if found:
                rows.append([corpus, variant, str(len(found)), *columns(found)])
    return markdown_table(head, rows)


EXPERIMENT = Experiment("default-ranker", "the default ranker, with an ablation of its features", runs, table)
