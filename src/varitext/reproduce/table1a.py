"""Table 1 (a): held-out perplexity of every document model, on 20 Newsgroups and, if available, on RCV1."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varitext import paper
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce.document_fits import (
    NEWSGROUPS,
    RCV1,
    Setting,
    fitted_model,
    hashes,
    is_here,
    load_part,
    samples_of,
    short,
)
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table


class Row(NamedTuple):
    setting: Setting
    seconds: float = 100  # roughly, of a fit and its evaluation on 20 Newsgroups in one thread: cheap rows run first
    seeds: int = 3


PAPER_ROWS = (  # in its order
    Row(Setting("lda", 50), 100),
    Row(Setting("lda", 200), 250),
    Row(Setting("rsm", 50), 1250),
    Row(Setting("docnade", 50), 1300),
    Row(Setting("sbn", 50), 150),
    Row(Setting("fdarn", 50), 500),
    Row(Setting("fdarn", 200), 700),
    Row(Setting("nvdm", 50, "paper"), 80),
    Row(Setting("nvdm", 50, "paper-network"), 170),
    Row(Setting("nvdm", 50), 50),
    Row(Setting("nvdm", 200, "paper"), 100),
    Row(Setting("nvdm", 200, "paper-network"), 140),
    Row(Setting("nvdm", 200), 120),
)
NOT_MEASURED = {
    NEWSGROUPS: "20 Newsgroups: not measured.",
    RCV1: "RCV1-v2: not measured (files not available). The paper reports 563 (K = 50) and 550 (K = 200) for NVDM.",
}
RCV1_SEEDS = 1  # seventy times as many documents
KEPT = (
    "per_document_perplexity",
    "per_document_interval_95",
    "corpus_perplexity",
    "iwae_per_document_perplexity",
    "unigram_per_document_perplexity",
    "kl_per_word",
    "standard_error",
    "kind",
    "figure",
    "n_documents",
    "n_tokens",
    "n_samples",
)


def all_rows() -> tuple[Row, ...]:
    """The paper's rows, then every other model."""
    listed = {row.setting.model for row in PAPER_ROWS}
    return (*PAPER_ROWS, *(Row(Setting(model)) for model in DOCUMENT_MODELS if model not in listed))


def runs(plan: Plan) -> Iterator[Run]:
    """Cheap rows first, with all their seeds; RCV1 at the end, if its files are available."""
    cheap_first = sorted(all_rows(), key=lambda row: row.seconds)
    for row in cheap_first:
        yield from (_run(NEWSGROUPS, row, seed, plan) for seed in plan.seeds_or(row.seeds))
    if is_here(RCV1, plan):
        for seed in plan.seeds_or(RCV1_SEEDS):
            yield from (_run(RCV1, row, seed, plan) for row in cheap_first)


def _run(corpus: str, row: Row, seed: int, plan: Plan) -> Run:
    settings = {"corpus": corpus, **row.setting._asdict(), "seed": seed}
    return Run(settings, partial(measure, corpus, row.setting, seed, plan))


def measure(corpus: str, setting: Setting, seed: int, plan: Plan) -> dict[str, Any]:
    model = fitted_model(corpus, setting, seed, plan)
    test = load_part(corpus, "test", plan)
    started = time.monotonic()
    record = model.perplexity_record(test, samples_of(plan)).as_dict()
    spent = {"fit_seconds": model.fitted_.fit_seconds, "evaluation_seconds": time.monotonic() - started}
    found = {name: record[name] for name in KEPT} | {"dev_perplexity": model.fitted_.dev_perplexity}
    if model.fitted_.network.refinement_steps:  # the same weights, with q as the inference network gives it
        with model.fitted_.network.refining(False):
            found["unrefined"] = model.perplexity_record(test, samples_of(plan)).per_document_perplexity
    epochs = model.fitted_.history[-1]["epoch"] if model.fitted_.history else 0
    return short(found | spent | {"epochs": epochs, "stopped": model.fitted_.stopped}) | hashes(corpus, plan)


def table(records: list[Record]) -> str:
    parts = []
    for corpus in (NEWSGROUPS, RCV1):
        found = _by_setting([record for record in records if record["settings"]["corpus"] == corpus])
        parts.append(f"{corpus}\n\n{_corpus_table(corpus, found)}" if found else NOT_MEASURED[corpus])
    return "\n\n".join(parts)


def _by_setting(records: list[Record]) -> dict[Setting, list[dict[str, Any]]]:
    found: dict[Setting, list[dict[str, Any]]] = {}
    for record in records:
        setting = Setting(*(record["settings"][name] for name in Setting._fields))
        found.setdefault(setting, []).append(record["result"])
    return found


def _corpus_table(corpus: str, found: dict[Setting, list[dict[str, Any]]]) -> str:
    head = ["", "paper", "ours", "kind", "standard error", "importance-weighted"]
    head += ["q not refined", "held-out training"]
    head += ["seconds to fit", "to evaluate", "seeds"]
    rows = [_row(row, corpus, found[row.setting]) for row in all_rows() if row.setting in found]
    return markdown_table(head, rows)


def _row(row: Row, corpus: str, results: list[dict[str, Any]]) -> list[str]:
    """Perplexities of all seeds, sorted; other values are means, seconds medians."""
    ours = " / ".join(f"{value:.1f}" for value in sorted(_column(results, "per_document_perplexity")))
    error, weighted, dev = (
        np.mean(_column(results, name)) for name in ("standard_error", "iwae_per_document_perplexity", "dev_perplexity")
    )
    return [
        row.setting.name,
        str(paper.perplexity(corpus, row.setting.model, row.setting.latent_dim) or ""),
        f"**{ours}**",
        results[0]["kind"],
        f"{error:.1f}" if error else "",
        f"{weighted:.1f}" if results[0]["kind"] != "estimate" else "",
        f"{np.mean(_column(results, 'unrefined')):.1f}" if "unrefined" in results[0] else "",
        f"{dev:.1f}",
        *(f"{np.median(_column(results, name)):.0f}" for name in ("fit_seconds", "evaluation_seconds")),
        str(len(results)),
    ]


def _column(results: list[dict[str, Any]], name: str) -> list[float]:
    return [result[name] for result in results]


EXPERIMENT = Experiment("table1a", "held-out perplexity of every document model (Table 1a)", runs, table)
