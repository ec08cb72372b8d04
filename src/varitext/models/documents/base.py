"""What `DocumentModel` asks of a model of documents, with the answers of a model whose h is Gaussian.

    objective         what goes up in training, per document          default: the bound, by the model's estimator
    evaluate          log p(X) of held-out documents                  default: the lower bound from draws of h
    estimate_kind     what that is: a bound, exact or an estimate     default: a bound
    document_vectors  one vector per document, and how sure that is   default: mean and std of q(h | X)
    kl_per_unit       the information in each dimension of those      default: its KL
    word_directions   one vector per word, for topics and neighbours  none: every model has its own
    recipe            how to fit a corpus of some size, by preset     none

A model with a latent h gives `encode`, `prior`, `posterior` and `log_likelihood` (`latent.bound.LatentModel`), and may
keep all defaults if h is Gaussian. One whose likelihood is exact needs none of these four: it overrides the first five
rows. A model may also have

    inference_parameters()           which parameters are phi, for alternating updates
    baseline_input(encoding)         what the baseline of `nvil` reads
    fit_directly(train, settings)    its own way of learning in place of gradients: see `documents/direct.py`
    word_log_probabilities(h), or completion_log_likelihood(observed, hidden, samples)
                                     what completing documents needs: see `evaluation/completion.py`
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import DiagonalGaussian, Estimate, choose_estimator
from varitext.models.documents.axes import readable_axes
from varitext.models.documents.bounds import LOWER_BOUND, DocumentBounds, EstimateKind, document_bounds
from varitext.models.documents.information import gaussian_kl_per_unit


class DocumentVectors(NamedTuple):
    """Where each document lies, and how sure that is; std is 0 where a model has no posterior."""

    mean: Tensor  # [B, K]
    std: Tensor  # [B, K]


class DocumentNetwork(nn.Module):
    """The base of document models."""

    estimate_kind: EstimateKind = LOWER_BOUND
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
        self.register_buffer("word_log_frequencies", torch.zeros(vocabulary_size))  # [V]   the unigram model
        if self.free_axes:
            self.register_buffer("axes", torch.eye(latent_dim))  # [K, K]   how users see h: see axes.py

    @contextmanager
    def refining(self, refine: bool) -> Iterator[None]:
        """Within, prediction refines q or, if not so, takes what the inference network says."""
        steps = self.refinement_steps
        self.refinement_steps = steps if refine else 0
        try:
            yield
        finally:
            self.refinement_steps = steps

    # Before training

    def learn_frequencies(self, word_counts: Tensor) -> None:
        """The unigram model of the training documents, add-one; called once, before training."""
        smoothed = word_counts.to(torch.float64) + 1
        self.word_log_frequencies.copy_((smoothed / smoothed.sum()).log())
        self.start_from_frequencies()

    def start_from_frequencies(self) -> None:
        """A place for a model to start its bias at the unigram model; by default it starts where it stands."""

    # In training and evaluation

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """Per document: a `surrogate` that goes up in training, and the `bound` that the progress line shows."""
        return self.estimator(self, batch, samples, kl_weight)

    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """log p(X) of every document, as `figure` says; the same seed gives the same values.

        Where it is exact there are no draws and no KL: `exact_bounds` makes the record.
        """
        return document_bounds(self, counts, samples, seed, self.word_log_frequencies.device)

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
        q = self.on_axes(self.posterior(self.encode(batch)))
        known = (batch.lengths > 0)[:, None]
        return DocumentVectors(torch.where(known, q.mean, 0.0), torch.where(known, q.std, 1.0))

    def kl_per_unit(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        """Information per dimension in nats, from a sample of training documents; ranks the topics."""
        return gaussian_kl_per_unit(vectors.mean, vectors.std)  # [K]

    def word_directions(self) -> Tensor:
        """One vector per word in the space of h, [V, K]: what moving h that way does to the word."""
        raise NotImplementedError

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
        variance = gaussian.std.square() @ self.axes.square()
        return DiagonalGaussian(gaussian.mean @ self.axes, 0.5 * variance.log())
