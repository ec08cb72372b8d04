"""Tables of the answer experiments, from their files under results/."""

import json
import statistics
from pathlib import Path

import numpy as np

from lab.experiments import experiment_named
from varitext.paper import ANSWER_SCALE, ANSWERS
from varitext.reproduce.answer_fits import DATA, TABLES_START
from varitext.reproduce.engine import Record, markdown_table, read_records
from varitext.reproduce.table4 import paper_name, rows_of

EXPERIMENTS = (
    *("table3", "table4", "recipes", "initialization", "feature-groups", "attention", "hinton", "question-latent"),
    *("question-types", "map-by-samples", "overfitting", "complexity"),
)
STARTS = {"pytorch": "PyTorch's", "forget_bias": "forget bias"}
LATENT_FORMS = {
    "dev_kl": ".1e",
    "active_units": ".1f",
    "posterior_prior_gap": ".4f",
    "dev_map": ".4f",
    "dev_map_shuffled_h": ".4f",
}


def answer_blocks(root: Path) -> dict[str, str]:
    """By the name of the mark on a page."""
    experiments = {name: experiment_named(name) for name in EXPERIMENTS}
    tables = {name: each.table(read_records(each, root / "results")) for name, each in experiments.items()}
    speed = _speed(json.loads((root / "results" / "nasm.json").read_text()))
    return tables | {"against-paper": _against_the_paper(root), "latent": _latent(root), "nasm-speed": speed}


def _against_the_paper(root: Path) -> str:
    """Every row that the paper has."""
    rows = []
    for corpus in DATA:
        ours = rows_of(_table4_runs(root, corpus))
        for name in ours:
            if paper := ANSWERS[corpus].get(paper_name(name)):
                scale, measures = ANSWER_SCALE[corpus], ("map", "mrr")
                found = [scale * statistics.mean(one[key] for one in ours[name]) for key in measures]
                differences = [f"{mine - theirs:+.3f}" for mine, theirs in zip(found, paper, strict=True)]
                both = (f"{values[0]:.4f} / {values[1]:.4f}" for values in (paper, found))
                error = scale * _error_over_questions(ours[name])
                dev = statistics.mean(one["dev_map"] for one in ours[name])
                cells = [*both, *differences, f"{error:.3f}", f"{dev:.4f}", str(len(ours[name]))]
                rows.append([corpus, name, *cells])
    head = ["", "", "paper MAP / MRR", "ours, on its scale", "MAP", "MRR", "error of MAP", "our dev MAP", "seeds"]
    return markdown_table(head, rows)


def _latent(root: Path) -> str:
    """Whether h says anything, in the rounds of NASM that were kept."""
    rows = []
    for corpus in DATA:
        runs = [run for run in _table4_runs(root, corpus) if run["settings"]["model"] == "nasm"]
        for start in sorted({run["settings"].get("start", TABLES_START) for run in runs}, reverse=True):
            found = [run["result"]["latent"] for run in runs if run["settings"].get("start", TABLES_START) == start]
            means = [f"{statistics.mean(one[name] for one in found):{form}}" for name, form in LATENT_FORMS.items()]
            rows.append([corpus, STARTS[start], *means, str(len(found))])
    head = [
        "",
        "initialization",
        "KL, nats",
        "units above 0.01 nats",
        "posterior-prior gap, nats",
        "dev MAP",
        "with another question's h",
        "seeds",
    ]
    return markdown_table(head, rows)


def _error_over_questions(evaluations: list[dict]) -> float:
    """Of a mean over test questions, each of them a mean over seeds."""
    questions = np.mean([one["average_precision"] for one in evaluations], 0)
    return float(np.std(questions, ddof=1) / np.sqrt(len(questions)))


def _table4_runs(root: Path, corpus: str) -> list[Record]:
    records = read_records(experiment_named("table4"), root / "results")
    return [one for one in records if one["settings"]["corpus"] == corpus]


def _speed(found: dict) -> str:
    lines = [
        f"training: a pass over the questions takes {found['pass_seconds']:.1f} s, with a straightforward PyTorch NASM "
        f"{found['plain_pass_seconds']:.1f} s: **{found['pass_speed_up']:.1f} times faster**. Ours samples the "
        f"wrong answers of a question instead of reading all of them; in pairs read per second it is "
        f"{found['pairs_per_second']:,.0f} against {found['plain_pairs_per_second']:,.0f}, "
        f"{found['training_speed_up']:.1f} times as many. After "
        f"{found['epochs']} epochs of either the best dev MAP is {found['dev_map']:.3f} against "
        f"{found['plain_dev_map']:.3f};",
        f"ranking {found['candidates']:,} candidates of one question with 20 samples: {found['seconds_at_once']:.2f} "
        f"s, **{found['ranking_speed_up']:.0f} times faster** than one by one;",
        f"a whole fit on WikiQA: {found['fit_seconds']:.0f} s;",
        f"the model folder: {found['folder_mb']:.1f} MB, without word vectors "
        f"{found['folder_without_vectors_mb']:.1f} MB.",
    ]
    return "\n".join(f"- {line}" for line in lines)
