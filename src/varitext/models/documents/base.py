"""What `DocumentModel` asks of a model of documents, with the answers of a model whose h is Gaussian.

    objective         what goes up in training, per document          default: the bound, by the model's estimator
    evaluate          log p(X) of held-out documents                  default: the lower bound from draws of h
    estimate_kind     what that is: a bound, exact or an estimate     default: a bound
    document_vectors  one vector per document, and how sure that is   default: mean and std of q(h | X)
    kl_per_dimension       the information in each dimension of those      default: its KL
    document_means    the vectors alone, where they come for less     default: those of `document_vectors`
    linear_decoder    the layer of softmax(h R + b), if there is one  none
    word_directions   one vector per word, for topics and neighbours  default: R
    recipe            how to fit a corpus of some size, by preset     none

A model with a latent h gives `encode`, `prior`, `posterior` and `log_likelihood` (`latent.bound.LatentModel`), and may
keep all defaults if h is Gaussian. One whose likelihood is exact needs none of these four: it overrides the first five
rows. What a model may also have are protocols, here and where they are used:

    HasInferenceParameters   which parameters are phi, for alternating updates        training/settings.py
    HasBaselineInput         what the baseline of `nvil` reads                        latent/estimators.py
    HasLocalLogOdds          what `local_expectation` needs                           latent/estimators.py
    LearnsDirectly           its own way of learning in place of gradients            here; see documents/fitting.py
    HasWordProbabilities, CompletesDocuments      what completing documents needs     here; see documents/evaluation.py
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.corpora.sharded_counts import Counts
from varitext.latent import DiagonalGaussian, Distribution, Estimate, choose_estimator
from varitext.models.documents.axes import readable_axes
from varitext.models.documents.bounds import LOWER_BOUND, DocumentBounds, EstimateKind, document_bounds
from varitext.models.documents.information import gaussian_kl_per_unit
from varitext.models.documents.recipe import Recipe
from varitext.training.settings import TrainingSettings


class DocumentVectors(NamedTuple):
    """Where each document lies, and how sure that is; std is 0 where a model has no posterior."""

    mean: Tensor  # [B, K]
    std: Tensor  # [B, K]


@runtime_checkable
class LearnsDirectly(Protocol):
    def fit_without_gradients(self, train: scipy.sparse.csr_matrix, settings: TrainingSettings) -> Iterator[float]:
        """A generator: learns a round, then yields the share of the work that is done."""


@runtime_checkable
class HasWordProbabilities(Protocol):
    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of every word, [S, B, V]."""


