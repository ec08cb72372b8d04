"""MiniLM on WikiQA: frozen under the default ranker's network, as an ensemble, and tuned as a cross-encoder."""

from collections.abc import Iterator
from functools import partial

from lab.experiments.ranker_measures import COLUMNS, columns, measure
from varitext.models.answers.pretrained import NEEDED, is_installed
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, results

CORPUS = "wikiqa"
TOGETHER = 5  # networks of the ensemble
ROWS = {  # the model, its seeds and its networks
    "frozen": ("minilm", 3, 1),
    f"frozen, ensemble of {TOGETHER}": ("minilm", 1, TOGETHER),
    "tuned": ("minilm_tuned", 2, 1),
}


def runs(plan: Plan) -> Iterator[Run]:
    missing = None if is_installed() else NEEDED
    for row, (model, seeds, networks) in ROWS.items():
        for seed in plan.seeds_or(seeds)[:seeds]:
            settings = {"model": model, "row": row, "seed": seed}
            together = min(networks, 2) if plan.quick else networks
            yield Run(settings, partial(measure, CORPUS, model, seed, plan, ensemble=together), missing)


def table(records: list[Record]) -> str:
    rows = []
    for row in ROWS:
        if found := results(records, row=row):
            rows.append([row, str(len(found)), *columns(found)])
    return markdown_table(["MiniLM, WikiQA", "seeds", *COLUMNS], rows)


EXPERIMENT = Experiment("minilm", "the small pretrained encoder, frozen and tuned", runs, table)
