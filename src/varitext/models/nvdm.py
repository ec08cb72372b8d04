"""NVDM, the neural variational document model (paper, section 3 and appendix B.1).

    inference network   q(h | X) = N(mean(X), diag(std(X)^2))
    prior               p(h) = N(0, I)
    generative model    p(X | h) = prod_i softmax(h^T R + b)_{x_i}

Two inference networks share the generative model. `words` is the paper's, an MLP on the counts of all words.
`statistics` uses what the generative model itself says about the posterior:

    log p(h | X) = h^T (R X) - N log sum_w exp(h^T R_w + b_w) - |h|^2 / 2 + constant

A document enters only through R X and its length N: they are sufficient statistics. So the network reads those K + 1
numbers instead of V counts, starts from one Newton step on this formula, and learns the correction. It has no weight
of its own for any word, hence cannot learn rare words' quirks by heart, and costs the same for any vocabulary.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches import CountBatch
from varitext.document_task import DocumentObjective, Recipe
from varitext.errors import InputError
from varitext.latent import DiagonalGaussian
from varitext.latent.gaussian import LOG_STD_RANGE
from varitext.layers import (
    MLP,
    CountEncoder,
    GaussianHead,
    centred_log_length,
    multinomial_log_likelihood,
    sparse_times_dense,
)
from varitext.training import TrainingSettings


class Encoding(NamedTuple):
    hidden: Tensor  # [B, H]   pi of the paper
    start: DiagonalGaussian  # [B, K]   what the inference network corrects; the prior for `words`
    batch: CountBatch


class NVDM(nn.Module):
    """A variational auto-encoder of bags of words; each latent dimension is a topic."""

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        inference: str = "words",
        hidden_dim: int = 500,
        hidden_layers: int = 2,
        activation: str = "relu",
    ):
        super().__init__()
        if inference not in ("words", "statistics"):
            raise InputError(f"inference is 'words' or 'statistics', not {inference!r}")
        self.inference = inference
        self.decoder = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.decoder.weight, std=0.05)
        if inference == "words":
            self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation)
        else:
            self.encoder = MLP(latent_dim + 1, hidden_dim, hidden_layers, activation)
        self.head = GaussianHead(hidden_dim, latent_dim)
        self.register_buffer("word_log_frequencies", torch.zeros(vocabulary_size))

    def start_from(self, word_counts: Tensor) -> None:
        """Start at the unigram model (add-one): h only has to learn what differs between documents."""
        smoothed = word_counts.to(torch.float64) + 1
        self.word_log_frequencies.copy_((smoothed / smoothed.sum()).log())
        with torch.no_grad():
            self.decoder.bias.copy_(self.word_log_frequencies)

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        if self.inference == "words":
            hidden = self.encoder(batch)
            return Encoding(hidden, self._standard(hidden), batch)
        start = self.newton_step(batch)
        return Encoding(self.encoder(torch.cat([start.mean, centred_log_length(batch)[:, None]], 1)), start, batch)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return self._standard(encoding.hidden)

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        correction, start = self.head(encoding.hidden), encoding.start
        log_std = (start.log_std + correction.log_std).clamp(*LOG_STD_RANGE)
        return DiagonalGaussian(start.mean + correction.mean, log_std)

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return multinomial_log_likelihood(self.decoder(h), encoding.batch)  # [S, B]

    @torch.no_grad()
    def newton_step(self, batch: CountBatch) -> DiagonalGaussian:
        """From h = 0, gradient over curvature of log p(h | X), each dimension by itself; and the spread there.

        No gradient runs through it: R is learned from the words it has to explain, and the bound stays a bound
        whatever the inference network does.
        """
        word_vectors, frequencies = self.decoder.weight, torch.softmax(self.decoder.bias, 0)
        expected = frequencies @ word_vectors  # [K]   E[R_w] under the model at h = 0
        variance = (frequencies @ word_vectors.square() - expected.square()).clamp(min=0)  # [K]
        lengths = batch.lengths[:, None]
        gradient = sparse_times_dense(batch, batch.counts, word_vectors) - lengths * expected  # [B, K]
        precision = 1 + lengths * variance
        return DiagonalGaussian((gradient / precision).clamp(-10, 10), -0.5 * precision.log())

    def _standard(self, like: Tensor) -> DiagonalGaussian:
        return DiagonalGaussian.standard(like.new_empty(len(like), self.latent_dim))

    # What users look at

    @property
    def latent_dim(self) -> int:
        return self.decoder.in_features

    @property
    def word_vectors(self) -> Tensor:
        """R of the paper, one row per word."""
        return self.decoder.weight.detach()  # [V, K]

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()

    @staticmethod
    def recipe(preset: str, documents: int) -> Recipe:
        """How to fit `documents` documents; see docs/nvdm.md for what each choice is worth."""
        if preset == "paper":
            settings = TrainingSettings(epochs=60, batch_size=64, learning_rate=1e-3)
            return Recipe({"inference": "words", "activation": "relu"}, settings, DocumentObjective(length_exponent=0.7))
        if preset == "recommended":
            settings = TrainingSettings(epochs=25, batch_size=128, learning_rate=3e-3)
            return Recipe(
                {"inference": "statistics", "activation": "silu"}, settings, DocumentObjective(length_exponent=0.7)
            )
        raise InputError(f"no preset is called {preset!r}; there are: recommended, paper")
