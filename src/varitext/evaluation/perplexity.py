"""Held-out perplexity with the kind of estimate it is, its KL, a tighter bound and the unigram model beside it.

per document   exp( -1/D sum_d (1/N_d) log p(X_d) )      the paper's: every document weighs the same
per corpus     exp( -sum_d log p(X_d) / sum_d N_d )      every word weighs the same

Document completion predicts one half of a document's words from the other half; its perplexities are the same two, of
log p(hidden words | observed words).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from varitext.errors import InputError
from varitext.evaluation.significance import bootstrap_interval, mean_over_seeds, paired_randomisation_test
from varitext.records import DictRecord

RESAMPLES = 10_000  # of a paired test: documents are many, and a hundred thousand would take half a minute


@dataclass(frozen=True)
class PerplexityRecord(DictRecord):
    """What `varitext evaluate --json` prints for a document model.

    Attributes
    ----------
    per_document_perplexity, corpus_perplexity : float
        Of the bound, KL included; the paper reports the first. Lower is better.
    per_document_interval_95 : tuple of float
        Bootstrap interval over documents.
    iwae_per_document_perplexity, iwae_corpus_perplexity : float
        Of the importance-weighted bound, which is tighter.
    unigram_per_document_perplexity, unigram_corpus_perplexity : float
        Of the training documents' word frequencies.
    ratio_to_unigram : float
        Per document.
    reconstruction_per_word, kl_per_word, kl_per_document : float
        The parts of the bound, in nats.
    n_documents, n_empty_documents, n_tokens, n_samples : int
        What was evaluated: documents with and without known words, their known words, draws of h per document.
    kind : {"bound", "exact", "estimate"}
        A bound is never above the truth; an estimate may be on either side.
    description : str
        The same in a sentence: which bound or estimator.
    standard_error : float
        Of per_document_perplexity, for an estimate with an error of its own.
    likelihood : str
        Of the words given h.
    """

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
    kind: str
    description: str
    standard_error: float = 0.0
    likelihood: str = "multinomial"


def perplexity_record(
    log_likelihood: np.ndarray,
    kl: np.ndarray,
    importance_weighted: np.ndarray,
    unigram: np.ndarray,
    lengths: np.ndarray,
    *,
    kind: str,
    description: str,
    samples: int,
    likelihood: str = "multinomial",
    standard_errors: np.ndarray | None = None,
    empty_documents: int = 0,
    seed: int = 0,
) -> PerplexityRecord:
    """Build the perplexity record of D documents from one value per document, in nats.

    Parameters
    ----------
    log_likelihood, kl : arrays [D]
        The bound on log p(X) is `log_likelihood - kl`; `kl` is 0 where log p(X) is known.
    importance_weighted : array [D]
        A tighter bound, or log p(X) itself.
    unigram : array [D]
        log p(X) under the unigram model.
    lengths : array [D]
        Words per document, at least one each.
    kind, description : str
        "bound", "exact" or "estimate"; and the same in a sentence.
    samples : int
        Draws of h per document.
    likelihood : str, default "multinomial"
    standard_errors : array [D], optional
        Standard errors of an estimate, as it reports them.
    empty_documents : int, default 0
    seed : int, default 0
        Seed of the bootstrap interval.

    Returns
    -------
    PerplexityRecord
    """
    elbo = log_likelihood - kl
    interval = bootstrap_interval(-elbo / lengths, seed=seed)  # over documents
    per_document = per_document_perplexity(elbo, lengths)
    unigram_per_document = per_document_perplexity(unigram, lengths)
    return PerplexityRecord(
        per_document_perplexity=per_document,
        per_document_interval_95=(_exp(interval.low), _exp(interval.high)),
        corpus_perplexity=per_corpus_perplexity(elbo, lengths),
        iwae_per_document_perplexity=per_document_perplexity(importance_weighted, lengths),
        iwae_corpus_perplexity=per_corpus_perplexity(importance_weighted, lengths),
        unigram_per_document_perplexity=unigram_per_document,
        unigram_corpus_perplexity=per_corpus_perplexity(unigram, lengths),
        ratio_to_unigram=per_document / unigram_per_document,
        reconstruction_per_word=float((-log_likelihood / lengths).mean()),
        kl_per_word=float((kl / lengths).mean()),
        kl_per_document=float(kl.mean()),
        n_documents=len(lengths),
        n_empty_documents=empty_documents,
        n_tokens=round(float(lengths.sum())),
        n_samples=samples,
        kind=kind,
        description=description,
        standard_error=0.0 if standard_errors is None else float(per_document * (standard_errors / lengths).mean()),
        likelihood=likelihood,
    )


def merge_records(records: Sequence[PerplexityRecord]) -> PerplexityRecord:
    """The record of all documents from those of its parts; that of a single part is unchanged.

    The interval is that of a normal distribution whose variance adds up over the parts: bootstrapping millions of
    documents would hold them all in memory, for the same result.
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
    """exp, capped so that it does not overflow: a model that bad is only ever compared with a better one."""
    return math.exp(min(value, 700.0))


class DocumentComparison(NamedTuple):
    """Two models on the same documents, in nats per word; positive differences are in favour of the second."""

    difference: float  # mean over documents of second - first
    interval_95: tuple[float, float]  # bootstrap over documents
    p_value: float  # paired randomisation test over documents
    n_documents: int


def compare_documents(first: ArrayLike, second: ArrayLike, seed: int = 0) -> DocumentComparison:
    """Compare log p(X) / N of every document, [D], or its mean over seeds if [seeds, D] is given."""
    test = paired_randomisation_test(second, first, RESAMPLES, seed)
    difference = mean_over_seeds(second) - mean_over_seeds(first)
    interval = bootstrap_interval(difference, seed=seed)
    return DocumentComparison(test.difference, interval.bounds, test.p_value, len(difference))


# Document completion


MIN_WORDS = 2  # one to observe, one to predict


@dataclass(frozen=True)
class CompletionRecord(DictRecord):
    """Perplexity of the hidden half given the other, beside that of the unigram model."""

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
    """Build the record of document completion.

    Parameters
    ----------
    log_likelihood : array [D]
        log p(hidden words | observed words) of each document, in nats.
    halves : Halves
        Observed and hidden counts.
    word_log_frequencies : array [V]
        log p(word) of the unigram model.
    estimator : str
        How log_likelihood was estimated.
    samples, seed, left_out : int, default 0
        Draws of h, the seed of the split and interval, documents with fewer than two known words.

    Returns
    -------
    CompletionRecord
    """
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
    """Both halves of every document with at least two known words."""
    lengths = np.asarray(counts.sum(1)).ravel()
    long_enough = counts[np.flatnonzero(lengths >= MIN_WORDS)]
    if long_enough.shape[0] == 0:
        raise InputError("no document has two words of the model's vocabulary: there is nothing to complete")
    return split_words(long_enough, seed)


def split_words(counts: scipy.sparse.csr_matrix, seed: int = 0) -> Halves:
    """Hide floor(N/2) words of each document, drawn without replacement: a word that occurs twice may be in both."""
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
    halves = []
    for values in (times - hidden, hidden):
        entries = (values.astype(np.float32), counts.indices, counts.indptr)
        halves.append(scipy.sparse.csr_matrix(entries, counts.shape, copy=True))
        halves[-1].eliminate_zeros()
    return Halves(*halves)
