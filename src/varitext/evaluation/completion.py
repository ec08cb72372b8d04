"""Document completion: from one half of a document's words, how well are the words of the other half predicted?

The words of each document are shuffled with a seed; the first floor(N/2) are hidden, the rest observed. A model gives
log p(hidden | observed) of each document: `documents/completion.py` asks a network of ours for it.

There is no KL in it, since the hidden words are not used to infer h. It is no bound on log p(X) and not comparable with
the perplexity of whole documents.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from varitext.errors import InputError
from varitext.evaluation.perplexity import per_corpus_perplexity, per_document_perplexity
from varitext.evaluation.significance import bootstrap_interval

MIN_WORDS = 2  # one to see, one to guess


@dataclass(frozen=True)
class CompletionRecord:
    """Perplexity of the hidden half given the other, beside a model that only knows how frequent words are."""

    per_document_perplexity: float
    per_document_interval_95: tuple[float, float]
    corpus_perplexity: float
    unigram_per_document_perplexity: float
    unigram_corpus_perplexity: float
    ratio_to_unigram: float
    n_documents: int
    n_documents_left_out: int  # fewer than two known words
    n_observed_tokens: int
    n_hidden_tokens: int
    n_samples: int
    seed: int
    estimator: str
    split: str = "floor(N/2) of a document's words hidden at random, the others observed"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Halves(NamedTuple):
    """Each document's words in two parts."""

    observed: scipy.sparse.csr_matrix  # [D, V]
    hidden: scipy.sparse.csr_matrix  # [D, V]


def completion_record(
    log_likelihood: np.ndarray,
    halves: Halves,
    word_log_frequencies: np.ndarray,
    *,
    estimator: str,
    samples: int = 0,
    seed: int = 0,
    left_out: int = 0,
) -> CompletionRecord:
    """The record of log p(hidden | observed) of each document, [D] nats, by whichever `estimator` and model."""
    hidden = np.asarray(halves.hidden.sum(1)).ravel()
    unigram = halves.hidden @ word_log_frequencies
    interval = bootstrap_interval(-log_likelihood / hidden, seed=seed)
    per_document = per_document_perplexity(log_likelihood, hidden)
    unigram_per_document = per_document_perplexity(unigram, hidden)
    return CompletionRecord(
        per_document_perplexity=per_document,
        per_document_interval_95=(math.exp(min(interval.low, 700)), math.exp(min(interval.high, 700))),
        corpus_perplexity=per_corpus_perplexity(log_likelihood, hidden),
        unigram_per_document_perplexity=unigram_per_document,
        unigram_corpus_perplexity=per_corpus_perplexity(unigram, hidden),
        ratio_to_unigram=per_document / unigram_per_document,
        n_documents=len(hidden),
        n_documents_left_out=left_out,
        n_observed_tokens=round(float(halves.observed.sum())),
        n_hidden_tokens=round(float(hidden.sum())),
        n_samples=samples,
        seed=seed,
        estimator=estimator,
    )


def hide_words(counts: scipy.sparse.csr_matrix, seed: int = 0) -> Halves:
    """Both halves of every document of at least two known words."""
    lengths = np.asarray(counts.sum(1)).ravel()
    long_enough = counts[np.flatnonzero(lengths >= MIN_WORDS)]
    if long_enough.shape[0] == 0:
        raise InputError("no document has two words of the model's vocabulary: there is nothing to complete")
    return split_words(long_enough, seed)


def split_words(counts: scipy.sparse.csr_matrix, seed: int = 0) -> Halves:
    """Hide floor(N/2) words of each document, drawn without replacement: a word that stands twice may be in both."""
    if (counts.data != np.floor(counts.data)).any():
        raise InputError("completion splits words one by one: fractional counts have none")
    document = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    times = counts.data.astype(np.int64)
    entry = np.repeat(np.arange(len(times)), times)  # one for each token
    owner = document[entry]
    order = np.lexsort((np.random.default_rng(seed).random(len(entry)), owner))  # shuffled within each document
    lengths = np.bincount(owner, minlength=counts.shape[0])
    place = np.arange(len(entry)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_hidden = place < (lengths // 2)[owner[order]]
    hidden = np.bincount(entry[order][is_hidden], minlength=len(times))
    return Halves(*(_with_counts(counts, part) for part in (times - hidden, hidden)))


def _with_counts(counts: scipy.sparse.csr_matrix, values: np.ndarray) -> scipy.sparse.csr_matrix:
    part = scipy.sparse.csr_matrix((values.astype(np.float32), counts.indices, counts.indptr), counts.shape, copy=True)
    part.eliminate_zeros()
    return part
