"""Multimodal NVDM: one latent vector generates the words of a document and its sentence vector (Suzuki et al. 2016).

    prior               p(h) = N(0, I)
    posterior           q(h | X, e), or q(h | X) for a document without a vector: N(mean, factor factor^T), a Laplace
                        approximation corrected by a network, as in `nvdm_dcm.py`
    likelihood          p(X | h) N(e; W h + c, s^2 I)^weight, the first the DCM of `nvdm_dcm.py`
    KL                  KL(q(h | X, e) || N(0, I)), closed form: `latent/gaussian.py::full_gaussian_kl`

e comes from a pretrained encoder, such as MiniLM: it reflects what words mean, which the six words of a title do not
show. Its term is quadratic in h, so its parts of the gradient and the curvature of log p(h, X, e) are exact:

    gradient            weight W^T (e - c - W h) / s^2
    curvature           P = weight W^T W / s^2, the same for all documents

For a document without words, q is then the exact posterior of a linear Gaussian model, with covariance (I + P)^-1. For
a document without a vector, both are left out: W, c and s are not in p(X | h), so one model serves both kinds. In
training, some documents lose their vectors (`DocumentObjective.vector_dropout`), so that the network learns to correct
both.

Sentence vectors have hundreds of dimensions, each of which would count as much as a word: at full weight the vectors
would determine the topics, and words are predicted worse (`python -m lab vector-weight`). W, c and s are initialized by
probabilistic PCA (Tipping and Bishop 1999), the closed form of this model without words.

Perplexity is of words, with h inferred from words: `evaluate` does not see the vectors.
"""

import dataclasses
import math

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn
from torch.nn import functional

from varitext.batches.counts import CountBatch
from varitext.corpora.document_vectors import vectors_of
from varitext.corpora.sharded_counts import Counts, some_rows
from varitext.errors import InputError
from varitext.layers.counts import sparse_times_dense
from varitext.layers.dcm import effective_counts
from varitext.layers.dense import MLP
from varitext.layers.grouped_counts import GroupedCounts
from varitext.models.documents.base import Recipe
from varitext.models.documents.bounds import DocumentBounds
from varitext.models.documents.dcm_decoder import DCMDecoder, GroupMoments, LogJoint
from varitext.models.documents.nvdm_dcm import NVDMDCM

DOCUMENTS = 20_000  # largest sample from which W, c and s are initialized
COUNTED = 40  # numbers that a wider vector counts as, because its components are far from independent
VECTOR_DROPOUT = 0.2  # share of training documents
LOG_STD_RANGE = (-6.0, 3.0)  # of s


class VectorDecoder(nn.Module):
    """N(e; W h + c, s^2 I)^weight, and what inference needs from it; documents without a vector get zeros."""

    def __init__(self, latent_dim: int, sentence_dim: int, weight: float):
        super().__init__()
        self.weight = weight
        self.loadings = nn.Parameter(torch.zeros(sentence_dim, latent_dim))  # W
        self.centre = nn.Parameter(torch.zeros(sentence_dim))  # c
        self.log_std = nn.Parameter(torch.zeros(()))  # log s

    @torch.no_grad()
    def start_from(self, vectors: np.ndarray) -> None:
        """Probabilistic PCA: c is the mean, W the first directions, s^2 the mean variance along the others."""
        vectors = np.asarray(vectors, np.float64)
        values, directions = np.linalg.eigh(np.cov(vectors.T, ddof=0).reshape(vectors.shape[1], -1))
        first = min(self.loadings.shape[1], len(values) - 1)
        noise = max(float(values[: len(values) - first].mean()), 1e-8)
        scales = np.sqrt(np.maximum(values[::-1][:first] - noise / self.weight, 0))
        self.loadings[:, :first] = torch.from_numpy(directions[:, ::-1][:, :first] * scales).to(self.loadings)
        self.centre.copy_(torch.from_numpy(vectors.mean(0)))
        self.log_std.fill_(0.5 * math.log(noise))

    def expected(self, h: Tensor) -> Tensor:
        """W h + c, [..., E]."""
        return functional.linear(h, self.loadings, self.centre)

    def precision(self) -> Tensor:
        """weight / s^2."""
        return self.weight * (-2 * self.log_std.clamp(*LOG_STD_RANGE)).exp()

    def log_likelihood(self, h: Tensor, batch: CountBatch) -> Tensor:
        """Log likelihood of the vector at h [S, B, K]: [S, B]."""
        known, vectors = _filled(batch, h)
        squares = (vectors - self.expected(h)).square().sum(-1)
        constant = self.weight * len(self.centre) * (self.log_std.clamp(*LOG_STD_RANGE) + 0.5 * math.log(2 * math.pi))
        return torch.where(known, -0.5 * self.precision() * squares - constant, 0.0)

    def gradient(self, h: Tensor, batch: CountBatch) -> Tensor:
        """Gradient in h [B, K]: [B, K]."""
        known, vectors = _filled(batch, h)
        pull = (vectors - self.expected(h)) @ self.loadings
        return torch.where(known[:, None], self.precision() * pull, 0.0)

    def curvature(self) -> Tensor:
        """P, [K, K]."""
        return self.precision() * self.loadings.T @ self.loadings


def _filled(batch: CountBatch, like: Tensor) -> tuple[Tensor, Tensor]:
    """Which documents have a vector, [B], and the vectors, [B, E], with zeros for the others."""
    assert batch.vectors is not None
    known = batch.with_vectors
    return known, torch.where(known[:, None], batch.vectors, 0.0).to(like)


