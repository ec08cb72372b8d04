"""All measures of a fitted model on a labelled corpus, including document completion.

Completion hides half of each document's words and asks for the likelihood of that half given the other:

    word by word          log p(hidden | observed) = sum_w count_w log E_q[ p(w | h) ],  h ~ q(h | observed)
    all at once           log p(hidden | observed) = log E_q[ p(hidden | h) ]

The first is the usual one, for models that implement `word_log_probabilities(h)`. The second needs only the framework's
four methods; with few samples it is biased downwards. A model that has a better estimate implements
`completion_log_likelihood(observed, hidden, samples)`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch
from varitext.corpora.document_input import DocumentInput, kind_of, unwrap
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import in_memory
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.evaluation.coherence import CoherenceRecord, coherence_record
from varitext.evaluation.latent_dimensions import LatentDimension
from varitext.evaluation.perplexity import CompletionRecord, Halves, PerplexityRecord, completion_record, hide_words
from varitext.evaluation.topic_quality import (
    DiversityRecord,
    NeighbourhoodStabilityRecord,
    TopicStabilityRecord,
    diversity_record,
    neighbourhood_stability_record,
    topic_stability_record,
)
from varitext.evaluation.vectors import ClassificationRecord, RetrievalRecord, classification_record, retrieval_record
from varitext.latent import LatentModel
from varitext.latent.bound import draw_from
from varitext.models.documents.base import CompletesDocuments, HasWordProbabilities
from varitext.models.documents.bounds import MAX_LOGITS
from varitext.records import DictRecord
from varitext.runtime.randomness import seeded, stream
from varitext.text import TokenRules


@dataclass(frozen=True)
class DocumentEvaluation(DictRecord):
    """One record per measure; None where the corpus or the call lacks what the measure needs."""

    perplexity: PerplexityRecord
    completion: CompletionRecord
    npmi: CoherenceRecord  # of latent dimensions, as are c_v, diversity and topic_stability
    c_v: CoherenceRecord | None  # texts only
    diversity: DiversityRecord
    retrieval: RetrievalRecord | None  # labels only
    classification: ClassificationRecord | None  # labels only
    topic_stability: TopicStabilityRecord | None  # other fits only
    neighbourhood_stability: NeighbourhoodStabilityRecord | None  # other fits only


def evaluate_documents(
    model: DocumentModel,
    train: Documents,
    test: Documents,
    *,
    reference: DocumentInput | None = None,
    other_fits: Sequence[DocumentModel] = (),
    words: int = 10,
    samples: int = 20,
    seed: int = 0,
) -> DocumentEvaluation:
    """Evaluate a fitted model on a corpus in two parts.

    Parameters
    ----------
    model : DocumentModel
        A fitted model.
    train : Documents
        The training part; both parts need labels for retrieval and classification.
    test : Documents
        The test part.
    reference : documents, default=None
        Documents to measure coherence on (default: `train`): over sliding windows if they are texts, over whole
        documents if they are counts.
    other_fits : sequence of DocumentModel, default=()
        The same model fitted with other seeds, for the two stability records.
    words : int, default=10
        Words per latent dimension in coherence, diversity and stability.
    samples : int, default=20
        Draws of h per document in perplexity and completion.
    seed : int, default=0
        Seed of completion, retrieval, classification and neighbourhoods.

    Returns
    -------
    DocumentEvaluation
        One record per measure.
    """
    network = model.fitted_.network
    frequencies = network.word_log_frequencies.double().cpu().numpy()
    dimensions = model.latent_dimensions(words)
    npmi, c_v = _coherence(dimensions, train if reference is None else reference, model.fitted_.token_rules)
    vectors = model.posterior(test).mean
    labelled = train.labels is not None and test.labels is not None
    parts = (model.posterior(train).mean, train.labels, vectors, test.labels)
    fits = [model, *other_fits]
    neighbours = [vectors, *(fit.transform(test) for fit in other_fits)]
    return DocumentEvaluation(
        perplexity=model.perplexity_record(test, samples),
        completion=completion_of(network, in_memory(model.count(test)), frequencies, samples, seed, network.device),
        npmi=npmi,
        c_v=c_v,
        diversity=diversity_record(dimensions),
        retrieval=retrieval_record(*parts, seed=seed) if labelled else None,
        classification=classification_record(*parts, seed=seed) if labelled else None,
        topic_stability=topic_stability_record([fit.latent_dimensions(words) for fit in fits]) if other_fits else None,
        neighbourhood_stability=neighbourhood_stability_record(neighbours, seed=seed) if other_fits else None,
    )


def _coherence(
    dimensions: list[LatentDimension], reference: DocumentInput, token_rules: TokenRules
) -> tuple[CoherenceRecord, CoherenceRecord | None]:
    if kind_of(unwrap(reference)[0]) == "counts":
        return coherence_record(dimensions, reference, "npmi", window="document"), None
    npmi = coherence_record(dimensions, reference, "npmi", token_rules=token_rules)
    return npmi, coherence_record(dimensions, reference, "c_v", token_rules=token_rules)


Completer = CompletesDocuments | LatentModel


def completion_of(
    model: Completer,
    counts: scipy.sparse.csr_matrix,
    word_log_frequencies: np.ndarray,
    samples: int = 20,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> CompletionRecord:
    """Hide half of the words of every document that has at least two, and measure how well the model predicts them."""
    halves = hide_words(counts, seed)
    log_likelihood = completion_log_likelihoods(model, halves, samples, seed, device)
    estimator = "each word by itself" if isinstance(model, HasWordProbabilities) else "all at once"
    if isinstance(model, CompletesDocuments):
        estimator = "the model's own"
    return completion_record(
        log_likelihood,
        halves,
        word_log_frequencies,
        estimator=estimator,
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


def _log_likelihood(model: Completer, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
    if isinstance(model, CompletesDocuments):
        return model.completion_log_likelihood(observed, hidden, samples)
    h = draw_from(model.posterior(model.encode(observed)), samples)  # [S, B, K]
    if not isinstance(model, HasWordProbabilities):
        return torch.logsumexp(model.log_likelihood(h, model.encode(hidden)), 0) - math.log(samples)  # [B]
    every_word = model.word_log_probabilities(h)  # [S, B, V]
    of_entries = torch.logsumexp(every_word[:, hidden.documents, hidden.words], 0) - math.log(samples)  # [n]
    return torch.zeros_like(hidden.lengths).index_add_(0, hidden.documents, hidden.counts * of_entries)  # [B]
