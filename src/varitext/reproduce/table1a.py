"""Table 1 (a): held-out perplexity of every document model, on 20 Newsgroups and, if available, on RCV1."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varitext import paper
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce import document_fits
from varitext.reproduce.document_fits import NEWSGROUPS, RCV1, Setting, is_here
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results


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
    *("per_document_perplexity", "per_document_interval_95", "corpus_perplexity", "iwae_per_document_perplexity"),
    *("unigram_per_document_perplexity", "kl_per_word", "standard_error", "kind", "figure"),
    *("n_documents", "n_tokens", "n_samples"),
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
    model, samples = document_fits.fitted_model(corpus, setting, seed, plan), document_fits.samples_of(plan)
    test, fitted = document_fits.load_part(corpus, "test", plan), model.fitted_
    started = time.monotonic()
    record = model.perplexity_record(test, samples).as_dict()
    spent = {"fit_seconds": fitted.fit_seconds, "evaluation_seconds": time.monotonic() - started}
    found = {name: record[name] for name in KEPT} | {"dev_perplexity": fitted.dev_perplexity}
    if fitted.network.refinement_steps:  # the same weights, with q as the inference network gives it
        with fitted.network.refining(False):
            found["unrefined"] = model.perplexity_record(test, samples).per_document_perplexity
    epochs = fitted.history[-1]["epoch"] if fitted.history else 0
    found |= spent | {"epochs": epochs, "stopped": fitted.stopped}
    return document_fits.short(found) | document_fits.hashes(corpus, plan)


def table(records: list[Record]) -> str:
    return "\n\n".join(_corpus_table(corpus, records) for corpus in (NEWSGROUPS, RCV1))


def _corpus_table(corpus: str, records: list[Record]) -> str:
    head = ["", "paper", "ours", "kind", "standard error", "importance-weighted", "q not refined", "held-out training"]
    found = [(row.setting, results(records, corpus=corpus, **row.setting._asdict())) for row in all_rows()]
    rows = [_row(setting, corpus, each) for setting, each in found if each]
    if not rows:
        return NOT_MEASURED[corpus]
    return f"{corpus}\n\n{markdown_table([*head, 'seconds to fit', 'to evaluate', 'seeds'], rows)}"


def _row(setting: Setting, corpus: str, found: list[dict[str, Any]]) -> list[str]:
    """Perplexities of all seeds, sorted; other values are means, seconds medians."""
    ours = " / ".join(f"{value:.1f}" for value in sorted(one["per_document_perplexity"] for one in found))
    is_estimate = found[0]["kind"] == "estimate"
    return [
        setting.name,
        str(paper.perplexity(corpus, setting.model, setting.latent_dim) or ""),
        f"**{ours}**",
        found[0]["kind"],
        mean(found, "standard_error", ".1f") if any(one["standard_error"] for one in found) else "",
        "" if is_estimate else mean(found, "iwae_per_document_perplexity", ".1f"),
        mean(found, "unrefined", ".1f"),
        mean(found, "dev_perplexity", ".1f"),
        *(f"{np.median([one[name] for one in found]):.0f}" for name in ("fit_seconds", "evaluation_seconds")),
        str(len(found)),
    ]


EXPERIMENT = Experiment("table1a", "held-out perplexity of every document model (Table 1a)", runs, table)
