"""Updating a model: 20 Newsgroups in two random halves, the second learned after the first.

For each way to learn: the perplexity of the test documents, and the similarity of its latent dimensions to those of the
first half, in place and by the best one-to-one matching.
"""

import copy
import dataclasses
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.documents import Documents
from varitext.documents.model import DocumentModel
from varitext.evaluation.latent_dimensions import alignment_record
from varitext.reproduce.document_fits import NEWSGROUPS, QUICK_EPOCHS, hashes, load_part, samples_of, short
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table

SEEDS = 2
LATENT_DIM = 50
WAYS = {  # as the table says it
    "first": "the first half only",
    "other seed": "the first half, another seed",
    "continued": "the first half, updated with the second",
    "no pull": "the same without the anchor",
    "all": "both halves at once",
}


class Halves(NamedTuple):
    first: Documents
    second: Documents
    test: Documents


def measure(seed: int, plan: Plan) -> dict[str, Any]:
    halves = split(load_part(NEWSGROUPS, "train", plan), load_part(NEWSGROUPS, "test", plan), seed)
    first = _fit(halves.first, seed, plan)
    before = first.fitted_.latent_space()
    found = {"first": _measured(first, halves, plan, None)}
    others = (("other seed", halves.first, seed + 1000), ("all", load_part(NEWSGROUPS, "train", plan), seed))
    for way, documents, own_seed in others:
        found[way] = _measured(_fit(documents, own_seed, plan), halves, plan, before)
    for way, pull in (("continued", 1.0), ("no pull", 0.0)):
        model = copy.copy(first).partial_fit(halves.second, epochs=QUICK_EPOCHS if plan.quick else None, anchor=pull)
        found[way] = _measured(model, halves, plan, before)
    return short({"ways": found}) | hashes(NEWSGROUPS, plan)


def split(train: Documents, test: Documents, seed: int) -> Halves:
    order = np.random.default_rng((seed, 7)).permutation(len(train))
    counts = train.counts
    assert counts is not None  # 20 Newsgroups as counted in the paper
    rows = (np.sort(half) for half in np.array_split(order, 2))
    first, second = (dataclasses.replace(train, counts=counts[half], labels=None) for half in rows)
    return Halves(first, second, test)


def _fit(documents: Documents, seed: int, plan: Plan) -> DocumentModel:
    epochs = QUICK_EPOCHS if plan.quick else None
    return DocumentModel("nvdm", LATENT_DIM, epochs=epochs, seed=seed, threads=plan.threads).fit(documents)


def _measured(model: DocumentModel, halves: Halves, plan: Plan, before: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "test": model.perplexity(halves.test, samples_of(plan)),
        "seconds": model.fitted_.fit_seconds,
    }
    found["dev"] = model.fitted_.dev_perplexity
    if before is not None:
        found["alignment"] = alignment_record(before, model.fitted_.latent_space()).as_dict()
    if model.fitted_.updates:
        found["update"] = model.fitted_.updates[-1]
    return found


def table(records: list[Record]) -> str:
    head = ["learned", "test perplexity", "topics in place", "lowest", "matched", "top words kept", "seconds", "seeds"]
    rows = []
    for way, said in WAYS.items():
        found = [record["result"]["ways"][way] for record in records]
        cells = [f"{np.mean([one['test'] for one in found]):.1f}"]
        for name in ("in_place", "lowest", "matched", "top_words"):
            cells.append(f"{np.mean([one['alignment'][name] for one in found]):.3f}" if way != "first" else "")
        own = [one["update"]["seconds"] if "update" in one else one["seconds"] for one in found]
        rows.append([said, *cells, f"{np.mean(own):.0f}", str(len(found))])
    return markdown_table(head, rows)


RUNS = partial(grid, measure, SEEDS)
EXPERIMENT = Experiment("updating", "two halves of 20 Newsgroups, the second learned after the first", RUNS, table)
