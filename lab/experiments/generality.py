"""The defaults on corpora of many sizes: LDA, and NVDM with either likelihood.

Not a table of the paper. All get the same counts and are measured on the same held-out documents.
"""

import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from lab.experiments.generality_corpora import MADE_CORPORA, Split
from varitext.documents.model import DocumentModel
from varitext.reproduce.document_fits import QUICK_DOCUMENTS, QUICK_EPOCHS, is_here, samples_of, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

MODELS = ("lda", "nvdm", "nvdm_dcm")


def runs(plan: Plan) -> Iterator[Run]:
    for corpus, made in MADE_CORPORA.items():
        if is_here(made.source, plan):
            for model in MODELS:
                yield Run({"corpus": corpus, "model": model}, partial(measure, corpus, model, plan))


def measure(corpus: str, model: str, plan: Plan) -> dict[str, Any]:
    train, test, repeated = _split(corpus, plan.data_dir, QUICK_DOCUMENTS["train"] if plan.quick else None)
    fitted = DocumentModel(model, epochs=QUICK_EPOCHS if plan.quick else None, threads=plan.threads)
    started = time.process_time()
    fitted.fit(train)
    spent = {"fit_seconds": fitted.fitted_.fit_seconds, "fit_cpu_seconds": time.process_time() - started}
    record = fitted.perplexity_record(test, samples_of(plan))
    return short(
        {
            "bound": record.per_document_perplexity,
            "importance_weighted": record.iwae_per_document_perplexity,
            "unigram": record.unigram_per_document_perplexity,
            "kl_per_document": record.kl_per_document,
            "documents": train.shape[0],
            "words": train.shape[1],
            "words_per_document": float(train.sum() / train.shape[0]),
            "test_documents": test.shape[0],
            "repeated": repeated,
            "stopped": fitted.fitted_.stopped,
            **spent,
        }
    )


@cache  # three models read the same documents
def _split(corpus: str, data_dir: Path | None, most: int | None) -> Split:
    return MADE_CORPORA[corpus].split(data_dir, most)


def table(records: list[Record]) -> str:
    head = ["", "documents", "words", "words per document", "held out", "repeats left out", "unigram"]
    head += ["LDA", "NVDM", "NVDM, DCM", "NVDM / LDA", "DCM / multinomial", "fit, CPU s"]
    found = {(each["settings"]["corpus"], each["settings"]["model"]): each["result"] for each in records}
    return markdown_table(head, list(_rows(found)))


def _rows(found: dict[tuple[str, str], dict[str, Any]]) -> Iterator[list[str]]:
    """Of corpora that all models have been fitted to."""
    for corpus in MADE_CORPORA:
        if all((corpus, model) in found for model in MODELS):
            lda, nvdm, dcm = (found[corpus, model] for model in MODELS)
            sizes = [f"{lda[name]:,}" for name in ("documents", "words", "words_per_document", "test_documents")]
            bounds = [f"{value:.0f}" for value in (lda["unigram"], lda["bound"], nvdm["bound"], dcm["bound"])]
            ratios = [f"{nvdm['bound'] / lda['bound']:.2f}", f"{dcm['bound'] / nvdm['bound']:.3f}"]
            seconds = " / ".join(f"{each['fit_cpu_seconds']:.0f}" for each in (lda, nvdm, dcm))
            yield [corpus, *sizes, f"{lda['repeated']:,}", *bounds, *ratios, seconds]


EXPERIMENT = Experiment("generality", "LDA and NVDM with the defaults on corpora of many sizes", runs, table)
