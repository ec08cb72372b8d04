"""Table 4: published systems, LSTM, LSTM + Att and NASM on QASent and WikiQA.

Ten seeds for systems that depend on one. The networks have PyTorch's initialization; NASM is also measured with the
default one, five seeds. One fit serves all variants of a model: + Cnt and + position are a second stage on it.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.answers.ranker import AnswerRanker
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.significance import paired_randomisation_test
from varitext.models.answers.recurrent import DEFAULT_INITIALIZATION
from varitext.paper import ANSWER_SCALE, ANSWERS
from varitext.reproduce.answer_fits import (
    DATA,
    OWN_MODELS,
    SEEDS,
    VARIANTS,
    WITHOUT_CHANCE,
    fit_ranker,
    latent_of,
    load_part,
    model_folder,
    record_of,
    titles,
)
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

STARTED, STARTED_TITLE, STARTED_SEEDS = "nasm", "NASM, forget bias", 5
COMPARED = (
    ("LSTM + Att", "LSTM"),
    ("NASM", "LSTM + Att"),
    ("LSTM + Att + Cnt", "LSTM + Cnt"),
    ("NASM + Cnt", "LSTM + Att + Cnt"),
    ("NASM + Cnt", "NASM"),
    ("NASM + Cnt", "regression on counts"),
    ("NASM, forget bias + Cnt", "NASM + Cnt"),
)
BASELINES: dict[str, dict[str, Any]] = {
    "word count": {"features": "word_overlap_all"},
    "word count weighed by idf": {"features": "idf_overlap_all"},
    "BM25": {"features": "bm25"},
    "regression on counts": {},
    "regression on counts and position": {"position": True},
}


def runs(plan: Plan) -> Iterator[Run]:
    for corpus in DATA:
        for seed in plan.seeds_or(SEEDS):
            for model in titles():
                if seed == 0 or model not in WITHOUT_CHANCE:
                    settings = {"corpus": corpus, "model": model, "seed": seed}
                    yield Run(settings, partial(measure, corpus, model, seed, plan))
        for seed in plan.seeds_or(STARTED_SEEDS)[:STARTED_SEEDS]:
            settings = {"corpus": corpus, "model": STARTED, "start": DEFAULT_INITIALIZATION, "seed": seed}
            yield Run(settings, partial(measure_started, corpus, seed, plan))


def measure(corpus: str, model: str, seed: int, plan: Plan) -> dict[str, Any]:
    if model == "overlap":
        return measure_baselines(corpus, plan)
    ranker = fit_ranker(corpus, model, seed, plan, counts=True, position=corpus == "wikiqa")
    if folder := model_folder(corpus, model, seed, plan):
        ranker.save(folder, overwrite=True)
    latent = latent_of(ranker) if model in OWN_MODELS else None
    return _result(ranker, titles()[model], corpus, plan) | {"latent": latent}


def measure_started(corpus: str, seed: int, plan: Plan) -> dict[str, Any]:
    """NASM with the default initialization."""
    settings = {"counts": True, "position": corpus == "wikiqa", "initialization": DEFAULT_INITIALIZATION}
    ranker = fit_ranker(corpus, STARTED, seed, plan, **settings)
    return _result(ranker, STARTED_TITLE, corpus, plan) | {"latent": latent_of(ranker)}


def _result(ranker: AnswerRanker, title: str, corpus: str, plan: Plan) -> dict[str, Any]:
    """A row for each variant."""
    protocol, dev, test = DATA[corpus].protocol, load_part(corpus, "dev", plan), load_part(corpus, "test", plan)
    found = {}
    for name, (counts, position) in VARIANTS.items():
        if position and corpus != "wikiqa":
            continue  # its files do not record a candidate's position
        found[f"{title}{name}"] = _evaluated(ranker.combined(counts, position), dev, test, protocol)
    return {"rows": found, "fit_seconds": round(ranker.fitted_.fit_seconds, 1)}


def measure_baselines(corpus: str, plan: Plan) -> dict[str, Any]:
    """Rankings by one count of shared words, and regressions on all counts."""
    protocol, dev, test = DATA[corpus].protocol, load_part(corpus, "dev", plan), load_part(corpus, "test", plan)
    found, seconds = {}, 0.0
    for name, settings in BASELINES.items():
        if settings.get("position") and corpus != "wikiqa":
            continue
        ranker = fit_ranker(corpus, "overlap", 0, plan, **settings)
        found[name], seconds = _evaluated(ranker, dev, test, protocol), seconds + ranker.fitted_.fit_seconds
    return {"rows": found, "latent": None, "fit_seconds": round(seconds, 1)}


def _evaluated(ranker: AnswerRanker, dev: QuestionAnswers, test: QuestionAnswers, protocol: str) -> dict[str, Any]:
    dev_map = round(ranker.evaluate(dev, protocol).ranking.map, 5)
    return {"dev_map": dev_map} | record_of(ranker.evaluate(test, protocol), per_question=True)


def table(records: list[Record]) -> str:
    return "\n\n".join(_corpus_table(corpus, _of(corpus, records)) for corpus in DATA if _of(corpus, records))


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
        names += [STARTED_TITLE] if is_own else []
        order += [f"{name}{variant}" for variant in VARIANTS for name in names]
    return {name: found[name] for name in order if name in found}


def _corpus_table(corpus: str, records: list[Record]) -> str:
    rows = rows_of(records)
    head = [
        "",
        "paper MAP",
        "MRR",
        "ours MAP",
        "± over seeds",
        "MRR",
        "± over seeds",
        "log loss",
        "ECE",
        "fit, s",
        "seeds",
    ]
    if ANSWER_SCALE[corpus] != 1:
        head.insert(3, "ours, paper's scale: MAP / MRR")
    counted = next(iter(rows.values()))[0]
    protocol = f"{corpus}, protocol `{counted['protocol']}`: {counted['n_questions']} test questions"
    return f"{protocol}\n\n{markdown_table(head, [_row(corpus, name, found) for name, found in rows.items()])}"


def paper_name(name: str) -> str:
    """The paper's name of a row; it does not state its initialization."""
    return name.replace(STARTED_TITLE, titles()[STARTED])


def _row(corpus: str, name: str, evaluations: list[dict[str, Any]]) -> list[str]:
    paper = [f"{value:.4f}" for value in ANSWERS[corpus].get(paper_name(name), ())] or ["", ""]
    precision, reciprocal = ([one[measure] for one in evaluations] for measure in ("map", "mrr"))
    ours = [f"**{np.mean(precision):.4f}**", f"{np.std(precision):.4f}"]
    ours += [f"**{np.mean(reciprocal):.4f}**", f"{np.std(reciprocal):.4f}"]
    ours += [f"{np.mean([one[measure] for one in evaluations]):.4f}" for measure in ("log_loss", "ece")]
    ours += [f"{np.median([one['fit_seconds'] for one in evaluations]):.0f}", str(len(evaluations))]
    scale = ANSWER_SCALE[corpus]
    scaled = [] if scale == 1 else [f"{scale * np.mean(precision):.4f} / {scale * np.mean(reciprocal):.4f}"]
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


def whole_table(records: list[Record]) -> str:
    rows = [
        [one["corpus"], one["first"], one["second"], f"{one['difference']:+.4f}", f"{one['p_value']:.3f}"]
        for one in comparisons(records)
    ]
    tests = markdown_table(["", "", "against", "difference of MAP", "p"], rows)
    return f"{table(records)}\n\nPaired randomisation tests:\n\n{tests}"


EXPERIMENT = Experiment("table4", "every system of Table 4 on QASent and WikiQA, ten seeds", runs, whole_table)
