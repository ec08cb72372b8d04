"""What refinement in prediction is worth: the same weights, with what the inference network says and with q refined.

Not a table of the paper. The bound is a bound for any q, so the difference is how far the inference network's q was
from the best of its kind.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.experiments.document_fits import (
    NEWSGROUPS,
    Setting,
    fitted_model,
    hashes,
    load_part,
    samples_of,
    short,
    titles,
)
from varitext.experiments.runs import Experiment, Plan, Record, Run, markdown_table

MODELS = ("nvdm", "sbn", "fdarn")


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(1):
        for model in MODELS:
            yield Run({"model": model, "seed": seed}, partial(measure, model, seed, plan))


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    fitted, test = fitted_model(NEWSGROUPS, Setting(model), seed, plan), load_part(NEWSGROUPS, "test", plan)
    given = fitted.network_.refinement_steps
    found: dict[str, Any] = {"steps": given}
    for name, steps in (("refined", given), ("unrefined", 0)):
        fitted.network_.refinement_steps = steps
        record = fitted.perplexity_record(test, samples_of(plan))
        found[name] = [record.per_document_perplexity, record.iwae_per_document_perplexity]
    return short(found) | hashes(NEWSGROUPS, plan)


def table(records: list[Record]) -> str:
    head = ["", "steps", "without: bound", "importance-weighted", "with: bound", "importance-weighted", "seeds"]
    rows = []
    for model in MODELS:
        found = [record["result"] for record in records if record["settings"]["model"] == model]
        if found:
            figures = [value for name in ("unrefined", "refined") for value in np.mean([one[name] for one in found], 0)]
            cells = [f"{value:.1f}" for value in figures]
            rows.append([titles()[model], str(found[0]["steps"]), *cells, str(len(found))])
    return markdown_table(head, rows)


EXPERIMENT = Experiment("refinement", "what refining q in prediction is worth, with the same weights", runs, table)
