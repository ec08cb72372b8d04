"""Document completion: from one half of a document's words, how well are the words of the other half predicted?

The words of each document are shuffled with a seed; the first floor(N/2) are hidden, the rest observed.

each word by itself   log p(hidden | observed) = sum_w count_w log E_q[ p(w | h) ],  h ~ q(h | observed)
all at once           log p(hidden | observed) = log E_q[ p(hidden | h) ]

The first is the usual one, for models that give `word_log_probabilities(h)`. The second needs only the framework's four
methods; with few samples it is on the low side. A model that knows better gives `completion_log_likelihood(observed,
hidden, samples)`. No KL is in the figure: the hidden words are not used to infer h. It is no bound on log p(X) and
not comparable with the perplexity of whole documents.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch
from varitext.errors import InputError
from varitext.evaluation.perplexity import per_corpus_perplexity, per_document_perplexity
from varitext.evaluation.significance import bootstrap_interval
from varitext.latent.divergence import draw_from
from varitext.models.documents.base import CompletesDocuments, HasWordProbabilities
from varitext.models.documents.bounds import LARGEST_LOGITS
from varitext.runtime.devices import seeded

FEWEST_WORDS = 2  # one to see, one to guess


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
    model: Any,
    counts: scipy.sparse.csr_matrix,
    word_log_frequencies: np.ndarray,
    samples: int = 20,
    seed: int = 0,
    device: str = "cpu",
) -> CompletionRecord:
    """The record for documents of at least two known words; `model` is a document network."""
    lengths = np.asarray(counts.sum(1)).ravel()
    long_enough = counts[np.flatnonzero(lengths >= FEWEST_WORDS)]
    if long_enough.shape[0] == 0:
        raise InputError("no document has two words of the model's vocabulary: there is nothing to complete")
    halves = split_words(long_enough, seed)
    log_likelihood = completion_log_likelihoods(model, halves, samples, seed, device)
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
        n_documents_left_out=counts.shape[0] - len(hidden),
        n_observed_tokens=round(float(halves.observed.sum())),
        n_hidden_tokens=round(float(hidden.sum())),
        n_samples=samples,
        seed=seed,
        estimator=estimator_of(model),
    )


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


@torch.no_grad()
def completion_log_likelihoods(
    model: Any, halves: Halves, samples: int = 20, seed: int = 0, device: str = "cpu"
) -> np.ndarray:
    """log p(hidden | observed) of every document; the same seed gives the same values."""
    if samples < 1:
        raise InputError(f"completion needs at least one sample, not {samples}")
    documents, words = halves.observed.shape
    size = max(1, min(256, LARGEST_LOGITS // (samples * max(1, words))))
    values = []
    with seeded(seed, device):
        for start in range(0, documents, size):
            observed, hidden = (CountBatch.from_rows(half[start : start + size], device) for half in halves)
            values.append(_ESTIMATORS[estimator_of(model)](model, observed, hidden, samples))
    return torch.cat(values).double().cpu().numpy()


def estimator_of(model: Any) -> str:
    """How the figure is made for this model: by what the model gives."""
    if isinstance(model, CompletesDocuments):
        return "the model's own"
    return "each word by itself" if isinstance(model, HasWordProbabilities) else "all at once"


def _by_the_model(model: Any, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
    return model.completion_log_likelihood(observed, hidden, samples)


def _each_word(model: Any, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
    h = _draw(model, observed, samples)
    every_word = model.word_log_probabilities(h)  # [S, B, V]
    of_entries = torch.logsumexp(every_word[:, hidden.documents, hidden.words], 0) - math.log(samples)  # [n]
    return torch.zeros_like(hidden.lengths).index_add_(0, hidden.documents, hidden.counts * of_entries)  # [B]


def _all_at_once(model: Any, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
    h = _draw(model, observed, samples)
    return torch.logsumexp(model.log_likelihood(h, model.encode(hidden)), 0) - math.log(samples)  # [B]


def _draw(model: Any, observed: CountBatch, samples: int) -> Tensor:
    return draw_from(model.posterior(model.encode(observed)), samples)  # [S, B, K]


_ESTIMATORS = {"the model's own": _by_the_model, "each word by itself": _each_word, "all at once": _all_at_once}


def _with_counts(counts: scipy.sparse.csr_matrix, values: np.ndarray) -> scipy.sparse.csr_matrix:
    part = scipy.sparse.csr_matrix((values.astype(np.float32), counts.indices, counts.indptr), counts.shape, copy=True)
    part.eliminate_zeros()
    return part
