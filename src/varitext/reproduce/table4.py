"""Table 4: published systems, LSTM, LSTM + Att and NASM on QASent and WikiQA.

Five seeds for systems that depend on one. One fit serves all variants of a model: + Cnt and + position are a second
stage on it.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.answers.ranker import AnswerRanker
from varitext.evaluation.significance import paired_randomisation_test
from varitext.paper import ANSWER_SCALE, ANSWERS
from varitext.reproduce import ABOUT, answer_fits
from varitext.reproduce.answer_fits import DATA, OWN_MODELS, VARIANTS, WITHOUT_CHANCE, fit_ranker, load_part, titles
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean

BASELINES: dict[str, dict[str, Any]] = {
    "word count": {"features": "word_overlap_all"},
    "word count weighed by idf": {"features": "idf_overlap_all"},
    "BM25": {"features": "bm25"},
    "regression on counts": {},
    "regression on counts and position": {"position": True},
}
COMPARED = (
    ("LSTM + Att", "LSTM"),
    ("NASM", "LSTM + Att"),
    ("LSTM + Att + Cnt", "LSTM + Cnt"),
    ("NASM + Cnt", "LSTM + Att + Cnt"),
    ("NASM + Cnt", "NASM"),
    ("NASM + Cnt", "regression on counts"),
)
HEAD = ["", "paper MAP", "MRR", "ours MAP", "± over seeds", "MRR", "± over seeds", "log loss", "ECE", "fit, s", "seeds"]


def runs(plan: Plan) -> Iterator[Run]:
    for corpus in DATA:
        for seed in plan.seeds_or(answer_fits.SEEDS):
            for model in titles():
                if seed == 0 or model not in WITHOUT_CHANCE:
                    settings = {"corpus": corpus, "model": model, "seed": seed}
                    yield Run(settings, partial(measure, corpus, model, seed, plan))


def measure(corpus: str, model: str, seed: int, plan: Plan) -> dict[str, Any]:
    if model == "overlap":
        return measure_baselines(corpus, plan)
    ranker = fit_ranker(corpus, model, seed, plan, counts=True, position=corpus == "wikiqa")
    if folder := plan.model_folder(corpus, model, seed):
        ranker.save(folder, overwrite=True)
    latent = answer_fits.latent_of(ranker) if model in OWN_MODELS else None
    return _variants(ranker, titles()[model], corpus, plan) | {"latent": latent}


def _variants(ranker: AnswerRanker, title: str, corpus: str, plan: Plan) -> dict[str, Any]:
    """A row for each variant; QASent's files do not record a candidate's position."""
    rows = {
        f"{title}{name}": _evaluated(ranker.combined(counts, position), corpus, plan)
        for name, (counts, position) in VARIANTS.items()
        if not position or corpus == "wikiqa"
    }
    return {"rows": rows, "fit_seconds": round(ranker.fitted_.fit_seconds, 1)}


def measure_baselines(corpus: str, plan: Plan) -> dict[str, Any]:
    """Rankings by one count of shared words, and regressions on all counts."""
    found, seconds = {}, 0.0
    for name, settings in BASELINES.items():
        if not settings.get("position") or corpus == "wikiqa":
            ranker = fit_ranker(corpus, "overlap", 0, plan, **settings)
            found[name], seconds = _evaluated(ranker, corpus, plan), seconds + ranker.fitted_.fit_seconds
    return {"rows": found, "latent": None, "fit_seconds": round(seconds, 1)}


def _evaluated(ranker: AnswerRanker, corpus: str, plan: Plan) -> dict[str, Any]:
    dev, test = (
        ranker.evaluate(load_part(corpus, part, plan), DATA[corpus].protocol, baselines=False)
        for part in ("dev", "test")
    )
    return {"dev_map": round(dev.ranking.map, 5)} | answer_fits.record_of(test, per_question=True)


def _of(corpus: str, records: list[Record]) -> list[Record]:
    return [record for record in records if record["settings"]["corpus"] == corpus]


def rows_of(records: list[Record]) -> dict[str, list[dict[str, Any]]]:
    """The evaluations of each row of the table, in the order of their seeds, with the seconds of the fit."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda one: one["settings"]["seed"]):
        seconds = {"fit_seconds": record["result"]["fit_seconds"]}
        for name, evaluation in record["result"]["rows"].items():
            found.setdefault(name, []).append(evaluation | seconds)
    order = [*BASELINES]
    for is_own in (False, True):
        names = [title for model, title in titles().items() if (model in OWN_MODELS) == is_own]
        order += [f"{name}{variant}" for variant in VARIANTS for name in names]
    return {name: found[name] for name in order if name in found}


def corpus_table(corpus: str, records: list[Record]) -> str:
    rows, scale, head = rows_of(records), ANSWER_SCALE[corpus], HEAD
    if scale != 1:
        head = [*HEAD[:3], "ours, paper's scale: MAP / MRR", *HEAD[3:]]
    counted = next(iter(rows.values()))[0]
    about = f"{corpus}, protocol `{counted['protocol']}`: {counted['n_questions']} test questions"
    return f"{about}\n\n{markdown_table(head, [_row(corpus, scale, name, found) for name, found in rows.items()])}"


def _row(corpus: str, scale: float, name: str, found: list[dict[str, Any]]) -> list[str]:
    paper = [f"{value:.4f}" for value in ANSWERS[corpus].get(name, ())] or ["", ""]
    both = [[one[measure] for one in found] for measure in ("map", "mrr")]
    ours = [cell for values in both for cell in (f"**{np.mean(values):.4f}**", f"{np.std(values):.4f}")]
    ours += [mean(found, "log_loss"), mean(found, "ece")]
    ours += [f"{np.median([one['fit_seconds'] for one in found]):.0f}", str(len(found))]
    scaled = [] if scale == 1 else [" / ".join(f"{scale * np.mean(values):.4f}" for values in both)]
    return [name, *paper, *scaled, *ours]


def comparisons(records: list[Record]) -> list[dict[str, Any]]:
    """Paired randomisation tests over questions, the average precision of each a mean over seeds."""
    found = []
    for corpus in DATA:
        rows = rows_of(_of(corpus, records))
        for first, second in (names for names in COMPARED if set(names) <= set(rows)):
            ours, theirs = ([one["average_precision"] for one in rows[name]] for name in (first, second))
            tested = paired_randomisation_test(ours, theirs)
            names = {"corpus": corpus, "first": first, "second": second}
            found.append({**names, "difference": tested.difference, "p_value": tested.p_value})
    return found


def table(records: list[Record]) -> str:
    tables = [corpus_table(corpus, found) for corpus in DATA if (found := _of(corpus, records))]
    rows = [
        [one["corpus"], one["first"], one["second"], f"{one['difference']:+.4f}", f"{one['p_value']:.3f}"]
        for one in comparisons(records)
    ]
    tests = markdown_table(["", "", "against", "difference of MAP", "p"], rows)
    return "\n\n".join([*tables, "Paired randomisation tests:", tests])


EXPERIMENT = Experiment("table4", ABOUT["table4"], runs, table)
