"""LDA, latent Dirichlet allocation (Blei, Ng, Jordan 2003), fitted by tomotopy's collapsed Gibbs sampler.

    prior               p(theta) = Dirichlet(alpha)
    generative model    p(w | theta) = sum_k theta_k topic_k(w)
    posterior           q(theta | X) = Dirichlet(gamma), gamma run to convergence; the KL is that of two Dirichlets:
                        `lda_bound.py::lda_bounds`

tomotopy (extra `lda`) is needed to fit only. What is kept are the topics and alpha, as plain tensors; documents are
inferred and evaluated by our own variational bound with the topics fixed (`lda_bound.py`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch
from varitext.errors import InputError
from varitext.models.documents.base import DocumentNetwork, DocumentVectors
from varitext.models.documents.bounds import DocumentBounds, EstimateKind
from varitext.models.documents.information import proportion_information
from varitext.models.documents.lda_bound import TopicPrior, infer_topics, lda_bounds
from varitext.models.documents.recipe import DocumentObjective, Recipe
from varitext.runtime.randomness import seeded, stream
from varitext.training.settings import TrainingSettings

ROUNDS = 10  # how often the held-out documents are looked at
UNSEEN = 1e-12  # p(word | topic) of a word that no training document has


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
        """Gibbs sampling, `epochs` times through all words; alpha is learned on the way."""
        sampler = _sampler(train, self.latent_dim, self.first_alpha, self.eta, settings.seed)
        done = 0
        for part in range(1, ROUNDS + 1):
            iterations = round(settings.epochs * part / ROUNDS) - done
            if not iterations:
                continue
            sampler.train(iterations, workers=1)  # more workers: not the same topics twice
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
            bounds = lda_bounds(self._topic_prior(), counts, samples)
        lengths = np.asarray(counts.sum(1), np.float64).ravel()
        # one KL for all topics together: theta sums to one, so it has no parts that would add up
        return DocumentBounds(*bounds, lengths, np.zeros(self.latent_dim))

    @torch.no_grad()
    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """Mean and std of q(theta | X); those of the prior for a document of no words."""
        gamma = infer_topics(self._topic_prior(), _rows(batch))
        total = gamma.sum(1, keepdim=True)
        mean = gamma / total
        return DocumentVectors(mean.float(), (mean * (1 - mean) / (total + 1)).sqrt().float())

    def completion_log_likelihood(self, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
        """sum_w count_w log E_q[p(w | theta)] with q given the observed words: linear in theta, so nothing is drawn."""
        shares = self.document_vectors(observed).mean.double()  # [B, K]
        words = (shares[hidden.documents] * self.word_topics[hidden.words]).sum(1).log()  # [n]
        return words.new_zeros(len(hidden)).index_add_(0, hidden.documents, hidden.counts * words)  # [B]

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return proportion_information(vectors.mean)

    def word_directions(self) -> Tensor:
        return self.word_topics.float()

    def _topic_prior(self) -> TopicPrior:
        return TopicPrior(self.word_topics, self.alpha)

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
