"""What a network infers about documents: q(h | X), bounds on log p(X), and how surprising each document is.

Each block of documents is processed by one thread, because no operation on a block is large enough to share. The result
for a document then depends neither on its neighbours nor on the number of threads.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch, CountBatches
from varitext.corpora.sharded_counts import Counts, blocks_of
from varitext.errors import InputError
from varitext.evaluation.perplexity import PerplexityRecord, merge_records, perplexity_record
from varitext.latent.noise import common_normal
from varitext.models.documents.base import DocumentNetwork, DocumentVectors
from varitext.runtime.devices import in_parallel
from varitext.runtime.randomness import stream

BLOCK = 256  # documents per matrix product when encoding; fixed, so that results do not depend on the batch
FEW = 64  # documents; fewer are faster without filling up a block
BLOCKS_AT_ONCE = 64  # handed to threads before the first result is passed on
LENGTH_LINE_DOCUMENTS, LENGTH_LINE_SAMPLES = 500, 5  # documents that the line is fitted on; draws of h for each


class Posterior(NamedTuple):
    """The approximate posterior q(h | X) of documents.

    Attributes
    ----------
    mean : np.ndarray
        The documents' vectors, [D, K].
    std : np.ndarray
        Standard deviations, [D, K]; 0 for a model with a point estimate of h.
    """

    mean: np.ndarray
    std: np.ndarray


# Vectors


def posterior_blocks(
    network: DocumentNetwork, counts: Counts, block: int = BLOCK, refine: bool = True, threads: int | None = None
) -> Iterator[Posterior]:
    def both(batch: CountBatch) -> Tensor:
        return torch.stack(network.document_vectors(batch), 1)  # [B, 2, K]

    for found in _blocks(network, both, counts, block, refine, threads):
        yield Posterior(found[:, 0], found[:, 1])


def mean_blocks(
    network: DocumentNetwork, counts: Counts, block: int = BLOCK, refine: bool = True, threads: int | None = None
) -> Iterator[np.ndarray]:
    """The means only, which some models compute faster."""
    return _blocks(network, network.document_means, counts, block, refine, threads)


def posterior_of(
    network: DocumentNetwork, counts: Counts, block: int = BLOCK, refine: bool = True, threads: int | None = None
) -> Posterior:
    blocks = list(posterior_blocks(network, counts, block, refine, threads))
    if not blocks:
        return Posterior(*np.zeros((2, 0, network.vector_dim), np.float32))
    return Posterior(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def described_documents(
    network: DocumentNetwork, counts: Counts, seed: int, threads: int | None = None
) -> tuple[Posterior, np.ndarray | None]:
    """The posterior and, from the same q, minus the bound per word (NaN without words), if the model supports it."""

    def both(batch: CountBatch) -> Tensor:
        with common_normal(stream(seed, "evaluation noise")):
            vectors, bound = network.vectors_and_bound(batch, LENGTH_LINE_SAMPLES)
        nats = torch.where(batch.lengths > 0, -bound / batch.lengths, torch.nan)
        return torch.cat([*vectors, nats[:, None]], 1)  # [B, 2 K + 1]

    if not network.has_joint_bound or not counts.shape[0]:
        return posterior_of(network, counts, threads=threads), None
    found = np.concatenate(list(_blocks(network, both, counts, BLOCK, True, threads)))
    mean, std = (np.ascontiguousarray(part) for part in np.split(found[:, :-1], 2, 1))
    return Posterior(mean, std), found[:, -1].astype(np.float64)


def means_of(
    network: DocumentNetwork, counts: Counts, block: int = BLOCK, refine: bool = True, threads: int | None = None
) -> np.ndarray:
    blocks = list(mean_blocks(network, counts, block, refine, threads))
    return np.concatenate(blocks) if blocks else np.zeros((0, network.vector_dim), np.float32)


def _blocks(
    network: DocumentNetwork,
    compute: Callable[[CountBatch], Tensor],
    counts: Counts,
    block: int,
    refine: bool,
    threads: int | None,
) -> Iterator[np.ndarray]:
    @torch.no_grad()
    def computed(batch: CountBatch, real: int) -> np.ndarray:
        found: np.ndarray = compute(batch)[:real].cpu().numpy()
        return found

    batches = CountBatches(counts, network.device).in_equal_blocks(block)
    threads = threads if counts.shape[0] > block else 1
    for _ in range(0, counts.shape[0], block * BLOCKS_AT_ONCE):
        with network.refining(refine):
            some = itertools.islice(batches, BLOCKS_AT_ONCE)
            found = in_parallel(computed, some, network.device.type == "cpu", threads)
        yield from found


def kl_per_dimension(network: DocumentNetwork, counts: scipy.sparse.csr_matrix) -> np.ndarray:
    """Information about these documents in each latent dimension, in nats per document, [K]."""
    vectors = DocumentVectors(*(torch.from_numpy(part).to(network.device) for part in posterior_of(network, counts)))
    lengths = torch.from_numpy(np.asarray(counts.sum(1)).ravel()).to(network.device)
    return network.kl_per_dimension(vectors, lengths).double().cpu().numpy()


# Held-out perplexity: the network bounds log p(X) block by block; `evaluation/perplexity.py` does the rest


def perplexity_of(network: DocumentNetwork, counts: Counts, samples: int, seed: int) -> PerplexityRecord:
    """The record for documents with at least one known word; the others are left out and counted."""
    blocks = enumerate(blocks_of(counts), seed)  # each block has its own noise
    return merge_records([_perplexity_of_block(network, block, samples, own_seed) for own_seed, block in blocks])


def bounds_per_word(network: DocumentNetwork, counts: Counts, samples: int, seed: int) -> np.ndarray:
    """log p(X) / N, or its bound, of every document, [D]; no document may be empty."""
    blocks = enumerate(blocks_of(counts), seed)  # each block has its own noise
    found = (network.evaluate(block, samples, own_seed) for own_seed, block in blocks)
    return np.concatenate([bounds.elbo / bounds.lengths for bounds in found])


def _perplexity_of_block(
    network: DocumentNetwork, counts: scipy.sparse.csr_matrix, samples: int, seed: int
) -> PerplexityRecord:
    known = counts[np.asarray(counts.sum(1)).ravel() > 0]
    if known.shape[0] == 0:
        raise InputError("no document has a word of the model's vocabulary: perplexity is not defined")
    bounds = network.evaluate(known, samples, seed)
    return perplexity_record(
        bounds.log_likelihood,
        bounds.kl,
        bounds.importance_weighted,
        known @ network.word_log_frequencies.double().cpu().numpy(),
        bounds.lengths,
        kind=network.estimate_kind.kind,
        description=network.estimate_kind.description,
        likelihood=network.likelihood,
        samples=samples if bounds.drawn is None else bounds.drawn,
        standard_errors=bounds.standard_errors,
        empty_documents=counts.shape[0] - known.shape[0],
        seed=seed,
    )


# Surprise: nats per word in excess of what documents of that length need


class LengthLine(NamedTuple):
    """expected(n) = intercept + slope log n: nats per word, by least squares on held-out documents."""

    intercept: float
    slope: float


def fit_length_line(network: DocumentNetwork, held_out: Counts, seed: int) -> LengthLine | None:
    """Fit the line; None if there is no document to fit it on."""
    counts = held_out[:LENGTH_LINE_DOCUMENTS]
    counts = counts[np.flatnonzero(counts.getnnz(1))]
    if not counts.shape[0]:
        return None
    nats, lengths = nats_per_word(network, counts, seed), np.asarray(counts.sum(1), np.float64).ravel()
    x = np.log(np.maximum(lengths, 1))
    spread = float(x.var())
    slope = float(((x - x.mean()) * (nats - nats.mean())).mean() / spread) if spread > 1e-9 else 0.0
    return LengthLine(float(nats.mean() - slope * x.mean()), slope)


def nats_per_word(
    network: DocumentNetwork, counts: scipy.sparse.csr_matrix, seed: int, known: np.ndarray | None = None
) -> np.ndarray:
    """-log p(X) / n, from the bound or a better estimate; NaN without a known word.  [D]

    `known` holds the values that were computed already.
    """
    found = np.full(counts.shape[0], np.nan) if known is None else known.copy()
    rows = np.flatnonzero((counts.getnnz(1) > 0) & np.isnan(found))
    if len(rows) >= FEW and network.has_joint_bound:
        found[rows] = described_documents(network, counts[rows], seed)[1]
    elif len(rows):  # a few documents, without filling up a block
        same = common_normal(stream(seed, "evaluation noise")) if network.has_joint_bound else nullcontext()
        with same:
            bounds = network.evaluate(counts[rows], LENGTH_LINE_SAMPLES, seed)
        found[rows] = -bounds.elbo / bounds.lengths
    return found


def surprises(nats: np.ndarray, counts: scipy.sparse.csr_matrix, line: LengthLine) -> np.ndarray:
    """-log p(X) / n - expected(n).  [D]"""
    lengths = np.asarray(counts.sum(1), np.float64).ravel()
    return np.asarray(nats - (line.intercept + line.slope * np.log(np.maximum(lengths, 1))))
