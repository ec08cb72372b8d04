"""NVDM with K categorical latents of C values each.

    prior               p(h) = prod_k Categorical(softmax(c_k)), c learned
    posterior           q(h | X) = prod_k Categorical(softmax(a_k(X))), the inference network
    likelihood          p(X | h) = prod_i softmax(sum_k R_{k, h_k} + b)_{x_i}
    KL                  closed form: `latent/discrete.py::categorical_kl`

`latent_dim` is K. A document's vector is the K C probabilities of q.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import Categoricals
from varitext.layers.counts import CountEncoder, multinomial_log_likelihood
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Encoding,
    Recipe,
    training_schedule,
)
from varitext.models.documents.bounds import bernoulli_kl_per_dimension


class NVDMCategorical(DocumentNetwork):
    """NVDM with K categorical latents of C values."""

    free_axes = False

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        values: int = 4,
        estimator: str = "leave_one_out",
        hidden_dim: int = 256,
        hidden_layers: int = 2,
        activation: str = "silu",
    ):
        super().__init__(vocabulary_size, latent_dim, estimator)
        self.values = values  # C
        self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation)
        self.head = nn.Linear(hidden_dim, latent_dim * values)
        self.prior_logits = nn.Parameter(torch.zeros(latent_dim, values))  # c
        self.decoder = nn.Linear(latent_dim * values, vocabulary_size)
        nn.init.normal_(self.decoder.weight, std=0.05)

    @property
    def vector_dim(self) -> int:
        return self.latent_dim * self.values

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        return Encoding(self.encoder(batch), batch)

    def prior(self, encoding: Encoding) -> Categoricals:
        return Categoricals(self.prior_logits.expand(len(encoding.batch), -1, -1))

    def posterior(self, encoding: Encoding) -> Categoricals:
        return Categoricals(self.head(encoding.hidden).unflatten(-1, (self.latent_dim, self.values)))  # [B, K, C]

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return multinomial_log_likelihood(self.decoder(h.flatten(-2)), encoding.batch)  # [S, B]

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        return torch.log_softmax(self.decoder(h.flatten(-2)), -1)  # [S, B, V]

    # Vectors and training

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """The probability of every value of every latent; the prior's for a document without words."""
        encoding = self.encode(batch)
        known = (batch.lengths > 0)[:, None]
        q, p = (each(encoding).probabilities.flatten(1) for each in (self.posterior, self.prior))  # [B, K C]
        probabilities = torch.where(known, q, p)
        return DocumentVectors(probabilities, (probabilities * (1 - probabilities)).sqrt())

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        """Each value counts as a Bernoulli unit."""
        return bernoulli_kl_per_dimension(vectors.mean)

    def linear_decoder(self) -> nn.Linear:
        return self.decoder

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()
        yield from self.estimator.parameters()

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """The only preset; this model is not in the paper."""
        settings = training_schedule(documents, 3e-3, samples=4)
        return Recipe({"estimator": "leave_one_out"}, settings, DocumentObjective(length_exponent=0.7))
