"""Held-out perplexity of a network: it bounds log p(X) block by block, `evaluation/perplexity.py` does the rest."""

import numpy as np
import scipy.sparse

from varitext.corpora.sharded_counts import Counts, blocks_of
from varitext.errors import InputError
from varitext.evaluation.perplexity import PerplexityRecord, merge_records, perplexity_record
from varitext.models.documents.base import DocumentNetwork


def perplexity_of(network: DocumentNetwork, counts: Counts, samples: int, seed: int) -> PerplexityRecord:
    """The record for documents that have at least one known word; the others are left out and counted."""
    blocks = enumerate(blocks_of(counts), seed)  # with noise of its own for each
    return merge_records([_of_block(network, block, samples, own_seed) for own_seed, block in blocks])


def mean_bound_per_word(network: DocumentNetwork, counts: Counts, samples: int, seed: int) -> float:
    """Mean over documents of log p(X) / N, or of its bound; none of them may be empty."""
    mean = 0.0
    for own_seed, block in enumerate(blocks_of(counts), seed):
        bounds = network.evaluate(block, samples, own_seed)
        mean += block.shape[0] / counts.shape[0] * float((bounds.elbo / bounds.lengths).mean())
    return mean


def _of_block(network: DocumentNetwork, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> PerplexityRecord:
    known = counts[np.asarray(counts.sum(1)).ravel() > 0]
    if known.shape[0] == 0:
        raise InputError("no document has a word of the model's vocabulary: there is no perplexity to compute")
    bounds = network.evaluate(known, samples, seed)
    return perplexity_record(
        bounds.log_likelihood,
        bounds.kl,
        bounds.importance_weighted,
        known @ network.word_log_frequencies.double().cpu().numpy(),
        bounds.lengths,
        kind=network.estimate_kind.kind,
        figure=network.estimate_kind.words,
        likelihood=network.likelihood,
        samples=samples if bounds.drawn is None else bounds.drawn,
        standard_errors=bounds.standard_errors,
        empty_documents=counts.shape[0] - known.shape[0],
        seed=seed,
    )
