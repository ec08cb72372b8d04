"""Figure 3: variation of NASM's MAP with the number of samples, on WikiQA."""

from functools import partial
from typing import Any

import numpy as np

from varitext.charts.colours import ACCENT, WARM
from varitext.evaluation.ranking import ranking_record
from varitext.report.drawing import Line, line_figure, svg_text
from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import DATA, SEEDS, fitted_ranker, questions_for_testing
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, rounded

CORPUS = "wikiqa"
SAMPLES = (1, 2, 5, 10, 20, 50)
DRAWS = 10  # independent predictions of one model with each number of samples


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    ranker, test = fitted_ranker(CORPUS, model, seed, plan), questions_for_testing(CORPUS, plan)
    sampled = ranker.sample_proba(test, DRAWS * max(SAMPLES))  # [samples, pairs]
    by_number = {}
    for samples in SAMPLES:
        draws = sampled[: DRAWS * samples].reshape(DRAWS, samples, -1).mean(1)  # [draws, pairs]
        records = [ranking_record(one, test.labels, test.groups, DATA[CORPUS].protocol) for one in draws]
        by_number[str(samples)] = rounded((record.map for record in records), 6)
    return {"map": by_number, "corpus_sha256": test.sha256}


def table(records: list[Record]) -> str:
    head = ["samples", "MAP", "std over draws of h", "std over models, one draw each"]
    rows = []
    for samples in SAMPLES:
        found = np.array([record["result"]["map"][str(samples)] for record in records])  # [models, draws]
        spread = found.std(1, ddof=1).mean()
        rows.append([str(samples), f"{found.mean():.4f}", f"{spread:.5f}", f"{found.std(0).mean():.4f}"])
    return markdown_table(head, rows)


def figure(records: list[Record]) -> str:
    """The standard deviations of the table."""
    found = {n: np.array([record["result"]["map"][str(n)] for record in records]) for n in SAMPLES}  # [models, draws]
    over_draws = [float(one.std(1, ddof=1).mean()) for one in found.values()]
    over_models = [float(one.std(0).mean()) for one in found.values()]
    panels = {
        "std of MAP over draws of h": [Line("", SAMPLES, over_draws, ACCENT)],
        "std of MAP over models": [Line("", SAMPLES, over_models, WARM)],
    }
    return svg_text(line_figure("Spread of NASM's MAP by the number of samples", "samples of h", panels, "log"))


RUNS = partial(grid, measure, SEEDS, model=["nasm"])
EXPERIMENT = Experiment("map-by-samples", ABOUT["map-by-samples"], RUNS, table, figure)
