"""Held-out perplexity of any LDA: the variational bound of each document with the topics held fixed, and a tighter one.

    q(theta) = Dirichlet(gamma),    log p(X) >= E_q[log p(X | theta)] - KL(q || Dirichlet(alpha))

with the topics of single words summed out in the best way that such a q allows (Blei, Ng, Jordan 2003), and gamma run
to convergence. The result is of the same kind as NVDM's, a lower bound on log p of the same words, so tools compare.
Draws of theta from q give the importance-weighted bound, for which p(X | theta) is exact.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence

MAX_CHUNK = 2**20  # documents x words x topics held at once: 8 MB
ROUNDS_PER_STAGE = 10  # after which documents that have converged leave
TOLERANCE = 1e-4  # converged: gamma moves by less than this, on average over topics
MAX_STAGES = 30


class TopicPrior(NamedTuple):
    """A fitted LDA, whatever fitted it."""

    word_topics: Tensor  # [V, K]   p(word | topic): columns sum to one
    alpha: Tensor  # [K]   of the Dirichlet prior of topics in a document


class LDABounds(NamedTuple):
    """One value per document, in nats."""

    log_likelihood: np.ndarray  # [D]   E_q[log p(X | theta)], bounded
    kl: np.ndarray  # [D]
    importance_weighted: np.ndarray  # [D]   without draws, the bound again

    @property
    def elbo(self) -> np.ndarray:
        return np.asarray(self.log_likelihood - self.kl)


class Chunk(NamedTuple):
    """Some documents side by side, padded to the most distinct words."""

    documents: np.ndarray  # [B]   which ones
    topics: Tensor  # [B, n, K]   p(word | topic) of their words
    counts: Tensor  # [B, n]   zero where padded

    def mixed(self, weights: Tensor) -> Tensor:
        """sum_k weight_k p(word | k); weights are [B, K] or [B, K, S]."""
        return self.topics @ weights if weights.ndim == 3 else (self.topics @ weights[:, :, None])[:, :, 0]

    def log_likelihood(self, weights: Tensor) -> Tensor:
        logs = self.mixed(weights).log()
        return torch.einsum("bn,bn...->b...", self.counts, logs)


def lda_document_bounds(counts: scipy.sparse.csr_matrix, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The bound of every document. `topics` is [K, V], rows summing to one; `alpha` is [K]."""
    word_topics = torch.from_numpy(np.ascontiguousarray(topics.T, np.float64))
    return lda_bounds(TopicPrior(word_topics, torch.from_numpy(np.asarray(alpha, np.float64))), counts).elbo


@torch.no_grad()
def lda_bounds(model: TopicPrior, counts: scipy.sparse.csr_matrix, samples: int = 0) -> LDABounds:
    """Both bounds of every document; the second from `samples` draws of theta."""
    found = np.zeros((3, counts.shape[0]))
    for chunk in _chunks(model, counts):
        gamma = _converged(chunk, model.alpha)
        log_likelihood = chunk.log_likelihood(_expected_log(gamma).exp())
        kl = kl_divergence(Dirichlet(gamma), Dirichlet(model.alpha.expand_as(gamma)))
        tighter = _importance_weighted(chunk, model.alpha, gamma, samples) if samples else log_likelihood - kl
        found[:, chunk.documents] = torch.stack([log_likelihood, kl, tighter]).cpu().numpy()
    return LDABounds(*found)


@torch.no_grad()
def infer_topics(model: TopicPrior, counts: scipy.sparse.csr_matrix) -> Tensor:
    """gamma of q(theta) = Dirichlet(gamma) of every document, [D, K]; the prior's alpha for one without words."""
    gamma = model.alpha.repeat(counts.shape[0], 1)
    for chunk in _chunks(model, counts):
        gamma[torch.from_numpy(chunk.documents).to(gamma.device)] = _converged(chunk, model.alpha)
    return gamma


def _chunks(model: TopicPrior, counts: scipy.sparse.csr_matrix) -> Iterator[Chunk]:
    """Documents with about as many distinct words go together."""
    sizes = np.diff(counts.indptr)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    while len(order):
        # the largest first: the chunk is as wide as that one, and takes as many as fit
        width = sizes[order[-1]]
        taken = max(1, MAX_CHUNK // (width * len(model.alpha)))
        yield _chunk(model, counts, order[-taken:], width)
        order = order[:-taken]


def _chunk(model: TopicPrior, counts: scipy.sparse.csr_matrix, documents: np.ndarray, width: int) -> Chunk:
    rows = counts[documents]
    place = (np.repeat(np.arange(len(documents)), np.diff(rows.indptr)), _running_numbers(np.diff(rows.indptr)))
    words = np.zeros((len(documents), width), np.int64)
    padded = np.zeros((len(documents), width))
    words[place], padded[place] = rows.indices, rows.data
    device = model.alpha.device
    return Chunk(documents, model.word_topics[torch.from_numpy(words).to(device)], torch.from_numpy(padded).to(device))


def _running_numbers(sizes: np.ndarray) -> np.ndarray:
    """0, 1, .. for each size, one after another."""
    return np.asarray(np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes))


def _converged(chunk: Chunk, alpha: Tensor) -> Tensor:
    """gamma of the chunk's documents, [B, K]."""
    gamma = alpha + chunk.counts.sum(1, keepdim=True) / len(alpha)
    moving = torch.arange(len(gamma), device=gamma.device)
    for _ in range(MAX_STAGES):
        now, still = gamma[moving], Chunk(chunk.documents, chunk.topics[moving], chunk.counts[moving])
        for _ in range(ROUNDS_PER_STAGE):
            before, now = now, _update(still, alpha, now)
        gamma[moving] = now
        moving = moving[(now - before).abs().mean(1) >= TOLERANCE]
        if not len(moving):
            break
    return gamma


def _update(chunk: Chunk, alpha: Tensor, gamma: Tensor) -> Tensor:
    weights = _expected_log(gamma).exp()
    shares = chunk.counts / chunk.mixed(weights)  # [B, n]
    return alpha + weights * (shares[:, None, :] @ chunk.topics)[:, 0]


def _expected_log(gamma: Tensor) -> Tensor:
    return torch.digamma(gamma) - torch.digamma(gamma.sum(1, keepdim=True))  # [B, K]   E_q[log theta]


def _importance_weighted(chunk: Chunk, alpha: Tensor, gamma: Tensor, samples: int) -> Tensor:
    q = Dirichlet(gamma)
    theta = q.sample((samples,)).clamp(min=torch.finfo(gamma.dtype).tiny)  # [S, B, K]   a draw may round to zero
    log_likelihood = chunk.log_likelihood(theta.permute(1, 2, 0)).T  # [S, B]
    prior, posterior = (one.log_prob(theta) for one in (Dirichlet(alpha), q))  # type: ignore[no-untyped-call]  # torch has no types there
    log_weights: Tensor = log_likelihood + prior - posterior
    return log_weights.logsumexp(0) - math.log(samples)  # [B]
