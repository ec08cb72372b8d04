"""LDA, latent Dirichlet allocation (Blei, Ng, Jordan 2003), fitted by tomotopy's collapsed Gibbs sampler.

    prior               p(theta) = Dirichlet(alpha)
    posterior           q(theta | X) = Dirichlet(gamma), gamma run to convergence
    likelihood          p(w | theta) = sum_k theta_k topic_k(w)
    KL                  of two Dirichlets, in closed form: `lda_bounds`

tomotopy (extra `lda`) is needed for fitting only. A model consists of the topics and alpha, as plain tensors.

Held-out perplexity works for any LDA with fixed topics, however it was fitted: log p(X) >= E_q[log p(X | theta)] - KL,
with the topics of single words summed out as tightly as such a q allows. Like NVDM's bound, it is a lower bound on
log p of the same words, so tools are comparable. Draws of theta from q give the importance-weighted bound, for which
p(X | theta) is exact.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence

from varitext.batches.counts import CountBatch
from varitext.errors import InputError
from varitext.models.documents.base import DocumentNetwork, DocumentObjective, DocumentVectors, Recipe
from varitext.models.documents.bounds import DocumentBounds, EstimateKind, proportion_information
from varitext.runtime.randomness import seeded, stream
from varitext.training.settings import TrainingSettings

ROUNDS = 10  # evaluations of held-out documents during a fit
UNSEEN = 1e-12  # p(word | topic) of a word that is in no training document
MAX_CHUNK = 2**20  # documents x words x topics held at once: 8 MB
ROUNDS_PER_STAGE = 10  # then converged documents are removed
TOLERANCE = 1e-4  # of convergence: the mean change of gamma over topics
MAX_STAGES = 30


class LDA(DocumentNetwork):
    """A mixture of topics per document; its vector is the mean of theta, which sums to one."""

    free_axes = False
    whole_counts = True
    estimate_kind = EstimateKind(
        "bound",
        "variational lower bound on log p(X) with the topics fixed, run to convergence: an upper bound on perplexity",
    )

    word_topics: Tensor  # [V, K]   p(word | topic)
    alpha: Tensor  # [K]

    def __init__(self, vocabulary_size: int, latent_dim: int = 50, alpha: float = 0.1, eta: float = 0.6):
        super().__init__(vocabulary_size, latent_dim)
        self.first_alpha, self.eta = alpha, eta
        start = torch.full((vocabulary_size, latent_dim), 1 / vocabulary_size, dtype=torch.double)
        self.register_buffer("word_topics", start)
        self.register_buffer("alpha", torch.full((latent_dim,), alpha, dtype=torch.double))

    def fit_without_gradients(self, train: scipy.sparse.csr_matrix, settings: TrainingSettings) -> Iterator[float]:
        """`epochs` passes of Gibbs sampling over all words; also learns alpha."""
        sampler = _sampler(train, self.latent_dim, self.first_alpha, self.eta, settings.seed)
        done = 0
        for part in range(1, ROUNDS + 1):
            iterations = round(settings.epochs * part / ROUNDS) - done
            if not iterations:
                continue
            sampler.train(iterations, workers=1)  # several workers are not reproducible
            done += iterations
            self._take(sampler)
            yield done / settings.epochs

    def _take(self, sampler: Any) -> None:
        columns = torch.tensor([int(word) for word in sampler.used_vocabs])
        topics = np.stack([sampler.get_topic_word_dist(topic) for topic in range(self.latent_dim)], 1)  # [seen, K]
        self.word_topics.fill_(UNSEEN)
        self.word_topics[columns] = torch.from_numpy(topics).double().to(self.alpha.device)
        self.word_topics /= self.word_topics.sum(0)
        self.alpha.copy_(torch.from_numpy(np.asarray(sampler.alpha, np.float64)))

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        with seeded(stream(seed, "evaluation noise"), self.alpha.device):
            return lda_bounds(TopicPrior(self.word_topics, self.alpha), counts, samples)

    @torch.no_grad()
    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """Mean and standard deviation of q(theta | X); those of the prior for a document without words."""
        gamma = infer_topics(TopicPrior(self.word_topics, self.alpha), _rows(batch))
        total = gamma.sum(1, keepdim=True)
        mean = gamma / total
        return DocumentVectors(mean.float(), (mean * (1 - mean) / (total + 1)).sqrt().float())

    def completion_log_likelihood(self, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
        """sum_w count_w log E_q[p(w | theta)], q given the observed words; linear in theta, so it needs no draws."""
        shares = self.document_vectors(observed).mean.double()  # [B, K]
        words = (shares[hidden.documents] * self.word_topics[hidden.words]).sum(1).log()  # [n]
        return words.new_zeros(len(hidden)).index_add_(0, hidden.documents, hidden.counts * words)  # [B]

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return proportion_information(vectors.mean)

    def word_directions(self) -> Tensor:
        return self.word_topics.float()

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        return Recipe({"alpha": 0.1, "eta": 0.6}, TrainingSettings(epochs=1000), DocumentObjective())


def _rows(batch: CountBatch) -> scipy.sparse.csr_matrix:
    starts = np.append(batch.starts.cpu().numpy(), len(batch.words))
    entries = (batch.counts.cpu().numpy(), batch.words.cpu().numpy(), starts)
    return scipy.sparse.csr_matrix(entries, shape=(len(batch), batch.vocabulary_size))


def _sampler(train: scipy.sparse.csr_matrix, topics: int, alpha: float, eta: float, seed: int) -> Any:
    try:
        import tomotopy
    except ImportError:
        raise InputError("lda is fitted by tomotopy, which is not installed: pip install 'varitext[lda]'") from None
    sampler = tomotopy.LDAModel(k=topics, alpha=alpha, eta=eta, seed=seed)
    names = np.arange(train.shape[1]).astype(str)
    for row in range(train.shape[0]):
        start, end = train.indptr[row : row + 2]
        counts = np.rint(train.data[start:end]).astype(int)
        sampler.add_doc(np.repeat(names[train.indices[start:end]], counts).tolist())
    return sampler


# The bound


class TopicPrior(NamedTuple):
    """A fitted LDA, however it was fitted."""

    word_topics: Tensor  # [V, K]   p(word | topic): columns sum to one
    alpha: Tensor  # [K]   of the Dirichlet prior of topics in a document


class Chunk(NamedTuple):
    """Some documents, padded to the largest number of distinct words."""

    documents: np.ndarray  # [B]   their numbers
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
def lda_bounds(model: TopicPrior, counts: scipy.sparse.csr_matrix, samples: int = 0) -> DocumentBounds:
    """Both bounds of every document; the importance-weighted one from `samples` draws of theta."""
    found = np.zeros((3, counts.shape[0]))
    for chunk in _chunks(model, counts):
        gamma = _converged(chunk, model.alpha)
        log_likelihood = chunk.log_likelihood(_expected_log(gamma).exp())
        divergence = kl_divergence(Dirichlet(gamma), Dirichlet(model.alpha.expand_as(gamma)))
        tighter = _importance_weighted(chunk, model.alpha, gamma, samples) if samples else log_likelihood - divergence
        found[:, chunk.documents] = torch.stack([log_likelihood, divergence, tighter]).cpu().numpy()
    lengths = np.asarray(counts.sum(1), np.float64).ravel()
    # the KL has no parts per topic that add up, because theta sums to one
    return DocumentBounds(found[0], found[1], found[2], lengths, np.zeros(len(model.alpha)))


@torch.no_grad()
def infer_topics(model: TopicPrior, counts: scipy.sparse.csr_matrix) -> Tensor:
    """gamma of q(theta) = Dirichlet(gamma) of every document, [D, K]; alpha for a document without words."""
    gamma = model.alpha.repeat(counts.shape[0], 1)
    for chunk in _chunks(model, counts):
        gamma[torch.from_numpy(chunk.documents).to(gamma.device)] = _converged(chunk, model.alpha)
    return gamma


def _chunks(model: TopicPrior, counts: scipy.sparse.csr_matrix) -> Iterator[Chunk]:
    """Split documents into chunks with similar numbers of distinct words."""
    sizes = np.diff(counts.indptr)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    while len(order):
        # the largest first: a chunk is as wide as its largest document, and takes as many as fit
        width = sizes[order[-1]]
        taken = max(1, MAX_CHUNK // (width * len(model.alpha)))
        yield _chunk(model, counts, order[-taken:], width)
        order = order[:-taken]


def _chunk(model: TopicPrior, counts: scipy.sparse.csr_matrix, documents: np.ndarray, width: int) -> Chunk:
    rows = counts[documents]
    sizes = np.diff(rows.indptr)
    running = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # 0, 1, ... in each document
    place = (np.repeat(np.arange(len(documents)), sizes), running)
    words = np.zeros((len(documents), width), np.int64)
    padded = np.zeros((len(documents), width))
    words[place], padded[place] = rows.indices, rows.data
    device = model.alpha.device
    return Chunk(documents, model.word_topics[torch.from_numpy(words).to(device)], torch.from_numpy(padded).to(device))


def _converged(chunk: Chunk, alpha: Tensor) -> Tensor:
    """gamma of the chunk's documents, [B, K]."""
    gamma = alpha + chunk.counts.sum(1, keepdim=True) / len(alpha)
    moving = torch.arange(len(gamma), device=gamma.device)
    for _ in range(MAX_STAGES):
        now, still = gamma[moving], Chunk(chunk.documents, chunk.topics[moving], chunk.counts[moving])
        for _ in range(ROUNDS_PER_STAGE):
            weights = _expected_log(now).exp()
            shares = still.counts / still.mixed(weights)  # [B, n]
            before, now = now, alpha + weights * (shares[:, None, :] @ still.topics)[:, 0]
        gamma[moving] = now
        moving = moving[(now - before).abs().mean(1) >= TOLERANCE]
        if not len(moving):
            break
    return gamma


def _expected_log(gamma: Tensor) -> Tensor:
    return torch.digamma(gamma) - torch.digamma(gamma.sum(1, keepdim=True))  # [B, K]   E_q[log theta]


def _importance_weighted(chunk: Chunk, alpha: Tensor, gamma: Tensor, samples: int) -> Tensor:
    q = Dirichlet(gamma)
    theta = q.sample((samples,)).clamp(min=torch.finfo(gamma.dtype).tiny)  # [S, B, K]   a draw may round to zero
    log_likelihood = chunk.log_likelihood(theta.permute(1, 2, 0)).T  # [S, B]
    prior, posterior = (one.log_prob(theta) for one in (Dirichlet(alpha), q))  # type: ignore[no-untyped-call]  # torch has no types there
    log_weights: Tensor = log_likelihood + prior - posterior
    return log_weights.logsumexp(0) - math.log(samples)  # [B]
