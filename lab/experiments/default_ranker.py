"""The default ranker on WikiQA and QASent, and an ensemble."""

from collections.abc import Iterator
from functools import partial

from lab.experiments.ranker_measures import COLUMNS, columns, measure
from varitext.answers.settings import DEFAULT_MODEL
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, results

SEEDS = {"wikiqa": 5, "qasent": 3}
TOGETHER = 5  # networks of the ensemble, which has one run
ALONE, ENSEMBLE = "one network", f"ensemble of {TOGETHER}"


def runs(plan: Plan) -> Iterator[Run]:
    networks = 2 if plan.quick else TOGETHER
    for corpus, seeds in SEEDS.items():
        for seed in plan.seeds_or(seeds):
            settings = {"corpus": corpus, "model": DEFAULT_MODEL, "variant": ALONE, "seed": seed}
            yield Run(settings, partial(measure, corpus, DEFAULT_MODEL, seed, plan))
    settings = {"corpus": "wikiqa", "model": DEFAULT_MODEL, "variant": ENSEMBLE, "seed": 0}
    yield Run(settings, partial(measure, "wikiqa", DEFAULT_MODEL, 0, plan, ensemble=networks))


def table(records: list[Record]) -> str:
    rows = []
    for corpus in SEEDS:
        for variant in (ALONE, ENSEMBLE):
            if found := results(records, corpus=corpus, variant=variant):
                rows.append([corpus, variant, str(len(found)), *columns(found)])
    return markdown_table(["corpus", "ranker", "seeds", *COLUMNS], rows)


EXPERIMENT = Experiment("default-ranker", "the default ranker, and an ensemble of it", runs, table)
