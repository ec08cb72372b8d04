"""NVDM with a Dirichlet-compound-multinomial (DCM) likelihood, which models burstiness.

    prior               p(h) = N(0, I)
    posterior           q(h | X) = N(mean, factor factor^T), a Laplace approximation corrected by a network
    likelihood          p(X | h): a DCM with masses a_w = exp(h^T R_w + b_w + l_w log N), N the document's length; a
                        word that has occurred is more likely to occur again, and so are others of its group
                        (`dcm_decoder.py`, `layers/dcm.py`)
    KL                  KL(q(h | X) || N(0, I)), closed form: `latent/gaussian.py::full_gaussian_kl`

The inference network resembles NVDM's `statistics`: it reads one Newton step from h = 0 on log p(h | X), the length and
the number of distinct words, K + 2 numbers, and corrects the step. From there q makes a Newton step with the full
curvature, K x K, whose inverse is its covariance, stretched in each dimension by the network. In prediction more steps
with the same curvature follow, each kept only if log p(h, X) goes up.

It is a distribution over the same sequences of words as NVDM, so perplexities are comparable.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.compiled import usable
from varitext.corpora.sharded_counts import Counts
from varitext.latent import Bound, DiagonalGaussian, FullGaussian, elbo
from varitext.latent.estimators import Estimate, Reparameterised
from varitext.latent.gaussian import MEAN_RANGE
from varitext.layers.counts import SampledWords, centred_log_length
from varitext.layers.curvature import covariance_times
from varitext.layers.dense import MLP, GaussianHead
from varitext.layers.grouped_counts import Entries, GroupedCounts, WordGroups
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Recipe,
    check_steps,
    training_schedule,
)
from varitext.models.documents.dcm_compiled import MAX_STEP, STRETCH_RANGE, CompiledDCM
from varitext.models.documents.dcm_decoder import ROUNDING, DCMDecoder, GroupMoments, LogJoint, group_words


class Encoding(NamedTuple):
    hidden: Tensor  # [B, H]
    start: Tensor  # [B, K]   the Newton step from h = 0
    counts: GroupedCounts
    weights: Tensor  # [V, K + 2]   of the decoder
    moments: GroupMoments


class Inferred(NamedTuple):
    """What `encode` returns in prediction if q(h | X) was computed in C."""

    q: FullGaussian
    counts: GroupedCounts
    weights: Tensor  # [V, K + 2]   of the decoder


class _Estimated(nn.Module):
    """The objective as a module, so that it can be called with other parameters."""

    def __init__(self, network: "NVDMDCM"):
        super().__init__()
        self.network = network

    def forward(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        estimate: Estimate = self.network.estimator(self.network, batch, samples, kl_weight)
        return estimate


class NVDMDCM(DocumentNetwork):
    """A variational autoencoder of bags of words with a DCM likelihood."""

    likelihood = "DCM (Dirichlet compound multinomial)"
    whole_counts = True
    parallel_training = True

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
        word_share: float = 1.0,
    ):
        """`groups` is the number of word groups; with 1 the likelihood is the plain DCM distribution. `word_share` is
        the share of the vocabulary that a step of training computes, besides the batch's own words."""
        super().__init__(vocabulary_size, latent_dim, estimator)
        self.word_share = word_share
        self.refinement_steps, self.activation = check_steps("refinement_steps", refinement_steps), activation
        self.decoder = DCMDecoder(latent_dim, vocabulary_size, groups)
        self.encoder = MLP(latent_dim + 2, hidden_dim, hidden_layers, activation)
        self.head = GaussianHead(hidden_dim, latent_dim)
        self._compiled: CompiledDCM | None = None
        self._cached: tuple[list[tuple[int, int]], tuple[Tensor, GroupMoments]] | None = None
        self.step_gates = nn.Parameter(torch.zeros(latent_dim))  # share of a Newton step to take, as a logit

    def learn_cooccurrence(self, counts: Counts) -> None:
        groups = torch.from_numpy(group_words(counts, len(self.decoder.group_log_scales)))
        self.decoder.group_of_word.copy_(groups)

    def initialize_from_frequencies(self) -> None:
        self.decoder.start_from(self.word_log_frequencies)

    def initialize_new_words(self, first: int) -> None:
        self.decoder.place_words(first)

    # The four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding | Inferred:
        if step := self._compiled_prediction():
            q = step.infer(batch, 1 + self.refinement_steps)
            return Inferred(q, self.decoder.count(batch), self.decoder.weights())
        counts = self.decoder.count(batch)
        weights, moments = self._from_weights(counts.layout)
        start = self.decoder.newton_step_from_zero(counts, moments).clamp(*MEAN_RANGE)
        different = torch.zeros_like(batch.lengths).index_add_(0, batch.documents, torch.ones_like(batch.counts))
        sizes = torch.stack([centred_log_length(batch), torch.log1p(different) - 4, *self._further_inputs(batch)], 1)
        return Encoding(self.encoder(torch.cat([start, sizes], 1)), start, counts, weights, moments)

    def _further_inputs(self, batch: CountBatch) -> list[Tensor]:
        """Further inputs of the network, each with one number per document."""
        return []

    def _from_weights(self, layout: WordGroups) -> tuple[Tensor, GroupMoments]:
        """Values that depend only on the weights; cached while these do not change, as in a fitted model."""
        parameters = list(self.decoder.parameters())
        if self.training or any(each.requires_grad for each in parameters):
            return self.decoder.weights(), self.decoder.moments(layout)
        state = [(each.data_ptr(), each._version) for each in (*parameters, layout.of_words)]
        if self._cached is None or self._cached[0] != state:
            self._cached = state, (self.decoder.weights(), self.decoder.moments(layout))
        return self._cached[1]

    def prior(self, encoding: Encoding | Inferred) -> DiagonalGaussian:
        return DiagonalGaussian.standard(encoding.q.mean if isinstance(encoding, Inferred) else encoding.start)

    def posterior(self, encoding: Encoding | Inferred) -> FullGaussian:
        if isinstance(encoding, Inferred):
            return encoding.q
        correction = self.head(encoding.hidden)
        guess = (encoding.start + correction.mean).clamp(*MEAN_RANGE)
        here = self.decoder.log_joint(guess.detach(), encoding.counts, encoding.weights.detach())
        root = self._root(here, encoding)
        if self.training:
            mean = self._step(guess, here, root)
        else:
            here = self._climb(here, root, encoding, 1 + self.refinement_steps)
            mean, root = here.h, self._root(here, encoding)
        return FullGaussian(mean, correction.log_std.clamp(*STRETCH_RANGE).exp(), root)

    def log_likelihood(self, h: Tensor, encoding: Encoding | Inferred) -> Tensor:
        return self.decoder.log_likelihood(h, encoding.counts, encoding.weights)  # [S, B]

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of a document's first word."""
        return self.decoder.word_log_probabilities(h)  # [S, B, V]

    def completion_log_likelihood(self, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
        """Each hidden word on its own, given h and the observed words."""
        encoding = self.encode(observed)
        words = Entries(hidden.words, hidden.documents, hidden.counts)
        h = self.posterior(encoding).rsample(samples)
        of_entries = self.decoder.next_word_log_probabilities(h, encoding.counts, words)  # [S, n]
        weighted = hidden.counts * (torch.logsumexp(of_entries, 0) - math.log(samples))
        return words.sums(weighted[None], len(hidden))[0]  # [B]

    def _root(self, here: LogJoint, encoding: Encoding) -> Tensor:
        return self.decoder.covariance_root(here.group_weights, encoding.moments, encoding.counts.batch)

    def _step(self, h: Tensor, here: LogJoint, root: Tensor) -> Tensor:
        """A gated Newton step, with the inverse curvature M^T M, M the root."""
        newton = covariance_times(root, here.gradient).clamp(-MAX_STEP, MAX_STEP)
        return (h + torch.sigmoid(self.step_gates) * newton).clamp(*MEAN_RANGE)

    def _climb(self, here: LogJoint, root: Tensor, encoding: Encoding, steps: int) -> LogJoint:
        """In prediction: the step of training, then others with the same curvature, each taken only if it goes up."""
        for _ in range(steps):
            there = self.decoder.log_joint(self._step(here.h, here, root), encoding.counts, encoding.weights)
            here = there.where_higher(here)
        return here

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """As in the base class, in training perhaps with some words for all."""
        if (chosen := self._sample_words(batch)) is None:
            return super().objective(batch, samples, kl_weight)
        some = {f"network.decoder.{name}": each for name, each in self.decoder.of_words(chosen).items()}
        given = batch.among(chosen.words), samples, kl_weight
        estimate: Estimate = torch.func.functional_call(_Estimated(self), some, given)
        return estimate

    def _sample_words(self, batch: CountBatch) -> SampledWords | None:
        """None for all words; also where several processes share a batch, since each knows its own words only."""
        alone = batch.share is None or batch.share.whole == len(batch)
        some = self.training and self.word_share < 1 and alone
        return self.decoder.sample_words(batch.words, self.word_share) if some else None

    # The same in C: gradients in training, and q in prediction

    def set_gradients(self, batch: CountBatch, weights: Tensor, samples: int, kl_weight: float) -> Bound | None:
        """With `workers`, if there are any; bound and gradients are those of `objective`."""
        step = self._compiled_dcm()
        if step is None or not isinstance(self.estimator, Reparameterised):
            return None
        if not all(each.requires_grad for each in step.parameters):
            return None
        return step.set_gradients(batch, weights, samples, kl_weight, self._sample_words(batch))

    def _compiled_prediction(self) -> CompiledDCM | None:
        return None if self.training or torch.is_grad_enabled() else self._compiled_dcm()

    def _compiled_dcm(self) -> CompiledDCM | None:
        if type(self) is not NVDMDCM or self.activation != "silu":
            return None
        if self._compiled is None or not self._compiled.reads(self.decoder):
            self._compiled = CompiledDCM(self.encoder, self.head, self.step_gates, self.decoder)
        return self._compiled if usable(*self._compiled.parameters) else None

    # Vectors

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """Mean and standard deviation of q(h | X), rotated; the prior's for a document without words."""
        return self._vectors_of(self.posterior(self.encode(batch)), batch)

    @property
    def has_joint_bound(self) -> bool:
        return type(self).evaluate is DocumentNetwork.evaluate  # a subclass may have another bound

    def vectors_and_bound(self, batch: CountBatch, samples: int) -> tuple[DocumentVectors, Tensor]:
        bound = elbo(self, batch, samples)
        q = bound.draws.posterior
        assert isinstance(q, FullGaussian)
        return self._vectors_of(q, batch), bound.elbo

    def _vectors_of(self, q: FullGaussian, batch: CountBatch) -> DocumentVectors:
        known = self._is_known(batch)
        std = ((q.root * q.stretch[:, None]) @ self.axes).square().sum(1).sqrt()
        return DocumentVectors(torch.where(known, q.mean @ self.axes, 0.0), torch.where(known, std, 1.0))

    def document_means(self, batch: CountBatch) -> Tensor:
        """The same means, without the gradient, curvature and variance at the end; without refinement, the guess."""
        steps = 1 + self.refinement_steps if self.refinement_steps else 0
        if step := self._compiled_prediction():
            return torch.where(self._is_known(batch), step.infer_means(batch, steps) @ self.axes, 0.0)
        encoding = self.encode(batch)
        assert isinstance(encoding, Encoding)
        guess = (encoding.start + self.head(encoding.hidden).mean).clamp(*MEAN_RANGE)
        if not steps:
            return torch.where(self._is_known(batch), guess @ self.axes, 0.0)
        here = self.decoder.log_joint(guess, encoding.counts, encoding.weights)
        root = self._root(here, encoding)
        here = self._climb(here, root, encoding, self.refinement_steps)
        last = self._step(here.h, here, root)
        gain = self.decoder.height(last, encoding.counts, encoding.weights) - here.value
        higher = gain > -ROUNDING * here.value.abs()  # if rounding hides the gain, the step is taken
        mean = torch.where(higher[:, None], last, here.h)
        return torch.where(self._is_known(batch), mean @ self.axes, 0.0)

    def _is_known(self, batch: CountBatch) -> Tensor:
        return ((batch.lengths > 0) | batch.with_vectors)[:, None]

    def linear_decoder(self) -> nn.Linear:
        return self.decoder.linear

    def word_logits(self, vectors: Tensor) -> Tensor:
        return self.word_log_probabilities(vectors)

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()
        yield self.step_gates

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """The only preset; this model is not in the paper."""
        short = words_per_document < 20  # titles and sentences need more passes
        word_dropout = 0.7 if documents < 5000 and not short else 0.0
        some_words = {"word_share": 0.3} if short and documents >= 30_000 else {}  # with fewer texts perplexity rises
        schedule = training_schedule(documents, 5e-3, passes=35 if short else 20)
        return Recipe(
            architecture={"groups": 300, "refinement_steps": 2} | some_words,
            training=dataclasses.replace(schedule, kl_warm_up=0.05),
            objective=DocumentObjective(length_exponent=0.3, word_dropout=word_dropout),
        )
