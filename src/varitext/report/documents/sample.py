"""The documents that the charts show: a seeded sample, with what the model makes of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varitext.corpora.sharded_counts import blocks_of
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.evaluation.keywords import document_keywords
from varitext.report.escaping import one_line

MAX_DOCUMENTS = 4000  # what a browser moves smoothly and t-SNE lays out in seconds
NO_LABEL = "no label"


@dataclass(frozen=True)
class DocumentSample:
    """One row per document; `of` says how many there are in all."""

    mean: np.ndarray  # [D, K]
    std: np.ndarray  # [D, K]
    memberships: np.ndarray  # [D, topics]
    lengths: np.ndarray  # [D], known words
    document_keywords: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...] | None
    titles: tuple[str, ...] | None
    of: int

    @property
    def topic(self) -> np.ndarray:
        """The most probable topic of each, as a place in the model's list.  [D]"""
        return np.asarray(self.memberships.argmax(1))

    def __len__(self) -> int:
        return len(self.mean)


def choose_documents(
    model: DocumentModel,
    documents: Any,
    labels: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    most: int = MAX_DOCUMENTS,
) -> DocumentSample:
    """At most `most` documents that have a known word, drawn with the model's seed and kept in their order."""
    counts = model.count(documents)  # once: counting texts is slower than everything below
    for name, column in (("labels", labels), ("titles", titles)):
        if column is not None and len(column) != counts.shape[0]:
            raise InputError(f"there are {len(column)} {name} for {counts.shape[0]} documents")
    has_words = np.concatenate([block.getnnz(1) > 0 for block in blocks_of(counts)])
    if not has_words.any():
        raise InputError("no document has a word that the model knows: there is nothing to show")
    rows = _sample(np.flatnonzero(has_words), most, model.seed)
    sample = counts[rows]
    posterior = model.posterior(sample)
    log_frequencies = model.fitted_.network.word_log_frequencies.cpu().numpy()
    return DocumentSample(
        mean=posterior.mean,
        std=posterior.std,
        memberships=model.memberships_of(posterior),
        lengths=np.asarray(sample.sum(1)).ravel(),
        document_keywords=document_keywords(sample, log_frequencies, model.fitted_.vocabulary.words),
        labels=None if labels is None else tuple(_label(labels[row]) for row in rows),
        titles=None if titles is None else tuple(one_line(titles[row]) for row in rows),
        of=counts.shape[0],
    )


def _sample(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _label(value: object) -> str:
    return (one_line(value, 60) if value is not None else "") or NO_LABEL
