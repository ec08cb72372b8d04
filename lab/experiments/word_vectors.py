"""Initial word vectors of the default ranker: GloVe's, MiniLM's input vectors of word pieces, and random ones.

Three-fold cross-validation on WikiQA's training questions as in `recipes.py`; no test question is used.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from lab.experiments.recipes import cross_validated
from varitext.answers.settings import DEFAULT_MODEL
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results

SEEDS = 2
MODELS = (DEFAULT_MODEL, "lstm_attention")
VECTORS: dict[str, str | None] = {"GloVe": None, "MiniLM's word pieces": "minilm", "random": "random"}


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        for model in MODELS:
            for vectors in VECTORS:
                settings = {"model": model, "vectors": vectors, "seed": seed}
                yield Run(settings, partial(measure, model, vectors, seed, plan))


def measure(model: str, vectors: str, seed: int, plan: Plan) -> dict[str, Any]:
    found = cross_validated({"model": model, "vectors": VECTORS[vectors], "seed": seed}, plan)
    return {"map": found["alone"], "dev_map": found["dev_map"]}


def table(records: list[Record]) -> str:
    rows = []
    for model in MODELS:
        for vectors in VECTORS:
            if found := results(records, model=model, vectors=vectors):
                rows.append([f"`{model}`", vectors, mean(found, "map"), mean(found, "dev_map"), str(len(found))])
    return markdown_table(["ranker", "word vectors", "MAP", "dev MAP", "seeds"], rows)


EXPERIMENT = Experiment("word-vectors", "initial word vectors of rankers, on training questions", runs, table)
