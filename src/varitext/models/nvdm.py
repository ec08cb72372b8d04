"""NVDM, the neural variational document model (paper, section 3 and appendix B.1).

    inference network   q(h | X) = N(mean(X), diag(std(X)^2)),   an MLP on the document's counts
    prior               p(h) = N(0, I)
    generative model    p(X | h) = prod_i softmax(h^T R + b)_{x_i}
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches import CountBatch
from varitext.document_task import Recipe
from varitext.errors import InputError
from varitext.latent import DiagonalGaussian
from varitext.layers import CountEncoder, GaussianHead, multinomial_log_likelihood
from varitext.training import TrainingSettings


class Encoding(NamedTuple):
    hidden: Tensor  # [B, H]   pi of the paper
    batch: CountBatch


class NVDM(nn.Module):
    """A variational auto-encoder of bags of words; each latent dimension is a topic."""

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        hidden_dim: int = 500,
        hidden_layers: int = 2,
        activation: str = "relu",
        use_length: bool = False,
    ):
        super().__init__()
        self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation, use_length)
        self.head = GaussianHead(hidden_dim, latent_dim)
        self.decoder = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.decoder.weight, std=0.05)
        self.register_buffer("word_log_frequencies", torch.zeros(vocabulary_size))

    def start_from(self, word_counts: Tensor) -> None:
        """Start at the unigram model (add-one): h only has to learn what differs between documents."""
        smoothed = word_counts.to(torch.float64) + 1
        self.word_log_frequencies.copy_((smoothed / smoothed.sum()).log())
        with torch.no_grad():
            self.decoder.bias.copy_(self.word_log_frequencies)

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        return Encoding(self.encoder(batch), batch)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return DiagonalGaussian.standard(encoding.hidden.new_empty(len(encoding.hidden), self.latent_dim))

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        return self.head(encoding.hidden)

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return multinomial_log_likelihood(self.decoder(h), encoding.batch)  # [S, B]

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
            return Recipe({"activation": "relu"}, TrainingSettings(), length_exponent=0.7)
        if preset == "recommended":
            return Recipe({"activation": "silu", "use_length": True}, TrainingSettings(), length_exponent=0.7)
        raise InputError(f"no preset is called {preset!r}; there are: recommended, paper")
