"""The default ranker on WikiQA and QASent: an ablation of its features, and an ensemble."""

from collections.abc import Iterator
from functools import partial

from lab.experiments.ranker_measures import COLUMNS, columns, measure
from varitext.answers.settings import DEFAULT_MODEL
from varitext.reproduce.answer_fits import DATA
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, results

SEEDS, ABLATION_SEEDS = 5, 2
TOGETHER = 5  # networks of the ensemble, which has one run
VARIANTS: dict[str, str | None] = {
    "all features": None,
    "without features of words": "counts,position",
    "without counts": "words,position",
    "without position": "words,counts",
}
ENSEMBLE = f"ensemble of {TOGETHER}, all features"


def runs(plan: Plan) -> Iterator[Run]:
    networks = 2 if plan.quick else TOGETHER
    for corpus in DATA:
        for variant, features in VARIANTS.items():
            if features and corpus != "wikiqa":
                continue  # the ablation is of one corpus
            for seed in plan.seeds_or(SEEDS if features is None else ABLATION_SEEDS):
                settings = {"corpus": corpus, "model": DEFAULT_MODEL, "variant": variant, "seed": seed}
                yield Run(settings, partial(measure, corpus, DEFAULT_MODEL, seed, plan, features=features))
        settings = {"corpus": corpus, "model": DEFAULT_MODEL, "variant": ENSEMBLE, "seed": 0}
        yield Run(settings, partial(measure, corpus, DEFAULT_MODEL, 0, plan, ensemble=networks))


def table(records: list[Record]) -> str:
    rows = []
    for corpus in DATA:
        for variant in (*VARIANTS, ENSEMBLE):
            if found := results(records, corpus=corpus, variant=variant):
                rows.append([corpus, variant, str(len(found)), *columns(found)])
    return markdown_table(["corpus", "ranker", "seeds", *COLUMNS], rows)


EXPERIMENT = Experiment("default-ranker", "the default ranker, with an ablation of its features", runs, table)
