"""Document completion by a network: what it says of the hidden half of each document, having seen the other.

each word by itself   log p(hidden | observed) = sum_w count_w log E_q[ p(w | h) ],  h ~ q(h | observed)
all at once           log p(hidden | observed) = log E_q[ p(hidden | h) ]

The first is the usual one, for models that give `word_log_probabilities(h)`. The second needs only the framework's four
methods; with few samples it is on the low side. A model with a better way gives `completion_log_likelihood(observed,
hidden, samples)`.
"""

import math

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch
from varitext.errors import InputError
from varitext.evaluation.perplexity import CompletionRecord, Halves, completion_record, hide_words
from varitext.latent import LatentModel
from varitext.latent.bound import draw_from
from varitext.models.documents.base import CompletesDocuments, HasWordProbabilities
from varitext.models.documents.bounds import MAX_LOGITS
from varitext.runtime.randomness import seeded, stream

Completer = CompletesDocuments | LatentModel


def completion_of(
    model: Completer,
    counts: scipy.sparse.csr_matrix,
    word_log_frequencies: np.ndarray,
    samples: int = 20,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> CompletionRecord:
    """Hide half of the words of every document of at least two, let the model predict them, and measure that."""
    halves = hide_words(counts, seed)
    log_likelihood = completion_log_likelihoods(model, halves, samples, seed, device)
    return completion_record(
        log_likelihood,
        halves,
        word_log_frequencies,
        estimator=estimator_of(model),
        samples=samples,
        seed=seed,
        left_out=counts.shape[0] - halves.hidden.shape[0],
    )


@torch.no_grad()
def completion_log_likelihoods(
    model: Completer, halves: Halves, samples: int = 20, seed: int = 0, device: torch.device | str = "cpu"
) -> np.ndarray:
    """log p(hidden | observed) of every document; the same seed gives the same values."""
    if samples < 1:
        raise InputError(f"completion needs at least one sample, not {samples}")
    documents, words = halves.observed.shape
    size = max(1, min(256, MAX_LOGITS // (samples * max(1, words))))
    values = []
    with seeded(stream(seed, "evaluation noise"), device):
        for start in range(0, documents, size):
            observed, hidden = (CountBatch.from_rows(half[start : start + size], device) for half in halves)
            values.append(_log_likelihood(model, observed, hidden, samples))
    return torch.cat(values).double().cpu().numpy()


def estimator_of(model: Completer) -> str:
    """How log p(hidden | observed) is estimated: by what the model gives."""
    if isinstance(model, CompletesDocuments):
        return "the model's own"
    return "each word by itself" if isinstance(model, HasWordProbabilities) else "all at once"


def _log_likelihood(model: Completer, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
    if isinstance(model, CompletesDocuments):
        return model.completion_log_likelihood(observed, hidden, samples)
    h = draw_from(model.posterior(model.encode(observed)), samples)  # [S, B, K]
    if not isinstance(model, HasWordProbabilities):
        return torch.logsumexp(model.log_likelihood(h, model.encode(hidden)), 0) - math.log(samples)  # [B]
    every_word = model.word_log_probabilities(h)  # [S, B, V]
    of_entries = torch.logsumexp(every_word[:, hidden.documents, hidden.words], 0) - math.log(samples)  # [n]
    return torch.zeros_like(hidden.lengths).index_add_(0, hidden.documents, hidden.counts * of_entries)  # [B]
