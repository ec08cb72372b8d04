"""Held-out perplexity, honestly: which kind of figure it is, the KL in, a tighter bound and the unigram model beside.

per document   exp( -1/D sum_d (1/N_d) log p(X_d) )      the paper's figure: every document weighs the same
per corpus     exp( -sum_d log p(X_d) / sum_d N_d )      every word weighs the same
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse
import torch

from varitext.errors import InputError
from varitext.evaluation.significance import bootstrap_interval
from varitext.models.documents.bounds import LOWER_BOUND, DocumentBounds, EstimateKind


class Judged(Protocol):
    """What `perplexity_record` asks of a model; every `DocumentNetwork` has it."""

    estimate_kind: EstimateKind
    word_log_frequencies: torch.Tensor

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds: ...


@dataclass(frozen=True)
class PerplexityRecord:
    """What `varitext evaluate --json` prints for a document model."""

    per_document_perplexity: float
    per_document_interval_95: tuple[float, float]
    corpus_perplexity: float
    iwae_per_document_perplexity: float
    iwae_corpus_perplexity: float
    unigram_per_document_perplexity: float
    unigram_corpus_perplexity: float
    ratio_to_unigram: float
    reconstruction_per_word: float
    kl_per_word: float
    kl_per_document: float
    n_documents: int
    n_empty_documents: int
    n_tokens: int
    n_samples: int
    kind: str = LOWER_BOUND.kind
    figure: str = LOWER_BOUND.words
    standard_error: float = 0.0  # of per_document_perplexity, where that is an estimate with an error of its own

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def perplexity_record(
    model: Judged, counts: scipy.sparse.csr_matrix, samples: int = 20, seed: int = 0
) -> PerplexityRecord:
    """The record for documents that have at least one known word; the others are left out and counted."""
    lengths = np.asarray(counts.sum(1)).ravel()
    known = counts[lengths > 0]
    if known.shape[0] == 0:
        raise InputError("no document has a word of the model's vocabulary: there is no perplexity to compute")
    bounds = model.evaluate(known, samples, seed)
    errors = bounds.standard_errors
    unigram = known @ model.word_log_frequencies.double().cpu().numpy()
    interval = bootstrap_interval(-bounds.elbo / bounds.lengths, seed=seed)  # over documents
    per_document = per_document_perplexity(bounds.elbo, bounds.lengths)
    unigram_per_document = per_document_perplexity(unigram, bounds.lengths)
    return PerplexityRecord(
        per_document_perplexity=per_document,
        per_document_interval_95=(_exp(interval.low), _exp(interval.high)),
        corpus_perplexity=per_corpus_perplexity(bounds.elbo, bounds.lengths),
        iwae_per_document_perplexity=per_document_perplexity(bounds.importance_weighted, bounds.lengths),
        iwae_corpus_perplexity=per_corpus_perplexity(bounds.importance_weighted, bounds.lengths),
        unigram_per_document_perplexity=unigram_per_document,
        unigram_corpus_perplexity=per_corpus_perplexity(unigram, bounds.lengths),
        ratio_to_unigram=per_document / unigram_per_document,
        reconstruction_per_word=float((-bounds.log_likelihood / bounds.lengths).mean()),
        kl_per_word=float((bounds.kl / bounds.lengths).mean()),
        kl_per_document=float(bounds.kl.mean()),
        n_documents=known.shape[0],
        n_empty_documents=counts.shape[0] - known.shape[0],
        n_tokens=round(float(bounds.lengths.sum())),
        n_samples=samples if bounds.drawn is None else bounds.drawn,
        kind=model.estimate_kind.kind,
        figure=model.estimate_kind.words,
        standard_error=0.0 if errors is None else float(per_document * (errors / bounds.lengths).mean()),
    )


def merge_records(records: Sequence[PerplexityRecord]) -> PerplexityRecord:
    """The record of all documents from those of its parts; of a single part it is that part's.

    The interval is that of a normal distribution whose variance adds up over the parts: bootstrapping millions of
    documents would hold them all, to find the same.
    """
    if len(records) == 1:
        return records[0]
    documents, tokens = (np.array([getattr(part, name) for part in records]) for name in ("n_documents", "n_tokens"))

    def mean(name: str) -> float:
        return float(np.average([getattr(part, name) for part in records], weights=documents))

    def perplexity(name: str, weights: np.ndarray) -> float:
        return _exp(float(np.average([math.log(getattr(part, name)) for part in records], weights=weights)))

    per_document = perplexity("per_document_perplexity", documents)
    unigram = perplexity("unigram_per_document_perplexity", documents)
    widths = [math.log(part.per_document_interval_95[1] / part.per_document_interval_95[0]) for part in records]
    half_width = math.hypot(*(documents * widths)) / int(documents.sum()) / 2
    relative_errors = [part.standard_error / part.per_document_perplexity for part in records]  # they err together
    return replace(
        records[0],
        per_document_perplexity=per_document,
        per_document_interval_95=(per_document * math.exp(-half_width), per_document * math.exp(half_width)),
        corpus_perplexity=perplexity("corpus_perplexity", tokens),
        iwae_per_document_perplexity=perplexity("iwae_per_document_perplexity", documents),
        iwae_corpus_perplexity=perplexity("iwae_corpus_perplexity", tokens),
        unigram_per_document_perplexity=unigram,
        unigram_corpus_perplexity=perplexity("unigram_corpus_perplexity", tokens),
        ratio_to_unigram=per_document / unigram,
        reconstruction_per_word=mean("reconstruction_per_word"),
        kl_per_word=mean("kl_per_word"),
        kl_per_document=mean("kl_per_document"),
        n_documents=int(documents.sum()),
        n_empty_documents=sum(part.n_empty_documents for part in records),
        n_tokens=int(tokens.sum()),
        standard_error=per_document * float(np.average(relative_errors, weights=documents)),
    )


def per_document_perplexity(log_probability: np.ndarray, lengths: np.ndarray) -> float:
    return _exp(-(log_probability / lengths).mean())


def per_corpus_perplexity(log_probability: np.ndarray, lengths: np.ndarray) -> float:
    return _exp(-log_probability.sum() / lengths.sum())


def _exp(value: float) -> float:
    """exp that tops out instead of overflowing: a model that bad is only ever compared with a better one."""
    return math.exp(min(value, 700.0))
