"""The base class of document models, and how a model is fitted: its recipe."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.corpora.sharded_counts import Counts
from varitext.errors import InputError
from varitext.latent import Bound, DiagonalGaussian, Distribution, Estimate, choose_estimator
from varitext.models.documents.bounds import (
    LOWER_BOUND,
    DocumentBounds,
    EstimateKind,
    document_bounds,
    gaussian_kl_per_dimension,
)
from varitext.training.settings import TrainingSettings

MAX_STEPS = 1_000  # of inference


@dataclass(frozen=True)
class DocumentObjective:
    """The loss: the mean over documents of N^-a (beta KL - log likelihood), with N a document's length.

    With free bits, KL is the sum over latent dimensions of max(free bits, KL_k).

    A model may replace the bound in it: `DocumentNetwork.objective`.
    """

    length_exponent: float = 0.0
    """a: per-document perplexity weights a document's bound by 1/N (a = 1); a plain mean (a = 0) weights it by 1, so
    that a few long documents dominate."""
    word_dropout: float = 0.0
    """Largest share of a training document's words that is dropped, drawn again at every pass; see `drop_words`."""
    vector_dropout: float = 0.0
    """Share of training documents that lose their sentence vector, drawn again at every pass."""
    free_bits: float = 0.0
    """Nats of KL per document and latent dimension that cost nothing (Kingma et al. 2016), against collapse."""

    def __post_init__(self) -> None:
        if not 0 <= self.free_bits < math.inf:
            raise InputError(f"free_bits must be 0 or more nats, not {self.free_bits}")


@dataclass(frozen=True)
class Recipe:
    """How to fit a model to a corpus of some size; a model has one per preset."""

    architecture: dict[str, Any]
    training: TrainingSettings
    objective: DocumentObjective


def training_schedule(documents: int, learning_rate: float, samples: int = 1, passes: int = 41) -> TrainingSettings:
    """A schedule with more passes over fewer documents; `passes` is for ten thousand. Training may stop earlier.

    The learning rate is for batches of 128; smaller corpora get smaller batches and steps.
    """
    epochs = round(min(100, max(8, 100 * passes / math.sqrt(documents))))
    batch_size = min(128, max(32, 2 ** round(math.log2(documents / 32))))
    return TrainingSettings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate * math.sqrt(batch_size / 128),
        samples=samples,
        patience=max(5, epochs // 4),
    )


class Encoding(NamedTuple):
    """What `encode` returns in most models: the hidden layer of the inference network, and the batch of documents."""

    hidden: Tensor  # [B, H]
    batch: CountBatch


class DocumentVectors(NamedTuple):
    """Vectors of documents with their standard deviations, which are 0 for a model without a posterior."""

    mean: Tensor  # [B, K]
    std: Tensor  # [B, K]


@runtime_checkable
class FitsWithoutGradients(Protocol):
    def fit_without_gradients(self, train: scipy.sparse.csr_matrix, settings: TrainingSettings) -> Iterator[float]:
        """Yield the share of the work done, after each round of learning."""


