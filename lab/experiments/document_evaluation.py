"""Every document model beyond perplexity, K = 50: retrieval, classification, topics, completion, stability."""

from functools import partial
from typing import Any

from varitext.documents.evaluation import DocumentEvaluation, evaluate_documents
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce import document_fits
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table
from varitext.runtime.devices import running_on

SHOWN_FRACTIONS = (0.0002, 0.002, 0.02)  # of the training documents, retrieved


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    """Stability is between this seed and the next."""
    fitted, again = (
        document_fits.fitted_model(document_fits.NEWSGROUPS, document_fits.Setting(model), one, plan)
        for one in (seed, seed + 1)
    )
    parts = (
        document_fits.load_part(document_fits.NEWSGROUPS, "train", plan),
        document_fits.load_part(document_fits.NEWSGROUPS, "test", plan),
    )
    reference = document_fits.coherence_reference(plan)
    with running_on(plan.threads):
        found = evaluate_documents(
            fitted, *parts, reference=reference, other_fits=[again], samples=document_fits.samples_of(plan), seed=seed
        )
    kept = measures_of(found) | {"reference": reference.name, "reference_sha256": reference.sha256}
    return document_fits.short(kept) | document_fits.hashes(document_fits.NEWSGROUPS, plan)


def measures_of(found: DocumentEvaluation) -> dict[str, Any]:
    retrieval, classification, completion = found.retrieval, found.classification, found.completion
    assert retrieval and classification and found.topic_stability and found.neighbourhood_stability
    return {
        "retrieval": {
            "fractions": retrieval.fractions,
            "precision_at_fraction": retrieval.precision_at_fraction,
            "recalls": retrieval.recalls,
            "precision_at_recall": retrieval.precision_at_recall,
            "precision_at_2_percent_interval_95": retrieval.precision_at_2_percent_interval_95,
            "by_chance": retrieval.by_chance,
        },
        "accuracy": classification.accuracy,
        "accuracy_interval_95": classification.accuracy_interval_95,
        "macro_f1": classification.macro_f1,
        "npmi": found.npmi.coherence,
        "npmi_window": found.npmi.window,
        "c_v": found.c_v and found.c_v.coherence,
        "unique_words": found.diversity.unique_words,
        "inverted_rbo": found.diversity.inverted_rbo,
        "n_topics": found.diversity.n_topics,
        "completion_perplexity": completion.per_document_perplexity,
        "completion_interval_95": completion.per_document_interval_95,
        "completion_unigram": completion.unigram_per_document_perplexity,
        "completion_estimator": completion.estimator,
        "perplexity": found.perplexity.per_document_perplexity,
        "kind": found.perplexity.kind,
        "topics_alike_rbo": found.topic_stability.rbo,
        "neighbours_alike": found.neighbourhood_stability.overlap,
    }


def table(records: list[Record]) -> str:
    head = ["", *(f"precision at {100 * fraction:g} %" for fraction in SHOWN_FRACTIONS), "accuracy", "macro F1"]
    head += ["NPMI", "C_V", "unique words", "completion perplexity", "topic stability", "neighbour stability"]
    found = sorted(
        records, key=lambda one: (list(document_fits.titles()).index(one["settings"]["model"]), one["settings"]["seed"])
    )
    rows = [[document_fits.titles()[record["settings"]["model"]], *_cells(record["result"])] for record in found]
    return markdown_table(head, rows)


def _cells(found: dict[str, Any]) -> list[str]:
    retrieval = found["retrieval"]
    precision = dict(zip(retrieval["fractions"], retrieval["precision_at_fraction"], strict=True))
    values = [*(precision[fraction] for fraction in SHOWN_FRACTIONS)]
    values += [found[name] for name in ("accuracy", "macro_f1", "npmi", "c_v", "unique_words")]
    cells = ["" if value is None else f"{value:.3f}" for value in values]
    cells.append(f"{found['completion_perplexity']:.1f}")
    return cells + [f"{found[name]:.3f}" for name in ("topics_alike_rbo", "neighbours_alike")]


RUNS = partial(grid, measure, 1, model=[name for name, entry in DOCUMENT_MODELS.items() if not entry.reads_vectors])
EXPERIMENT = Experiment("document-evaluation", "every document model beyond perplexity", RUNS, table)