@runtime_checkable
class CompletesDocuments(Protocol):
    def completion_log_likelihood(self, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
        """log p(hidden | observed) of each document, [B]."""


class DocumentNetwork(nn.Module):
    """The base of document models."""

    word_log_frequencies: Tensor  # [V]   the unigram model
    axes: Tensor  # [K, K]   how users see h, with `free_axes`: see axes.py
    estimate_kind: EstimateKind = LOWER_BOUND
    likelihood = "multinomial"  # p(X | h), as records and reports name it
    free_axes = True  # p(h) looks the same from every side, so its axes may be turned until one can read them
    rows_draw_alone = True  # false if the noise of one document depends on the others, so that processes cannot share
    refinement_steps = 0  # that q makes on the generative model in prediction, beyond what the inference network says
    whole_counts = False  # true for a model that needs words one by one, and has no use for fractions of them

    def __init__(
        self, vocabulary_size: int, latent_dim: int, estimator: str = "reparameterised", baseline_dim: int = 0
    ):
        """`estimator` is a name of `latent.ESTIMATORS`; `baseline_dim` the width of `baseline_input`, for `nvil`."""
        super().__init__()
        self.latent_dim = latent_dim
        self.estimator = choose_estimator(estimator, baseline_dim)
        self.register_buffer("word_log_frequencies", torch.zeros(vocabulary_size))
        if self.free_axes:
            self.register_buffer("axes", torch.eye(latent_dim))

    @contextmanager
    def refining(self, refine: bool) -> Iterator[None]:
        """Within, prediction refines q or, if not so, takes what the inference network says."""
        steps = self.refinement_steps
        self.refinement_steps = steps if refine else 0
        try:
            yield
        finally:
            self.refinement_steps = steps

    # The four methods of the framework, for a model with a latent h

    def encode(self, batch: CountBatch) -> Any:
        raise NotImplementedError

    def prior(self, encoding: Any) -> Distribution:
        raise NotImplementedError

    def posterior(self, encoding: Any) -> Distribution:
        raise NotImplementedError

    def log_likelihood(self, h: Tensor, encoding: Any) -> Tensor:
        raise NotImplementedError

    # Before training

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """How to fit a corpus of this size; the presets are those of the registry."""
        raise NotImplementedError

    def learn_frequencies(self, word_counts: Tensor) -> None:
        """The unigram model of the training documents, add-one; called once, before training."""
        smoothed = word_counts.to(torch.float64) + 1
        self.word_log_frequencies.copy_((smoothed / smoothed.sum()).log())
        self.start_from_frequencies()

    def start_from_frequencies(self) -> None:
        """A place for a model to start at the unigram model: by default the bias of its `linear_decoder`."""
        if (decoder := self.linear_decoder()) is not None:
            with torch.no_grad():
                decoder.bias.copy_(self.word_log_frequencies)

    def learn_cooccurrence(self, counts: Counts) -> None:
        """A place for a model to see which words stand together; called once, before training."""

    def settle_new_words(self, first: int) -> None:
        """A place for a model to settle what else it has for words, from this one on, that an update brings: called
        once they have their directions, before training goes on."""

    # In training and evaluation

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """Per document: a `surrogate` that goes up in training, and the `bound` that the progress line shows."""
        estimate: Estimate = self.estimator(self, batch, samples, kl_weight)
        return estimate

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """log p(X) of every document, as `figure` says; the same seed gives the same values.

        Where it is exact there are no draws and no KL: `exact_bounds` makes the record.
        """
        return document_bounds(self, counts, samples, seed, self.device)

    def evaluate_round(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """The same in training, to choose between its rounds: a looser bound will do if it takes less time."""
        return self.evaluate(counts, samples, seed)

    # What users look at

    @property
    def device(self) -> torch.device:
        return self.word_log_frequencies.device

    @property
    def vector_dim(self) -> int:
        """The width of document and word vectors."""
        return self.latent_dim

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """Here: of the Gaussian q(h | X), on the readable axes. A document of no words gets the prior."""
        posterior = self.posterior(self.encode(batch))
        if not isinstance(posterior, DiagonalGaussian):
            raise NotImplementedError("a model whose h is not Gaussian has document_vectors of its own")
        q = self.on_axes(posterior)
        known = (batch.lengths > 0)[:, None]
        return DocumentVectors(torch.where(known, q.mean, 0.0), torch.where(known, q.std, 1.0))

    def document_means(self, batch: CountBatch) -> Tensor:
        """The same without how sure that is, [B, K]."""
        return self.document_vectors(batch).mean

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        """Information per dimension in nats, from a sample of training documents; ranks the topics."""
        return gaussian_kl_per_unit(vectors.mean, vectors.std)  # [K]

    def word_directions(self) -> Tensor:
        """One vector per word in the space of h, [V, K]: what moving h that way does to the word."""
        if (decoder := self.linear_decoder()) is None:
            raise NotImplementedError("a model without a linear decoder has word_directions of its own")
        return decoder.weight

    def linear_decoder(self) -> nn.Linear | None:
        """The layer of softmax(h R + b), weight R^T and bias b, if words come from one."""
        return None

    def word_logits(self, vectors: Tensor) -> Tensor:
        """log p(w | h) of every word up to a constant, [B, V], at the vectors of documents on the model's own axes."""
        if (decoder := self.linear_decoder()) is None:
            raise NotImplementedError("a model without a linear decoder has word_logits of its own, or none")
        logits: Tensor = decoder(vectors)
        return logits

    @property
    def word_vectors(self) -> Tensor:
        """The same on the readable axes."""
        directions = self.word_directions().detach()
        return directions @ self.axes if self.free_axes else directions  # [V, K]

    def turn_axes(self, means: np.ndarray) -> None:
        """Choose readable axes from the vectors of some documents on the present ones; called once, after training."""
        self.axes.copy_(torch.from_numpy(readable_axes(means)))

    def on_axes(self, gaussian: DiagonalGaussian) -> DiagonalGaussian:
        """Mean and spread of h along the readable axes."""
        if not self.free_axes:
            return gaussian
        variance = gaussian.std.square() @ self.axes.square()
        return DiagonalGaussian(gaussian.mean @ self.axes, 0.5 * variance.log())
