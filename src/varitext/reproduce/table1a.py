"""Table 1 (a): held-out perplexity of every document model, on 20 Newsgroups and, if available, on RCV1.

RCV1 has two tables: of a public sample of it, and of the whole corpus, which only a user with its files can measure.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varitext import paper
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce import ABOUT, document_fits
from varitext.reproduce.document_fits import NEWSGROUPS, RCV1, RCV1_SAMPLE, Setting, is_here
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
OURS = ("nvdm", "nvdm_dcm")
HEADINGS = {
    NEWSGROUPS: NEWSGROUPS,
    RCV1_SAMPLE: f"{RCV1_SAMPLE}: sample of 20,737 training documents; the paper trained on 794,414",
    RCV1: RCV1,
}
PUBLISHED_ON = {RCV1_SAMPLE: RCV1}
NOT_MEASURED = {
    NEWSGROUPS: "20 Newsgroups: not measured.",
    RCV1: "RCV1-v2: not measured (files not available). The paper reports 563 (K = 50) and 550 (K = 200) for NVDM.",
}
KEPT = (
    *("per_document_perplexity", "per_document_interval_95", "corpus_perplexity", "iwae_per_document_perplexity"),
    *("unigram_per_document_perplexity", "kl_per_word", "standard_error", "kind", "description"),
    *("n_documents", "n_tokens", "n_samples"),
)


def all_rows() -> tuple[Row, ...]:
    """The paper's rows, then every other model."""
    listed = {row.setting.model for row in PAPER_ROWS}
    others = (model for model, entry in DOCUMENT_MODELS.items() if model not in listed and not entry.reads_vectors)
    return (*PAPER_ROWS, *(Row(Setting(model)) for model in others))


def rows_of(corpus: str) -> tuple[Row, ...]:
    """The rows of a corpus: on the sample of RCV1 only our models have several seeds, on all of it none has."""
    if corpus == NEWSGROUPS:
        return all_rows()
    if corpus == RCV1:
        return tuple(row._replace(seeds=1) for row in all_rows())
    rows = (*all_rows(), Row(Setting("nvdm_dcm", 200)))
    return tuple(row if _is_ours(row.setting) else row._replace(seeds=1) for row in rows)


def _is_ours(setting: Setting) -> bool:
    return setting.model in OURS and setting.preset == "recommended"


def runs(plan: Plan) -> Iterator[Run]:
    """20 Newsgroups, then RCV1 if its files are available; of each, cheap rows first, with all their seeds."""
    for corpus in (NEWSGROUPS, RCV1_SAMPLE, RCV1):
        if corpus == NEWSGROUPS or is_here(corpus, plan):
            for row in sorted(rows_of(corpus), key=lambda row: row.seconds):
                yield from (_run(corpus, row, seed, plan) for seed in plan.seeds_or(row.seeds))


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
    return "\n\n".join(filter(None, (_corpus_table(corpus, records) for corpus in HEADINGS)))


def _corpus_table(corpus: str, records: list[Record]) -> str:
    published = "paper (full corpus)" if corpus == RCV1_SAMPLE else "paper"
    head = ["", published, "ours", "kind", "standard error", "importance-weighted", "q not refined"]
    head += ["held-out training", "seconds to fit", "to evaluate", "seeds"]
    found = [(row.setting, results(records, corpus=corpus, **row.setting._asdict())) for row in rows_of(corpus)]
    rows = [_row(setting, corpus, each) for setting, each in found if each]
    return f"{HEADINGS[corpus]}\n\n{markdown_table(head, rows)}" if rows else NOT_MEASURED.get(corpus, "")


def _row(setting: Setting, corpus: str, found: list[dict[str, Any]]) -> list[str]:
    """Perplexities of all seeds, sorted; other values are means, seconds medians."""
    ours = " / ".join(f"{value:.1f}" for value in sorted(one["per_document_perplexity"] for one in found))
    is_estimate = found[0]["kind"] == "estimate"
    return [
        setting.name,
        str(paper.perplexity(PUBLISHED_ON.get(corpus, corpus), setting.model, setting.latent_dim) or ""),
        f"**{ours}**",
        found[0]["kind"],
        mean(found, "standard_error", ".1f") if any(one["standard_error"] for one in found) else "",
        "" if is_estimate else mean(found, "iwae_per_document_perplexity", ".1f"),
        mean(found, "unrefined", ".1f"),
        mean(found, "dev_perplexity", ".1f"),
        *(f"{np.median([one[name] for one in found]):.0f}" for name in ("fit_seconds", "evaluation_seconds")),
        str(len(found)),
    ]


EXPERIMENT = Experiment("table1a", ABOUT["table1a"], runs, table)
