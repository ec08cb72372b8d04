"""The Gaussian softmax topic model (GSM, Miao et al. 2017): topic proportions are the softmax of a Gaussian h.

    prior               p(h) = N(0, I)
    posterior           q(h | X) = N(mean(X), diag(std(X)^2)), the inference network of NVDM's paper preset
    likelihood          p(X | h) = prod_i sum_k theta_k beta_{k, x_i},  theta = softmax(W h + c),  beta_k = softmax(B_k)
    KL                  KL(q(h | X) || N(0, I)), closed form: `latent/gaussian.py::diagonal_gaussian_kl`

A document is a mixture of topics, as in LDA; its vector is theta.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import DiagonalGaussian
from varitext.layers.counts import CountEncoder, multinomial_log_likelihood
from varitext.layers.dense import GaussianHead
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Encoding,
    Recipe,
    training_schedule,
)
from varitext.models.documents.bounds import proportion_information


class GSM(DocumentNetwork):
    """A topic model whose proportions are the softmax of a Gaussian h."""

    free_axes = False  # the axes are the topics

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        hidden_dim: int = 256,
        hidden_layers: int = 2,
        activation: str = "silu",
        estimator: str = "reparameterised",
    ):
        super().__init__(vocabulary_size, latent_dim, estimator)
        self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation)
        self.head = GaussianHead(hidden_dim, latent_dim)
        self.to_topics = nn.Linear(latent_dim, latent_dim)  # W, c
        self.topic_logits = nn.Parameter(0.3 * torch.randn(latent_dim, vocabulary_size))  # B
        nn.init.orthogonal_(self.to_topics.weight, gain=2.0)  # proportions differ between documents at initialization

    def initialize_from_frequencies(self) -> None:
        with torch.no_grad():
            self.topic_logits.add_(self.word_log_frequencies)

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        return Encoding(self.encoder(batch), batch)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return DiagonalGaussian.standard(encoding.hidden.new_empty(len(encoding.hidden), self.latent_dim))

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        q: DiagonalGaussian = self.head(encoding.hidden)
        return q

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
        return Recipe({}, training_schedule(documents, 3e-3), DocumentObjective(length_exponent=0.7))
