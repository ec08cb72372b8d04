"""From counts to q(h | X) of every document, a block at a time, whichever network it is."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch

from varitext.batches.counts import CountBatches
from varitext.corpora.sharded_counts import Counts
from varitext.models.documents.base import DocumentNetwork, DocumentVectors
from varitext.runtime.threads import running_on

BLOCK = 256  # documents per matrix product when encoding; fixed, so that results do not depend on the batch


class Posterior(NamedTuple):
    """Mean and standard deviation of q(h | X); the latter is 0 for a model with a point estimate of h."""

    mean: np.ndarray  # [D, K]
    std: np.ndarray  # [D, K]


def posterior_blocks(
    network: DocumentNetwork, counts: Counts, block: int = BLOCK, refine: bool = True, threads: int | None = None
) -> Iterator[Posterior]:
    for batch, real in CountBatches(counts, network.device).in_equal_blocks(block):
        with running_on(threads), torch.no_grad(), network.refining(refine):
            vectors = torch.stack(network.document_vectors(batch))[:, :real].cpu().numpy()
        yield Posterior(*vectors)


def posterior_of(
    network: DocumentNetwork, counts: Counts, block: int = BLOCK, refine: bool = True, threads: int | None = None
) -> Posterior:
    blocks = list(posterior_blocks(network, counts, block, refine, threads))
    if not blocks:
        return Posterior(*np.zeros((2, 0, network.vector_dim), np.float32))
    return Posterior(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def kl_per_dimension(network: DocumentNetwork, counts: scipy.sparse.csr_matrix) -> np.ndarray:
    """How much each dimension of the vectors says about these documents, in nats per document, [K]."""
    vectors = DocumentVectors(*(torch.from_numpy(part).to(network.device) for part in posterior_of(network, counts)))
    lengths = torch.from_numpy(np.asarray(counts.sum(1)).ravel()).to(network.device)
    return network.kl_per_unit(vectors, lengths).double().cpu().numpy()
