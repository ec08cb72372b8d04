"""SBN and fDARN: document models with Bernoulli latents, which differ in their prior (Mnih and Gregor 2014).

    prior, SBN         p(h) = prod_k Bernoulli(sigmoid(c_k)), c learned: a sigmoid belief network of one layer
    prior, fDARN       p(h) = prod_k Bernoulli(sigmoid(c_k + sum_{j<k} W_kj h_j)), c and W learned: a deep
                       autoregressive network (Gregor et al. 2014) with a factorial inference network
    posterior          q(h | X) = prod_k Bernoulli(sigmoid(a_k(X)))
    likelihood         p(X | h) = prod_i softmax(h^T R + b)_{x_i}
    KL                 `latent/bound.py::elbo` takes the closed form `latent/discrete.py::bernoulli_kl` for SBN, and for
                       fDARN, which has none, an estimate from draws of q (`latent/bound.py::monte_carlo_kl`)

No gradient runs through h: see `latent/estimators.py`. In prediction q may be refined: mean-field steps on the
generative model, starting from the inference network's q. The bound holds for any q.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.latent import AutoregressiveBernoullis, BaselineInput, Bernoullis, LocalLogOdds
from varitext.layers.counts import CountEncoder, multinomial_log_likelihood, sparse_times_dense
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Encoding,
    Recipe,
    check_steps,
    training_schedule,
)
from varitext.models.documents.bounds import bernoulli_kl_per_dimension
from varitext.runtime.randomness import seeded, stream

STEP = 0.2  # damping of a refinement step
MAX_LOGIT = 15.0  # largest logit that refinement aims at: a probability of 3e-7
PRIOR_DRAWS = 2000


class BernoulliNetwork(DocumentNetwork):
    """Everything except the prior: subclasses add `add_prior`, `prior` and `prior_probabilities`."""

    free_axes = False  # a unit is either on or off, so its axis is not arbitrary

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
        self.refinement_steps = check_steps("refinement_steps", refinement_steps)
        self.encoder = CountEncoder(vocabulary_size, hidden_dim, hidden_layers, activation)
        self.head = nn.Linear(hidden_dim, latent_dim)
        self.decoder = nn.Linear(latent_dim, vocabulary_size)  # weight: R^T, bias: b
        nn.init.normal_(self.decoder.weight, std=0.05)
        self.add_prior(latent_dim)

    def add_prior(self, latent_dim: int) -> None:
        """Create the parameters of p(h)."""
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
        return torch.log_softmax(self.decoder(h), -1)  # [S, B, V]

    @torch.no_grad()
    def refine(self, posterior: Bernoullis, encoding: Encoding) -> Bernoullis:
        """Take steps towards the optimal logits of each unit, given the probabilities of the others:

            a_k  =  log p(h_k = 1) - log p(h_k = 0)  +  log p(X | h_k = 1) - log p(X | h_k = 0)

        with the last difference to second order around those probabilities. Steps are damped, since all units move at
        once.
        """
        batch, directions, logits = encoding.batch, self.decoder.weight, posterior.logits
        observed = sparse_times_dense(batch, batch.counts, directions)  # [B, K]   R X
        for _ in range(self.refinement_steps):
            h = torch.sigmoid(logits)  # [B, K]
            probabilities = torch.softmax(self.decoder(h), -1)  # [B, V]
            expected = probabilities @ directions
            variance = probabilities @ directions.square() - expected.square()
            gain = observed - batch.lengths[:, None] * (expected + (0.5 - h) * variance)
            best = (self.prior(encoding).local_log_odds(h) + gain).clamp(-MAX_LOGIT, MAX_LOGIT)
            logits = logits + STEP * (best - logits)
        return Bernoullis(logits)

    def prior(self, encoding: Encoding) -> Bernoullis | AutoregressiveBernoullis:
        raise NotImplementedError

    def prior_probabilities(self) -> Tensor:
        """p(h_k = 1), [K], the vector of a document without words."""
        raise NotImplementedError

    @torch.no_grad()
    def local_log_odds(self, h: Tensor, encoding: Encoding) -> LocalLogOdds:
        """Turning h_k on multiplies the weight of word w by exp(R_wk). Hence, with p = softmax(h^T R + b),

            log p(X | h_k = 1) - log p(X | h_k = 0)  =  (R X)_k - N log sum_w p_w exp(R_wk)      if h_k is 0

        and the same with -R and the sign reversed if it is 1: all K in one matrix product.
        """
        batch, directions = encoding.batch, self.decoder.weight
        probabilities = torch.softmax(self.decoder(h), -1)  # [S, B, V]
        turned_on, turned_off = ((probabilities @ (sign * directions).exp()).log() for sign in (1, -1))  # [S, B, K]
        normaliser = torch.where(h == 0, turned_on, -turned_off)
        observed = sparse_times_dense(batch, batch.counts, directions)  # [B, K]   R X
        return LocalLogOdds(observed - batch.lengths[:, None] * normaliser, self.prior(encoding).local_log_odds(h))

    def baseline_input(self, encoding: Encoding) -> BaselineInput:
        """The baseline reads q's hidden layer and the unigram log probability; f grows with the document's length."""
        batch = encoding.batch
        per_entry = batch.counts * self.word_log_frequencies[batch.words]
        lengths = batch.lengths.clamp(min=1)
        unigram = torch.zeros_like(lengths).index_add_(0, batch.documents, per_entry) / lengths
        return BaselineInput(torch.cat([encoding.hidden, unigram[:, None]], 1), lengths)

    # Vectors and training

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """q(h_k = 1 | X), and the standard deviation sqrt(p (1 - p))."""
        probabilities, known = self.posterior(self.encode(batch)).probabilities, batch.lengths > 0
        if not known.all():
            probabilities = torch.where(known[:, None], probabilities, self.prior_probabilities())
        return DocumentVectors(probabilities, (probabilities * (1 - probabilities)).sqrt())

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return bernoulli_kl_per_dimension(vectors.mean)

    def linear_decoder(self) -> nn.Linear:
        return self.decoder

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from self.head.parameters()
        yield from self.estimator.parameters()  # the baseline of `nvil`

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        """Both presets fit the same model; docs/explanation/discrete-latents.md measures the choices."""
        if preset == "paper":  # the estimator of Mnih and Gregor; learning rate and regularisation are ours
            return Recipe(
                {"estimator": "nvil"}, training_schedule(documents, 1e-3), DocumentObjective(length_exponent=0.7)
            )
        architecture = {"estimator": "local_expectation", "refinement_steps": 10}
        return Recipe(architecture, training_schedule(documents, 5e-3), DocumentObjective(length_exponent=0.7))


class SBN(BernoulliNetwork):
    """Sigmoid belief network: K independent Bernoulli units."""

    def add_prior(self, latent_dim: int) -> None:
        self.prior_logits = nn.Parameter(torch.zeros(latent_dim))  # c

    def prior(self, encoding: Encoding) -> Bernoullis:
        return Bernoullis(self.prior_logits.expand(len(encoding.batch), -1))

    def prior_probabilities(self) -> Tensor:
        return torch.sigmoid(self.prior_logits)


class FDARN(BernoulliNetwork):
    """Deep autoregressive network: K Bernoulli units, each of which depends on those before it."""

    def add_prior(self, latent_dim: int) -> None:
        self.prior_bias = nn.Parameter(torch.zeros(latent_dim))  # c
        self.prior_weights = nn.Parameter(torch.zeros(latent_dim, latent_dim))  # W, used below the diagonal

    def prior(self, encoding: Encoding) -> AutoregressiveBernoullis:
        return AutoregressiveBernoullis(self.prior_bias, self.prior_weights)

    def prior_probabilities(self) -> Tensor:
        """p(h_k = 1) estimated from draws with a fixed seed: there is no closed form."""
        with seeded(stream(0, "evaluation noise"), self.prior_bias.device):
            draws = AutoregressiveBernoullis(self.prior_bias, self.prior_weights).sample(PRIOR_DRAWS)
        return draws.mean(0)
