"""From counts to q(h | X) of every document, a block at a time, whichever network it is.

A block is the work of one thread, and threads take blocks in turn: no operation on a block is large enough to share.
What a document gets then depends neither on its neighbours nor on the number of threads.
"""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch, CountBatches
from varitext.corpora.sharded_counts import Counts
from varitext.models.documents.base import DocumentNetwork, DocumentVectors
from varitext.runtime.devices import running_on, workers

BLOCK = 256  # documents per matrix product when encoding; fixed, so that results do not depend on the batch
BLOCKS_AT_ONCE = 64  # that are handed to threads before any is handed on


class Posterior(NamedTuple):
    """Mean and standard deviation of q(h | X); the latter is 0 for a model with a point estimate of h."""

    mean: np.ndarray  # [D, K]
    std: np.ndarray  # [D, K]


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
    """The means alone, which a model may have for less."""
    return _blocks(network, network.document_means, counts, block, refine, threads)


def posterior_of(
    network: DocumentNetwork, counts: Counts, block: int = BLOCK, refine: bool = True, threads: int | None = None
) -> Posterior:
    blocks = list(posterior_blocks(network, counts, block, refine, threads))
    if not blocks:
        return Posterior(*np.zeros((2, 0, network.vector_dim), np.float32))
    return Posterior(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


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
        with running_on(threads, parallel_jobs=network.device.type == "cpu"), network.refining(refine):
            some, pool = itertools.islice(batches, BLOCKS_AT_ONCE), workers()
            if pool is None:
                found = [computed(*each) for each in some]
            else:  # this thread makes batches meanwhile
                jobs: list[Future[np.ndarray]] = [pool.submit(computed, *each) for each in some]
                found = [job.result() for job in jobs]
        yield from found


def kl_per_dimension(network: DocumentNetwork, counts: scipy.sparse.csr_matrix) -> np.ndarray:
    """How much each dimension of the vectors says about these documents, in nats per document, [K]."""
    vectors = DocumentVectors(*(torch.from_numpy(part).to(network.device) for part in posterior_of(network, counts)))
    lengths = torch.from_numpy(np.asarray(counts.sum(1)).ravel()).to(network.device)
    return network.kl_per_dimension(vectors, lengths).double().cpu().numpy()