class WordsAndVectorsDecoder(DCMDecoder):
    """The DCM likelihood of words times that of sentence vectors."""

    def __init__(self, latent_dim: int, vocabulary_size: int, groups: int, sentence_dim: int, weight: float):
        super().__init__(latent_dim, vocabulary_size, groups)
        self.of_vectors = VectorDecoder(latent_dim, sentence_dim, weight)

    def log_likelihood(self, h: Tensor, counts: GroupedCounts, weights: Tensor) -> Tensor:
        of_words = super().log_likelihood(h, counts, weights)
        return of_words if counts.batch.vectors is None else of_words + self.of_vectors.log_likelihood(h, counts.batch)

    @torch.no_grad()
    def newton_step_from_zero(self, counts: GroupedCounts, moments: GroupMoments) -> Tensor:
        """Let C be the covariance of word vectors, n a document's effective words and A = I + P. A single V with
        V^T A V = I and V^T C V diagonal then gives (A + n C)^-1 for every document."""
        of_words, batch = super().newton_step_from_zero(counts, moments), counts.batch
        if batch.vectors is None:
            return of_words
        worth = effective_counts(moments.masses, moments.group_masses, moments.sums, counts)
        gradient = sparse_times_dense(batch, worth.words, self.linear.weight) + worth.groups @ moments.means
        gradient = gradient - worth.totals[:, None] * moments.mean
        gradient = gradient + self.of_vectors.gradient(torch.zeros_like(gradient), batch)
        added = torch.eye(len(moments.mean)).to(gradient) + self.of_vectors.curvature()
        lower, _ = torch.linalg.cholesky_ex(added)
        spread = torch.linalg.solve_triangular(lower, moments.directions, upper=False)
        covariance = spread * moments.variances @ spread.T
        if not torch.isfinite(covariance).all():  # training has diverged; the loss will show it
            return torch.full_like(of_words, math.nan)
        variances, turned = torch.linalg.eigh(covariance)
        directions = torch.linalg.solve_triangular(lower.T, turned, upper=True)  # V
        step = gradient @ directions / (1 + worth.totals[:, None] * variances.clamp(min=0)) @ directions.T
        return torch.where(batch.with_vectors[:, None], step, of_words)

    @torch.no_grad()
    def log_joint(self, h: Tensor, counts: GroupedCounts, weights: Tensor | None = None) -> LogJoint:
        here, batch = super().log_joint(h, counts, weights), counts.batch
        if batch.vectors is None:
            return here
        value = here.value + self.of_vectors.log_likelihood(h[None], batch)[0]
        return here._replace(value=value, gradient=here.gradient + self.of_vectors.gradient(h, batch))

    @torch.no_grad()
    def height(self, h: Tensor, counts: GroupedCounts, weights: Tensor) -> Tensor:
        of_words = super().height(h, counts, weights)
        if counts.batch.vectors is None:
            return of_words
        return of_words + self.of_vectors.log_likelihood(h[None], counts.batch)[0]

    def _squares(self, group_weights: Tensor, moments: GroupMoments, batch: CountBatch | None) -> Tensor:
        of_words = super()._squares(group_weights, moments, batch)
        if batch is None or batch.vectors is None:
            return of_words
        rows, columns = torch.tril_indices(*2 * [self.linear.in_features], device=of_words.device)
        added = self.of_vectors.curvature()[rows, columns][:, None]
        return torch.where(batch.with_vectors, of_words + added, of_words)


class NVDMVectors(NVDMDCM):
    """A variational autoencoder of bags of words and sentence vectors."""

    reads_vectors = True
    parallel_training = False  # its gradients come from autograd
    decoder: WordsAndVectorsDecoder

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        groups: int = 300,
        hidden_dim: int = 256,
        hidden_layers: int = 2,
        activation: str = "silu",
        refinement_steps: int = 2,
        estimator: str = "reparameterised",
        sentence_dim: int = 0,
        vector_weight: float | None = None,
    ):
        """`sentence_dim` is the width of the sentence vectors, E; with 0 there are none, and this is `nvdm_dcm`.

        `vector_weight` is the weight of the vector's term. None: chosen so that a vector counts as `COUNTED` numbers.
        """
        super().__init__(
            vocabulary_size, latent_dim, groups, hidden_dim, hidden_layers, activation, refinement_steps, estimator
        )
        weight = min(1.0, COUNTED / max(1, sentence_dim)) if vector_weight is None else vector_weight
        if not weight > 0:
            raise InputError(f"vector_weight must be above 0, not {weight}")
        self.decoder = WordsAndVectorsDecoder(latent_dim, vocabulary_size, groups, sentence_dim, weight)
        self.encoder = MLP(latent_dim + 3, hidden_dim, hidden_layers, activation)

    def learn_cooccurrence(self, counts: Counts) -> None:
        super().learn_cooccurrence(counts)
        if (vectors := vectors_of(counts)) is not None:
            rows = some_rows(np.random.default_rng(0), len(vectors), DOCUMENTS)
            self.decoder.of_vectors.start_from(vectors[rows])

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        return super().evaluate(scipy.sparse.csr_matrix(counts), samples, seed)

    def _further_inputs(self, batch: CountBatch) -> list[Tensor]:
        return [batch.with_vectors.to(batch.lengths)]

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        recipe = NVDMDCM.recipe(preset, documents, words_per_document)
        objective = dataclasses.replace(recipe.objective, vector_dropout=VECTOR_DROPOUT)
        architecture = {name: value for name, value in recipe.architecture.items() if name != "word_share"}
        return dataclasses.replace(recipe, architecture=architecture, objective=objective)
