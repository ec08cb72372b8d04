"""Document models with Bernoulli latents: everything but the prior.

    inference network   q(h | X) = prod_k Bernoulli(sigmoid(a_k(X)))
    generative model    p(X | h) = prod_i softmax(h^T R + b)_{x_i}
    KL                  `latent/bound.py::kl`: by formula, or from draws where the prior has none

h are K Bernoulli units, each of which turns a topic on. No gradient runs through them: see `latent/estimators.py`.

In prediction q may be refined: what the inference network says is the start of a few mean-field steps on the generative
model itself. The bound is a bound for any q, and the network cannot know all documents by heart.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import AutoregressiveBernoullis, BaselineInput, Bernoullis
from varitext.latent.estimators import LocalLogOdds
from varitext.layers.counts import CountEncoder, multinomial_log_likelihood, sparse_times_dense
from varitext.models.documents.base import DocumentNetwork, DocumentVectors
from varitext.models.documents.information import bernoulli_kl_per_unit
from varitext.models.documents.recipe import DocumentObjective, Recipe, schedule_for

STEP = 0.2  # how far a refinement step goes
SUREST = 15.0  # the largest logit that refinement aims at: a probability of 3e-7


class Encoding(NamedTuple):
    hidden: Tensor  # [B, H]
    batch: CountBatch


class BernoulliNetwork(DocumentNetwork):
    """A model adds `add_prior`, `prior`, and `prior_probabilities` for documents of no words."""

    free_axes = False  # a unit is on or off: its axis has a meaning of its own

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        estimator: str = "local_expectation",
        hidden_dim: int = 256,
        hidden_layers: int = 2,
        activation: str = "silu",
        refinement_steps: int = 0,
    ):
        super().__init__(vocabulary_size, latent_dim, estimator, baseline_dim=hidden_dim + 1)
        self.refinement_steps = refinement_steps
        self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation)
        self.head = nn.Linear(hidden_dim, latent_dim)
        self.decoder = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.decoder.weight, std=0.05)
        self.add_prior(latent_dim)

    def add_prior(self, latent_dim: int) -> None:
        """Make the parameters of p(h)."""
        raise NotImplementedError

    # Three of the four methods of the framework

    def encode(self, batch: CountBatch) -> Encoding:
        return Encoding(self.encoder(batch), batch)

    def posterior(self, encoding: Encoding) -> Bernoullis:
        posterior = Bernoullis(self.head(encoding.hidden))
        return posterior if self.training else self.refine(posterior, encoding)

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return multinomial_log_likelihood(self.decoder(h), encoding.batch)  # [S, B]

    def word_log_probabilities(self, h: Tensor) -> Tensor:
        """log p(w | h) of every word: for completing documents."""
        return torch.log_softmax(self.decoder(h), -1)  # [S, B, V]

    @torch.no_grad()
    def refine(self, posterior: Bernoullis, encoding: Encoding) -> Bernoullis:
        """Steps towards the logits that are best for each unit if the others stand at their probabilities:

            a_k  =  log p(h_k = 1) - log p(h_k = 0)  +  log p(X | h_k = 1) - log p(X | h_k = 0)

        the last difference to second order around those probabilities. Short steps, since all units move at once.
        """
        batch, directions, logits = encoding.batch, self.decoder.weight, posterior.logits
        observed = sparse_times_dense(batch, batch.counts, directions)  # [B, K]   R X
        for _ in range(self.refinement_steps):
            h = torch.sigmoid(logits)  # [B, K]
            probabilities = torch.softmax(self.decoder(h), -1)  # [B, V]
            expected = probabilities @ directions
            variance = probabilities @ directions.square() - expected.square()
            gain = observed - batch.lengths[:, None] * (expected + (0.5 - h) * variance)
            best = (self.prior(encoding).local_log_odds(h) + gain).clamp(-SUREST, SUREST)
            logits = logits + STEP * (best - logits)
        return Bernoullis(logits)

    def prior(self, encoding: Encoding) -> Bernoullis | AutoregressiveBernoullis:
        raise NotImplementedError

    def prior_probabilities(self) -> Tensor:
        """p(h_k = 1), [K]."""
        raise NotImplementedError

    @torch.no_grad()
    def local_log_odds(self, h: Tensor, encoding: Encoding) -> LocalLogOdds:
        """Turning h_k on multiplies the weight of word w by exp(R_wk), hence, with p = softmax(h^T R + b),

            log p(X | h_k = 1) - log p(X | h_k = 0)  =  (R X)_k - N log sum_w p_w exp(R_wk)      where h_k is 0

        and the same with -R, reversed, where it is 1: all K of them in one product of matrices.
        """
        batch, directions = encoding.batch, self.decoder.weight
        probabilities = torch.softmax(self.decoder(h), -1)  # [S, B, V]
        turned_on, turned_off = ((probabilities @ (sign * directions).exp()).log() for sign in (1, -1))  # [S, B, K]
        normaliser = torch.where(h == 0, turned_on, -turned_off)
        observed = sparse_times_dense(batch, batch.counts, directions)  # [B, K]   R X
        return LocalLogOdds(observed - batch.lengths[:, None] * normaliser, self.prior(encoding).local_log_odds(h))

    def baseline_input(self, encoding: Encoding) -> BaselineInput:
        """C reads what q reads, and what the unigram model says of a word; f grows with the words of a document."""
        batch = encoding.batch
        per_entry = batch.counts * self.word_log_frequencies[batch.words]
        lengths = batch.lengths.clamp(min=1)
        unigram = torch.zeros_like(lengths).index_add_(0, batch.documents, per_entry) / lengths
        return BaselineInput(torch.cat([encoding.hidden, unigram[:, None]], 1), lengths)

    # What users and training look at

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """q(h_k = 1 | X) and the std of a Bernoulli unit, sqrt(p (1 - p))."""
        probabilities, known = self.posterior(self.encode(batch)).probabilities, batch.lengths > 0
        if not known.all():
            probabilities = torch.where(known[:, None], probabilities, self.prior_probabilities())
        return DocumentVectors(probabilities, (probabilities * (1 - probabilities)).sqrt())

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return bernoulli_kl_per_unit(vectors.mean)

    def linear_decoder(self) -> nn.Linear:
        return self.decoder

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()
        yield from self.estimator.parameters()  # the baseline of nvil

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """Both presets fit the same model; docs/discrete.md says what each choice is worth."""
        if preset == "paper":  # that of Mnih and Gregor; rates and regularisation are ours
            return Recipe({"estimator": "nvil"}, schedule_for(documents, 1e-3), DocumentObjective(length_exponent=0.7))
        architecture = {"estimator": "local_expectation", "refinement_steps": 10}
        return Recipe(architecture, schedule_for(documents, 5e-3), DocumentObjective(length_exponent=0.7))