@runtime_checkable
class HasWordProbabilities(Protocol):
    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of every word, [S, B, V]."""


@runtime_checkable
class CompletesDocuments(Protocol):
    def completion_log_likelihood(self, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
        """log p(hidden | observed) of each document, [B]."""


class DocumentNetwork(nn.Module):
    """Base class of document models, with the defaults of a model whose h is Gaussian.

    A model with a latent h implements `encode`, `prior`, `posterior` and `log_likelihood` (`latent.LatentModel`). With
    a Gaussian h and a `linear_decoder` the rest has defaults. A model whose likelihood is exact needs none of the four:
    it overrides `objective`, `evaluate`, `estimate_kind`, `document_vectors` and `kl_per_dimension`. All have a
    `recipe`.

    Optional methods are declared as protocols: `inference_parameters` for alternating updates (`training/settings.py`),
    `baseline_input` for `nvil` and `local_log_odds` for `local_expectation` (`latent/estimators.py`),
    `fit_without_gradients`, and `word_log_probabilities` or `completion_log_likelihood` for completing documents.

    Parameters
    ----------
    vocabulary_size : int
        Number of words, V.
    latent_dim : int
        Number of latent dimensions, K.
    estimator : str, default="reparameterised"
        Gradient estimator of the bound, a key of `varitext.latent.ESTIMATORS`.
    baseline_dim : int, default=0
        Width of the features of `baseline_input`, for the estimator `nvil`.

    Examples
    --------
    >>> from torch import nn
    >>> from varitext.latent import DiagonalGaussian
    >>> from varitext.layers.counts import CountEncoder, multinomial_log_likelihood
    >>> from varitext.layers.dense import GaussianHead
    >>> from varitext.models.documents.base import DocumentNetwork
    >>> class SmallNVDM(DocumentNetwork):
    ...     def __init__(self, vocabulary_size, latent_dim=20):
    ...         super().__init__(vocabulary_size, latent_dim)
    ...         self.encoder = CountEncoder(vocabulary_size, 100)
    ...         self.head = GaussianHead(100, latent_dim)
    ...         self.decoder = nn.Linear(latent_dim, vocabulary_size)
    ...     def encode(self, batch): return self.head(self.encoder(batch)), batch
    ...     def prior(self, encoding): return DiagonalGaussian.standard(encoding[0].mean)
    ...     def posterior(self, encoding): return encoding[0]
    ...     def log_likelihood(self, h, encoding): return multinomial_log_likelihood(self.decoder(h), encoding[1])
    ...     def linear_decoder(self): return self.decoder
    >>> SmallNVDM(vocabulary_size=2000).word_vectors.shape
    torch.Size([2000, 20])
    """

    word_log_frequencies: Tensor  # [V]   the unigram model
    axes: Tensor  # [K, K]   rotation from h to the vectors that users see, if `free_axes`
    estimate_kind: EstimateKind = LOWER_BOUND
    likelihood = "multinomial"  # p(X | h), as named in records and reports
    free_axes = True  # whether p(h) is rotation-invariant, so that latent dimensions may be rotated until readable
    independent_noise = True  # false if the noise of one document depends on the others: no sharing among processes
    refinement_steps = 0  # steps that refine the inference network's q on the generative model in prediction
    parallel_training = False  # whether `set_gradients` shares a batch among workers
    reads_vectors = False  # whether it learns from sentence vectors beside the words, if it is given any
    whole_counts = False  # whether the model needs whole counts, not fractions

    def __init__(
        self, vocabulary_size: int, latent_dim: int, estimator: str = "reparameterised", baseline_dim: int = 0
    ):
        super().__init__()
        self.latent_dim = latent_dim
        self.estimator = choose_estimator(estimator, baseline_dim)
        self.register_buffer("word_log_frequencies", torch.zeros(vocabulary_size))
        axes = torch.zeros(latent_dim, latent_dim).fill_diagonal_(1.0)  # torch.eye is slow where shapes are checked
        self.register_buffer("axes", axes, persistent=self.free_axes)  # never rotated if not free

    @contextmanager
    def refining(self, refine: bool) -> Iterator[None]:
        """Within this context, prediction refines q if `refine`, otherwise it uses the inference network only."""
        steps = self.refinement_steps
        self.refinement_steps = steps if refine else 0
        try:
            yield
        finally:
            self.refinement_steps = steps

    # The four methods of the framework, for a model with a latent h

    def encode(self, batch: CountBatch) -> Any:
        """The inference network up to its hidden layer; the result is passed to the other three."""
        raise NotImplementedError

    def prior(self, encoding: Any) -> Distribution:
        """p(h)."""
        raise NotImplementedError

    def posterior(self, encoding: Any) -> Distribution:
        """q(h | X)."""
        raise NotImplementedError

    def log_likelihood(self, h: Tensor, encoding: Any) -> Tensor:
        """log p(X | h) for h of shape [S, B, K]: [S, B]."""
        raise NotImplementedError

    # Before training

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """How to fit a corpus of this size, for the presets of the registry."""
        raise NotImplementedError

    def learn_frequencies(self, word_counts: Tensor) -> None:
        """Store the add-one unigram model of the training documents; called once, before training."""
        smoothed = word_counts.to(torch.float64) + 1
        self.word_log_frequencies.copy_((smoothed / smoothed.sum()).log())
        self.initialize_from_frequencies()

    def initialize_from_frequencies(self) -> None:
        """Initialize the model at the unigram model (default: the bias of its `linear_decoder`)."""
        if (decoder := self.linear_decoder()) is not None:
            with torch.no_grad():
                decoder.bias.copy_(self.word_log_frequencies)

    def learn_cooccurrence(self, counts: Counts) -> None:
        """Learn which words occur together, if the model needs it; called once, before training."""

    def initialize_new_words(self, first: int) -> None:
        """Initialize any other parameters for the words from `first` on, which an update added; their directions are
        already set."""

    # In training and evaluation

    def set_gradients(self, batch: CountBatch, weights: Tensor, samples: int, kl_weight: float) -> Bound | None:
        """The bounds of a batch, with the gradients of their weighted sum in the parameters' `grad`.

        None if only autograd, through `objective`, can compute them (default).
        """
        return None

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """Per document: a `surrogate` to maximise (default: the bound, by the model's estimator), and the `bound`."""
        estimate: Estimate = self.estimator(self, batch, samples, kl_weight)
        return estimate

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """log p(X) of every document, in the sense of `estimate_kind`; the same seed gives the same values.

        A model without draws of h and KL returns `exact_bounds`.
        """
        return document_bounds(self, counts, samples, seed, self.device)

    def evaluate_round(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """As `evaluate`, for comparing the rounds of training: may be a looser bound that takes less time."""
        return self.evaluate(counts, samples, seed)

    # Vectors of documents and words

    @property
    def device(self) -> torch.device:
        return self.word_log_frequencies.device

    @property
    def vector_dim(self) -> int:
        """The width of document and word vectors."""
        return self.latent_dim

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """Mean and standard deviation of q(h | X), rotated; the prior's for a document without words."""
        posterior = self.posterior(self.encode(batch))
        if not isinstance(posterior, DiagonalGaussian):
            raise NotImplementedError(f"{type(self).__name__}: h is not Gaussian, so it needs its own document_vectors")
        q = self.rotated(posterior)
        known = (batch.lengths > 0)[:, None]
        return DocumentVectors(torch.where(known, q.mean, 0.0), torch.where(known, q.std, 1.0))

    def document_means(self, batch: CountBatch) -> Tensor:
        """The means only, [B, K], for models that compute them at lower cost."""
        return self.document_vectors(batch).mean

    @property
    def has_joint_bound(self) -> bool:
        """Whether `vectors_and_bound` is implemented: the bound of `evaluate` from the q of `document_vectors`."""
        return False

    def vectors_and_bound(self, batch: CountBatch, samples: int) -> tuple[DocumentVectors, Tensor]:
        """`document_vectors` and the bound on log p(X), [B], from one q."""
        raise NotImplementedError

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        """Information in each latent dimension, in nats, from a sample of training documents: [K]."""
        return gaussian_kl_per_dimension(vectors.mean, vectors.std)

    def linear_decoder(self) -> nn.Linear | None:
        """The layer of softmax(h R + b), with weight R^T and bias b, if the model has one."""
        return None

    def word_directions(self) -> Tensor:
        """One vector per word in the space of h, [V, K]: how h changes the word's logit."""
        if (decoder := self.linear_decoder()) is None:
            raise NotImplementedError(f"{type(self).__name__} has no linear decoder: it needs its own word_directions")
        return decoder.weight

    def word_logits(self, vectors: Tensor) -> Tensor:
        """log p(w | h) of every word up to a constant, [B, V], at unrotated vectors of documents."""
        if (decoder := self.linear_decoder()) is None:
            raise NotImplementedError(f"{type(self).__name__} has no linear decoder: word_logits is not defined")
        logits: Tensor = decoder(vectors)
        return logits

    # Readable axes: p(h) = N(0, I) is rotation-invariant, so the latent dimensions of a fitted model are arbitrary.
    # Rotating h and the word vectors together changes no probability.

    @property
    def word_vectors(self) -> Tensor:
        """`word_directions`, rotated."""
        directions = self.word_directions().detach()
        return directions @ self.axes if self.free_axes else directions  # [V, K]

    def rotated(self, gaussian: DiagonalGaussian) -> DiagonalGaussian:
        """Marginal mean and standard deviation of h along the rotated axes."""
        variance = gaussian.std.square() @ self.axes.square()
        return DiagonalGaussian(gaussian.mean @ self.axes, 0.5 * variance.log())


def check_steps(name: str, steps: int) -> int:
    """Refuse a number of steps per document that would make every prediction take minutes."""
    if not (isinstance(steps, int) and 0 <= steps <= MAX_STEPS):
        raise InputError(f"{name} must be a whole number from 0 to {MAX_STEPS:,}, not {steps!r}")
    return steps


def varimax(means: np.ndarray, rounds: int = 60, tolerance: float = 1e-7) -> np.ndarray:
    """The rotation [K, K] that makes the coordinates of `means` [D, K] sparse (Kaiser 1958).

    The sign of each axis makes its few large coordinates positive.
    """
    centred = np.asarray(means, np.float64) - np.mean(means, 0, dtype=np.float64)
    axes, reached = np.eye(centred.shape[1]), 0.0
    for _ in range(rounds):
        turned = centred @ axes
        squares = turned * turned  # much faster in numpy than a third power
        left, gains, right = np.linalg.svd(centred.T @ (turned * (squares - squares.mean(0))))
        axes = left @ right
        if gains.sum() <= reached * (1 + tolerance):
            break
        reached = gains.sum()
    skewness = ((centred @ axes) ** 3).sum(0)
    return axes * np.where(skewness < 0, -1.0, 1.0)


def procrustes(directions: np.ndarray, seen_before: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The rotation [K, K] that brings word directions [V, K] nearest to earlier ones, [V, K] (Schönemann 1966).

    Words are weighted by frequency. After more training, users see the axes they know although h has rotated.
    """
    weighted = np.asarray(frequencies, np.float64)[:, None] * directions
    left, _, right = np.linalg.svd(weighted.T @ np.asarray(seen_before, np.float64))
    rotation: np.ndarray = left @ right
    return rotation
