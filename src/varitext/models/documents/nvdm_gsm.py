"""The Gaussian softmax topic model (GSM, Miao et al. 2017): topic proportions are the softmax of a Gaussian h.

    prior               p(h) = N(0, I)
    posterior           q(h | X) = N(mean(X), diag(std(X)^2)), the inference network
    likelihood          p(X | h) = prod_i sum_k theta_k beta_{k, x_i},  theta = softmax(W h + c),  beta_k = softmax(B_k)
    KL                  KL(q(h | X) || N(0, I)), closed form: `latent/gaussian.py::diagonal_gaussian_kl`

A document is a mixture of topics, as in LDA; its vector is theta.

A topic that explains no document better than the others gets neither proportions nor gradients. From random topics all
but a few therefore die in the first epochs (component collapse). So topics are initialized as clusters of the training
documents, W at the identity, and the inference network `statistics` corrects an estimate that follows the topics from
the first step: the proportions by one step of EM from softmax(c), and the log of the document's length. `words` is the
MLP on the log counts of all words, as in NVDM.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.corpora.sharded_counts import Counts, some_rows
from varitext.errors import InputError
from varitext.latent import DiagonalGaussian
from varitext.layers.counts import CountEncoder, centred_log_length, multinomial_log_likelihood, sparse_times_dense
from varitext.layers.dense import MLP, GaussianHead
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Recipe,
    training_schedule,
)
from varitext.models.documents.bounds import proportion_information

PRIOR_WORDS = 10.0  # that softmax(c) counts for in the estimate of a document's proportions
DOCUMENTS = 20_000  # largest sample that is clustered
DIMENSIONS = 50  # of the space in which documents are clustered
UNIGRAM_SHARE = 0.1  # of the unigram model in every initial topic: no word is excluded from any


class Encoding(NamedTuple):
    hidden: Tensor  # [B, H]
    start: Tensor  # [B, K]   corrected by the inference network; 0 for `words`
    batch: CountBatch


class GSM(DocumentNetwork):
    """A topic model whose proportions are the softmax of a Gaussian h."""

    free_axes = False  # the axes are the topics

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        inference: str = "words",
        hidden_dim: int = 256,
        hidden_layers: int = 2,
        activation: str = "silu",
        estimator: str = "reparameterised",
    ):
        super().__init__(vocabulary_size, latent_dim, estimator)
        if inference not in ("words", "statistics"):
            raise InputError(f"inference is 'words' or 'statistics', not {inference!r}")
        self.inference = inference
        self.head = GaussianHead(hidden_dim, latent_dim)
        self.encoder: CountEncoder | MLP
        if inference == "words":
            self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation)
        else:
            self.encoder = MLP(latent_dim + 1, hidden_dim, hidden_layers, activation)
            nn.init.zeros_(self.head.mean.weight)  # no correction yet
        self.to_topics = nn.Linear(latent_dim, latent_dim)  # W, c
        nn.init.eye_(self.to_topics.weight)
        nn.init.zeros_(self.to_topics.bias)
        self.topic_logits = nn.Parameter(0.3 * torch.randn(latent_dim, vocabulary_size))  # B

    def initialize_from_frequencies(self) -> None:
        with torch.no_grad():
            self.topic_logits.add_(self.word_log_frequencies)

    def learn_cooccurrence(self, counts: Counts) -> None:
        """Initialize topics as clusters of documents; topics without a cluster stay random."""
        topics = torch.from_numpy(cluster_topics(counts, self.latent_dim))  # [T, V]
        unigram = self.word_log_frequencies.double().exp()
        with torch.no_grad():
            self.topic_logits[: len(topics)] = torch.lerp(topics, unigram, UNIGRAM_SHARE).log().to(self.topic_logits)

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        if self.inference == "words":
            hidden = self.encoder(batch)
            return Encoding(hidden, hidden.new_zeros(()), batch)
        start = self.estimate(batch)
        return Encoding(self.encoder(torch.cat([start, centred_log_length(batch)[:, None]], 1)), start, batch)

    @torch.no_grad()
    def estimate(self, batch: CountBatch) -> Tensor:
        """h at which theta is the estimate by one step of EM, if W is the identity, [B, K].

        No gradient runs through it: topics are learned from the likelihood alone, and the bound holds for any q.
        """
        log_prior = torch.log_softmax(self.to_topics.bias, 0)
        of_words = torch.softmax(torch.log_softmax(self.topic_logits, -1).T + log_prior, 1)  # [V, K]   p(k | w)
        expected = sparse_times_dense(batch, batch.counts, of_words) + PRIOR_WORDS * log_prior.exp()  # [B, K]
        log_ratio = expected.log() - log_prior
        return log_ratio - log_ratio.mean(1, keepdim=True)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return DiagonalGaussian.standard(encoding.hidden.new_empty(len(encoding.hidden), self.latent_dim))

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        correction = self.head(encoding.hidden)
        return DiagonalGaussian(encoding.start + correction.mean, correction.log_std).within_bounds()

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        # log probabilities are logits that are already normalised
        return multinomial_log_likelihood(self.word_log_probabilities(h), encoding.batch)  # [S, B]

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of every word; softmax leaves every beta_kv above zero."""
        shares = torch.softmax(self.to_topics(h), -1)  # [S, B, K]
        return (shares @ torch.softmax(self.topic_logits, -1)).log()  # [S, B, V]

    # Vectors and training

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """theta at the mean of h, with its standard deviation to first order.

        d theta_k / dh = theta_k (W_k - sum_j theta_j W_j)
        """
        encoding = self.encode(batch)
        known = (batch.lengths > 0)[:, None]
        q, p = self.posterior(encoding), self.prior(encoding)
        mean, std = torch.where(known, q.mean, p.mean), torch.where(known, q.std, p.std)
        weights = self.to_topics.weight  # [K, K]
        shares = torch.softmax(self.to_topics(mean), -1)  # [B, K]
        slopes = shares[:, :, None] * (weights - (shares @ weights)[:, None, :])  # [B, K, K]
        return DocumentVectors(shares, (slopes * std[:, None, :]).norm(dim=-1))

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return proportion_information(vectors.mean)

    def word_directions(self) -> Tensor:
        """log beta_kw - log p(w): the log lift of each word in each topic."""
        return (torch.log_softmax(self.topic_logits, -1) - self.word_log_frequencies).T  # [V, K]

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """The only preset; this model is not in the paper."""
        training = training_schedule(documents, 5e-3, passes=30)
        return Recipe({"inference": "statistics"}, training, DocumentObjective(length_exponent=0.7))


def cluster_topics(counts: Counts, topics: int) -> np.ndarray:
    """Word distributions of clusters of documents, [T, V]: k-means on tf-idf weights in a low-rank space.

    There are at most `topics` clusters; documents of N words are weighted by 1 / sqrt(N).
    """
    rows = scipy.sparse.csr_matrix(counts[some_rows(np.random.default_rng(0), counts.shape[0], DOCUMENTS)], dtype=float)
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(rows)
    left, scales, _ = randomized_svd(weights, min(DIMENSIONS, *weights.shape), random_state=0)
    vectors = normalize(left * scales)
    number = min(topics, len(np.unique(vectors.round(6), axis=0)))
    cluster = KMeans(number, n_init=1, random_state=0).fit_predict(vectors)
    lengths = np.maximum(np.asarray(rows.sum(1)).ravel(), 1)
    members = scipy.sparse.csr_matrix((lengths**-0.5, (cluster, np.arange(len(cluster)))), (number, len(cluster)))
    summed = (members @ rows).toarray()
    return np.asarray(summed / summed.sum(1, keepdims=True))
