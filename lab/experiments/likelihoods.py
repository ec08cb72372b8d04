"""NVDM with a multinomial likelihood beside NVDM with a Dirichlet-compound-multinomial (DCM) one.

Both are distributions over the same sequences of words, so their perplexities are comparable. Settings were chosen on
training documents held out by date.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from varitext.documents.model import DocumentModel
from varitext.reproduce import document_fits
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results

MODELS = ("nvdm", "nvdm_dcm")


class Case(NamedTuple):
    corpus: str
    latent_dim: int


CASES = (Case(document_fits.NEWSGROUPS, 50), Case(document_fits.ARTICLES, 50), Case(document_fits.NEWSGROUPS, 200))


def runs(plan: Plan) -> Iterator[Run]:
    for case in (case for case in CASES if document_fits.is_here(case.corpus, plan)):
        for seed in plan.seeds_or(3):
            for model in MODELS:
                settings = {**case._asdict(), "model": model, "seed": seed}
                yield Run(settings, partial(measure, case, model, seed, plan))


def measure(case: Case, model: str, seed: int, plan: Plan) -> dict[str, Any]:
    test = document_fits.load_part(case.corpus, "test", plan)
    fitted = DocumentModel(
        model,
        case.latent_dim,
        epochs=document_fits.QUICK_EPOCHS if plan.quick else None,
        threads=plan.threads,
        seed=seed,
    )
    started = time.process_time()
    fitted.fit(document_fits.load_part(case.corpus, "train", plan))
    spent = {"fit_seconds": fitted.fitted_.fit_seconds, "fit_cpu_seconds": time.process_time() - started}
    if folder := plan.model_folder(case.corpus, *document_fits.Setting(model, case.latent_dim), seed):
        fitted.save(folder, overwrite=True)  # for experiments that look at the same fits
    started = time.process_time()
    fitted.transform(test)
    spent["transform_cpu_seconds"] = time.process_time() - started
    record = fitted.perplexity_record(test, document_fits.samples_of(plan))
    with fitted.fitted_.network.refining(False):
        unrefined = fitted.perplexity_record(test, document_fits.samples_of(plan))
    found = {
        "bound": record.per_document_perplexity,
        "importance_weighted": record.iwae_per_document_perplexity,
        "corpus_perplexity": record.corpus_perplexity,
        "unrefined": unrefined.per_document_perplexity,
        "unigram": record.unigram_per_document_perplexity,
        "kl_per_document": record.kl_per_document,
        "documents": record.n_documents,
        "words": fitted.n_features_in_,
    }
    return document_fits.short(found | spent) | document_fits.hashes(case.corpus, plan)


def table(records: list[Record]) -> str:
    head = ["", "K", "words", "likelihood", "bound", "without refinement", "importance-weighted", "corpus"]
    head += ["KL, nats", "fit, CPU s", "transform, documents / CPU s", "seeds"]
    rows = []
    for case in CASES:
        for model in MODELS:
            if found := results(records, **case._asdict(), model=model):
                rows.append([case.corpus, str(case.latent_dim), *_cells(model, found)])
    return markdown_table(head, rows)


def _cells(model: str, found: list[dict[str, Any]]) -> list[str]:
    """Bounds of all seeds, sorted; the others are means."""
    bounds = " / ".join(f"{value:.1f}" for value in sorted(one["bound"] for one in found))
    kind = {"nvdm": "multinomial (`nvdm`)", "nvdm_dcm": "DCM (`nvdm_dcm`)"}[model]
    names = ("unrefined", "importance_weighted", "corpus_perplexity", "kl_per_document")
    per_second = sum(one["documents"] for one in found) / sum(one["transform_cpu_seconds"] for one in found)
    spent = [mean(found, "fit_cpu_seconds", ".0f"), f"{per_second:,.0f}", str(len(found))]
    return [mean(found, "words", ",.0f"), kind, f"**{bounds}**", *(mean(found, name, ".1f") for name in names), *spent]


EXPERIMENT = Experiment("likelihoods", "NVDM with a multinomial and with a DCM likelihood", runs, table)
