"""Table 4, our six rows and their variant with position: LSTM, LSTM + Att and NASM on QASent and WikiQA, ten seeds.

One fit serves all variants of a model: the second stage of + Cnt and + position joins the same network.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from varitext.evaluation.significance import paired_randomisation_test
from varitext.experiments.answer_fits import (
    DATA,
    MODELS,
    SEEDS,
    VARIANTS,
    fit_ranker,
    latent_of,
    load_part,
    model_folder,
    record_of,
)
from varitext.experiments.runs import Experiment, Plan, Record, Run, markdown_table

PAPER = {  # MAP, MRR; QASent on a scale where 4 of 72 questions always count as wrong
    "qasent": {
        "LSTM": (0.6436, 0.7235),
        "LSTM + Att": (0.6451, 0.7316),
        "NASM": (0.6501, 0.7324),
        "LSTM + Cnt": (0.7228, 0.7986),
        "LSTM + Att + Cnt": (0.7289, 0.8072),
        "NASM + Cnt": (0.7339, 0.8117),
    },
    "wikiqa": {
        "LSTM": (0.6552, 0.6747),
        "LSTM + Att": (0.6639, 0.6828),
        "NASM": (0.6705, 0.6914),
        "LSTM + Cnt": (0.6820, 0.6988),
        "LSTM + Att + Cnt": (0.6855, 0.7041),
        "NASM + Cnt": (0.6886, 0.7069),
    },
}
PAPER_SCALE = {"wikiqa": 1.0, "qasent": 68 / 72}  # ours times this is on the paper's scale


def runs(plan: Plan) -> Iterator[Run]:
    for corpus in DATA:
        for seed in plan.seeds_or(SEEDS):
            for model in MODELS:
                settings = {"corpus": corpus, "model": model, "seed": seed}
                yield Run(settings, lambda settings=settings: measure(plan=plan, **settings))


def measure(corpus: str, model: str, seed: int, plan: Plan) -> dict[str, Any]:
    ranker = fit_ranker(corpus, model, seed, plan, counts=True, position=corpus == "wikiqa")
    if folder := model_folder(corpus, model, seed, plan):
        ranker.save(folder, overwrite=True)
    protocol, dev, test = DATA[corpus].protocol, load_part(corpus, "dev", plan), load_part(corpus, "test", plan)
    found = {}
    for name, (counts, position) in VARIANTS.items():
        if position and corpus != "wikiqa":
            continue  # its files do not tell where a candidate stood
        variant = ranker.combined(counts, position)
        on_test = record_of(variant.evaluate(test, protocol), per_question=True)
        found[f"{MODELS[model]}{name}"] = {"dev_map": round(variant.evaluate(dev, protocol).ranking.map, 5)} | on_test
    return {"rows": found, "latent": latent_of(ranker), "fit_seconds": round(ranker.fit_seconds_, 1)}


def table(records: list[Record]) -> str:
    parts = [f"{corpus}\n\n{_corpus_table(corpus, records)}" for corpus in DATA if _of(corpus, records)]
    return "\n\n".join(parts)


def _of(corpus: str, records: list[Record]) -> list[Record]:
    return [record for record in records if record["settings"]["corpus"] == corpus]


def rows_of(records: list[Record]) -> dict[str, list[dict[str, Any]]]:
    """The evaluations of each row of the table, in the order of their seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda one: one["settings"]["seed"]):
        for name, evaluation in record["result"]["rows"].items():
            found.setdefault(name, []).append(evaluation)
    order = [f"{name}{variant}" for variant in VARIANTS for name in MODELS.values()]
    return {name: found[name] for name in order if name in found}


def _corpus_table(corpus: str, records: list[Record]) -> str:
    rows = rows_of(_of(corpus, records))
    head = ["", "paper MAP", "MRR", "ours MAP", "± over seeds", "MRR", "± over seeds", "log loss", "ECE", "seeds"]
    if PAPER_SCALE[corpus] != 1:
        head.insert(3, "ours, paper's scale: MAP / MRR")
    return markdown_table(head, [_row(corpus, name, evaluations) for name, evaluations in rows.items()])


def _row(corpus: str, name: str, evaluations: list[dict[str, Any]]) -> list[str]:
    paper = [f"{value:.4f}" for value in PAPER[corpus].get(name, ())] or ["", ""]
    precision, reciprocal = ([one[measure] for one in evaluations] for measure in ("map", "mrr"))
    ours = [f"**{np.mean(precision):.4f}**", f"{np.std(precision):.4f}"]
    ours += [f"**{np.mean(reciprocal):.4f}**", f"{np.std(reciprocal):.4f}"]
    ours += [f"{np.mean([one[measure] for one in evaluations]):.4f}" for measure in ("log_loss", "ece")]
    scale = PAPER_SCALE[corpus]
    scaled = [] if scale == 1 else [f"{scale * np.mean(precision):.4f} / {scale * np.mean(reciprocal):.4f}"]
    return [name, *paper, *scaled, *ours, str(len(evaluations))]


def comparisons(records: list[Record], first: str = "NASM", second: str = "LSTM + Att") -> list[dict[str, Any]]:
    """Paired randomisation tests between two models over the mean of their seeds, question by question."""
    found = []
    for corpus in DATA:
        rows = rows_of(_of(corpus, records))
        for variant in VARIANTS:
            pair = [rows.get(f"{name}{variant}") for name in (first, second)]
            if all(pair):
                tested = paired_randomisation_test(*([one["average_precision"] for one in rows] for rows in pair))
                found.append({"corpus": corpus, "first": f"{first}{variant}", "second": f"{second}{variant}"})
                found[-1] |= {"difference": tested.difference, "p_value": tested.p_value}
    return found


def comparison_table(records: list[Record]) -> str:
    rows = [
        [one["corpus"], one["first"], one["second"], f"{one['difference']:+.4f}", f"{one['p_value']:.3f}"]
        for one in comparisons(records)
    ]
    return markdown_table(["", "", "against", "MAP", "p"], rows)


def whole_table(records: list[Record]) -> str:
    return f"{table(records)}\n\nNASM against its deterministic twin, paired test:\n\n{comparison_table(records)}"


EXPERIMENT = Experiment("table4", "LSTM, LSTM + Att and NASM on QASent and WikiQA, ten seeds", runs, whole_table)
