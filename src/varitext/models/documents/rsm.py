"""RSM, the replicated softmax (Hinton and Salakhutdinov 2009): a Boltzmann machine of words and binary hidden units.

    p(X) = 1/Z_N sum_h exp( sum_w x_w b_w + sum_k h_k (N a_k + sum_w x_w W_wk) )

    posterior           p(h_k = 1 | X) = sigmoid(N a_k + sum_w x_w W_wk): exact, so there is no q and no KL
    log p(X)            an estimate, because Z_N is estimated by annealed importance sampling

N, the document's length, multiplies the hidden bias a, and every length has its own Z_N.

*Training* is by contrastive divergence: up at the document, down at its reconstruction after some Gibbs steps, one at
first and more later. This stays near the documents, so that probability may accumulate elsewhere. Part of the negative
phase therefore uses `persistent` chains (Tieleman 2008), which continue from update to update. They take the lengths of
the batch's documents; short ones, for which p(h) is flat, help them move between peaks. Some peaks of p(h), with dozens
of units on, are reached from few h only and could outweigh all documents. So one chain in eight restarts at each update
at the highest peaks above hundreds of random h, and the negative phase lowers them before they grow.

*The partition function.* With the words summed out, the hidden units of a document of N words have

    p_N(h) = exp(N g(h)) / Z_N,     g(h) = a . h + log sum_w exp(b_w + W_w . h)

so the length is an inverse temperature. A single annealing run that starts at N = 0, with p(h) uniform and Z_0 = 2^K,
and adds word after word passes every length, and its weights so far estimate that length's Z_N (Neal 2001; unbiased, so
log Z_N is slightly low on average). Between two lengths the added words come in gradually: their a and W are multiplied
by a strength that rises from 0 to 1, which keeps Gibbs sampling easy.

A run can miss a narrow peak of g that only few h lead to, and would then overestimate every document's probability. So
peaks h_1, h_2, .. of g are also climbed from the ends of its chains and from thousands of random h:
log sum_i exp(N g(h_i)) is never above log Z_N, and replaces the estimate where it is larger.

log Z_N is convex in N, so a straight line between visited lengths is never below it: interpolation can only
underestimate a document's probability.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn
from torch.nn import functional

from varitext.batches.counts import CountBatch, CountBatches
from varitext.latent import Bound, Estimate
from varitext.layers.counts import multinomial_log_likelihood, sparse_times_dense
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Recipe,
    training_schedule,
)
from varitext.models.documents.bounds import DocumentBounds, EstimateKind, bernoulli_kl_per_dimension, exact_bounds
from varitext.runtime.randomness import seeded, stream

CHAINS = 128
SEARCHED = 256  # random h per update from which peaks are climbed
RESTARTED = 8  # one in 8 chains restarts at one of the highest peaks
BLOCK = 1000  # random h that climb to peaks together, each with V numbers
KEPT = 20  # highest peaks of a block
BLOCKS_PER_CHAIN = 0.1  # so that 200 chains come with 20,000 such h


class RSM(DocumentNetwork):
    """An undirected model of bags of words; a document's vector is its hidden units' probabilities."""

    estimate_kind = EstimateKind(
        "estimate",
        "log p(X) with the partition function of each length estimated by annealed importance sampling over n_samples "
        "chains: not a bound; see standard_error",
    )
    free_axes = False
    independent_noise = False
    whole_counts = True
    updates: Tensor  # number so far; a buffer, so that a resumed run continues with the right number of steps
    chains: Tensor  # [., K]   hidden units of the persistent chains

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        most_steps: int = 5,
        updates_per_step: int = 500,
        persistent: float = 0.5,
    ):
        """`persistent` is the share of persistent chains in the negative phase; 0 is plain contrastive divergence."""
        super().__init__(vocabulary_size, latent_dim)
        self.persistent = persistent
        self.most_steps, self.updates_per_step = most_steps, updates_per_step
        self.word_weights = nn.Parameter(0.01 * torch.randn(vocabulary_size, latent_dim))  # W
        self.word_bias = nn.Parameter(torch.zeros(vocabulary_size))  # b
        self.hidden_bias = nn.Parameter(torch.zeros(latent_dim))  # a
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))
        self.register_buffer("chains", torch.zeros(CHAINS, latent_dim))

    def initialize_from_frequencies(self) -> None:
        with torch.no_grad():
            self.word_bias.copy_(self.word_log_frequencies)

    def softmax(self) -> "ReplicatedSoftmax":
        return ReplicatedSoftmax(self.word_weights, self.word_bias, self.hidden_bias)

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """The gradient of contrastive divergence; the value reported is log p(X | h) at the first h drawn."""
        fantasy, reconstruction = self.gibbs(batch, self.steps())
        down = self.log_unnormalised(fantasy)
        if self.persistent:
            down = (1 - self.persistent) * down + self.persistent * self.log_unnormalised(self.dream(batch))
        if self.training:
            self.updates += 1
        difference = self.log_unnormalised(batch) - down  # [B]
        zeros = difference.new_zeros(len(batch), self.latent_dim)
        return Estimate(difference, Bound(reconstruction, zeros))

    def steps(self) -> int:
        return min(self.most_steps, 1 + int(self.updates) // self.updates_per_step)

    def log_unnormalised(self, batch: CountBatch) -> Tensor:
        """log of p(X) Z_N, with the hidden units summed out."""
        words = sparse_times_dense(batch, batch.counts, self.word_bias[:, None])[:, 0]
        return words + functional.softplus(self.hidden_input(batch)).sum(1)  # [B]

    def hidden_input(self, batch: CountBatch) -> Tensor:
        summed = sparse_times_dense(batch, batch.counts, self.word_weights)
        return summed + batch.lengths[:, None] * self.hidden_bias  # [B, K]

    @torch.no_grad()
    def gibbs(self, batch: CountBatch, steps: int) -> tuple[CountBatch, Tensor]:
        """The documents after `steps` Gibbs steps, and the log likelihood of the documents given their first h."""
        state, first = batch, batch.lengths.new_zeros(len(batch))
        for step in range(steps):
            h = torch.bernoulli(torch.sigmoid(self.hidden_input(state)))
            scores = self.softmax().word_scores(h)
            if step == 0:
                first = multinomial_log_likelihood(scores[None], batch)[0]
            state = _drawn(scores, batch)
        return state, first

    @torch.no_grad()
    def dream(self, batch: CountBatch) -> CountBatch:
        """Documents of the same lengths from the persistent chains, after the same number of Gibbs steps."""
        turn = (torch.arange(len(batch), device=batch.words.device) + int(self.updates) * len(batch)) % CHAINS
        peaks = highest_peaks(self.softmax(), SEARCHED, kept=len(turn) // RESTARTED)
        places = torch.randperm(len(turn), device=turn.device)[: len(peaks)]
        h, state = self.chains[turn].index_copy(0, places, peaks), batch
        for _ in range(self.steps()):
            state = _drawn(self.softmax().word_scores(h), batch)
            h = torch.bernoulli(torch.sigmoid(self.hidden_input(state)))
        self.chains[turn] = h
        return state

    def log_partition(self, longest: int, chains: int, bridges: int = 4) -> "LogPartition":
        detached = ReplicatedSoftmax(*(parameter.detach() for parameter in self.softmax()))
        return anneal(detached, longest, chains, bridges=bridges)

    @torch.no_grad()
    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """More samples mean more chains and slower annealing."""
        batches = CountBatches(counts, self.word_bias.device).in_order(512)
        unnormalised = torch.cat([self.log_unnormalised(batch) for batch in batches]).double().cpu().numpy()
        lengths = np.asarray(counts.sum(1), np.float64).ravel()
        chains, bridges = max(50, 10 * samples), max(1, samples // 5)
        with seeded(stream(seed, "evaluation noise"), self.word_bias.device):
            log_z = self.log_partition(round(lengths.max()), chains, bridges)
        bounds = exact_bounds(unnormalised - log_z.at(lengths), counts, self.latent_dim)
        return bounds._replace(standard_errors=log_z.standard_error_at(lengths), drawn=chains)

    @torch.no_grad()
    def completion_log_likelihood(self, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
        """sum_w count_w log p(w | observed), with each hidden word as one more word of the document.

            p(w | X)  =  p(X, w) / sum_v p(X, v)

        Both have N + 1 words, so their Z is the same and cancels: exact, without draws.
        """
        inputs = self.hidden_input(observed) + self.hidden_bias  # [B, K]   without the word
        scores = self.word_bias.repeat(len(observed), 1)  # [B, V]
        for unit in range(self.latent_dim):  # one at a time: all at once would be [B, V, K]
            scores += functional.softplus(inputs[:, unit, None] + self.word_weights[:, unit])
        return multinomial_log_likelihood(scores[None], hidden)[0]

    # Vectors and training

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """p(h_k = 1 | X), which is exact, and the standard deviation sqrt(p (1 - p))."""
        probabilities = torch.sigmoid(self.hidden_input(batch))
        return DocumentVectors(probabilities, (probabilities * (1 - probabilities)).sqrt())

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return bernoulli_kl_per_dimension(vectors.mean)

    def word_directions(self) -> Tensor:
        return self.word_weights

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        training = replace(training_schedule(documents, 1e-2, passes=30), learning_rate=1e-2, kl_warm_up=0)
        updates = training.epochs * math.ceil(documents / training.batch_size)
        architecture = {"most_steps": 5, "updates_per_step": math.ceil(updates / 5)}
        return Recipe(architecture, training, DocumentObjective(length_exponent=0.7))


def _drawn(scores: Tensor, like: CountBatch) -> CountBatch:
    """Documents of the same lengths, with words drawn from softmax(scores)."""
    lengths = like.lengths.round().long()
    rows = torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)
    words = draw_words(scores, rows)
    return CountBatch(
        words=words,
        counts=torch.ones_like(words, dtype=like.counts.dtype),
        documents=rows,
        starts=lengths.cumsum(0) - lengths,
        lengths=like.lengths,
        vocabulary_size=like.vocabulary_size,
    )


# The partition function


class LogPartition(NamedTuple):
    """Estimates of log Z at the lengths visited, with their standard errors over chains."""

    lengths: np.ndarray  # [G], from 0 up
    values: np.ndarray  # [G]
    standard_errors: np.ndarray  # [G]

    def at(self, lengths: np.ndarray) -> np.ndarray:
        self._refuse_longer(lengths)
        return np.asarray(np.interp(lengths, self.lengths, self.values))

    def standard_error_at(self, lengths: np.ndarray) -> np.ndarray:
        self._refuse_longer(lengths)
        return np.asarray(np.interp(lengths, self.lengths, self.standard_errors))

    def _refuse_longer(self, lengths: np.ndarray) -> None:
        if len(lengths) and lengths.max() > self.lengths[-1]:
            raise ValueError(f"log Z is known up to {self.lengths[-1]} words, not for {lengths.max():g}")


class ReplicatedSoftmax(NamedTuple):
    """The three parameters, and Gibbs sampling for R documents or chains at once."""

    word_weights: Tensor  # [V, K]   W
    word_bias: Tensor  # [V]   b
    hidden_bias: Tensor  # [K]   a

    def word_scores(self, h: Tensor, strength: float = 1.0) -> Tensor:
        return torch.addmm(self.word_bias, h, self.word_weights.T, alpha=strength)  # [R, V]

    def energy_per_word(self, h: Tensor, strength: float = 1.0) -> Tensor:
        """g(h), [R], with a and W multiplied by `strength`."""
        return strength * (h @ self.hidden_bias) + self.word_scores(h, strength).logsumexp(1)  # [R]

    def uphill(self, h: Tensor, most: int = 20) -> Tensor:
        """Climb from each row of h to a peak of g, changing many units at a time. g is convex and lies above its
        tangent planes, so turning on exactly the units whose gradient is positive never lowers g."""
        for _ in range(most):
            slope = self.hidden_bias + torch.softmax(self.word_scores(h), 1) @ self.word_weights  # [R, K]
            if torch.equal(pointed_to := (slope > 0).to(h), h):
                break
            h = pointed_to
        return h

    def summed_words(self, scores: Tensor, length: int) -> Tensor:
        """a + W_w summed over `length` words drawn from softmax(scores), [R, K]."""
        if not length:
            return scores.new_zeros(len(scores), len(self.hidden_bias))
        if length > scores.shape[1]:  # then drawing counts is less work than drawing words
            summed = draw_counts(scores, length) @ self.word_weights
        else:
            rows = torch.arange(len(scores), device=scores.device).repeat_interleave(length)
            summed = functional.embedding_bag(draw_words(scores, rows).view(-1, length), self.word_weights, mode="sum")
        return summed + length * self.hidden_bias


def draw_words(scores: Tensor, rows: Tensor) -> Tensor:
    """One word from softmax(scores[row]) for each entry of `rows`, which are sorted."""
    vocabulary_size = scores.shape[1]
    cumulative = torch.softmax(scores, 1).double().cumsum(1)
    cumulative /= cumulative[:, -1:].clone()
    # row r's cumulative probabilities go from r to r + 1: one search serves all rows
    cumulative += torch.arange(len(scores), device=scores.device)[:, None]
    heights = rows + torch.rand(len(rows), dtype=torch.double, device=rows.device)
    words = torch.searchsorted(cumulative.view(-1), heights, right=True) - rows * vocabulary_size
    return words.clamp(0, vocabulary_size - 1)


def draw_counts(scores: Tensor, length: int) -> Tensor:
    """Counts of `length` words drawn from softmax(scores), [R, V]."""
    generator = np.random.default_rng(int(torch.randint(2**62, ())))
    probabilities = torch.softmax(scores.double(), 1).cpu().numpy()
    counts = generator.multinomial(length, probabilities / probabilities.sum(1, keepdims=True))
    return torch.from_numpy(counts).to(scores)


def draw_states(model: ReplicatedSoftmax, number: int) -> Tensor:
    """Uniformly random h, [number, K]."""
    drawn = torch.randint(2, (number, len(model.hidden_bias)), device=model.word_bias.device)
    return drawn.to(model.word_bias.dtype)


@torch.no_grad()
def anneal(
    model: ReplicatedSoftmax, longest: int, chains: int = 200, growth: int = 64, bridges: int = 4
) -> LogPartition:
    """log Z_N from N = 0 to `longest`.

    Each step adds one word up to N = `growth`, then 1/`growth` of the length, in `bridges` parts. The first few words,
    which change h most, are added in more parts.
    """
    h = draw_states(model, chains)
    log_weights = torch.full((chains,), h.shape[1] * math.log(2), dtype=torch.double, device=h.device)
    length, lengths, weights = 0, [0], [log_weights.clone()]
    while length < longest:
        added = min(max(1, length // growth), longest - length)
        parts = max(bridges, growth // (length + 1))
        reached = model.word_bias.logsumexp(0).expand(chains)
        log_weights += added * reached.double()
        for part in range(1, parts + 1):
            strength = part / parts
            before, reached = model.energy_per_word(h, (part - 1) / parts), model.energy_per_word(h, strength)
            log_weights += added * (reached - before).double()
            # words given h, then h given words
            inputs = model.summed_words(model.word_scores(h), length)
            inputs += strength * model.summed_words(model.word_scores(h, strength), added)
            h = torch.bernoulli(torch.sigmoid(inputs))
        length += added
        lengths.append(length)
        weights.append(log_weights.clone())
    elsewhere = (highest_peaks(model, BLOCK, KEPT) for _ in range(math.ceil(BLOCKS_PER_CHAIN * chains)))
    peaks = peak_energies(model, torch.cat([h, *elsewhere]))
    return _at_least(_estimates(np.array(lengths), torch.stack(weights)), peaks.cpu().numpy())


def highest_peaks(model: ReplicatedSoftmax, number: int, kept: int) -> Tensor:
    """The highest distinct peaks above random h, [<= kept, K]."""
    peaks: Tensor = torch.unique(model.uphill(draw_states(model, number)), dim=0)
    return peaks[model.energy_per_word(peaks).topk(min(kept, len(peaks))).indices]


def peak_energies(model: ReplicatedSoftmax, h: Tensor, sweeps: int = 2) -> Tensor:
    """g at the distinct peaks above h, found by changing single units while that raises g."""
    h = torch.unique(h, dim=0)
    energy = model.energy_per_word(h)
    for unit in list(range(h.shape[1])) * sweeps:
        turned = h.clone()
        turned[:, unit] = 1 - turned[:, unit]
        there = model.energy_per_word(turned)
        higher = there > energy
        h, energy = torch.where(higher[:, None], turned, h), torch.where(higher, there, energy)
    return model.energy_per_word(torch.unique(h, dim=0)).double()


def _at_least(estimated: LogPartition, peaks: np.ndarray) -> LogPartition:
    """The larger of the estimate and the sum over the peaks alone."""
    floor = np.logaddexp.reduce(np.outer(estimated.lengths, peaks), axis=1)
    return estimated._replace(values=np.maximum(estimated.values, floor))


def _estimates(lengths: np.ndarray, log_weights: Tensor) -> LogPartition:
    """The log of the mean weight, and its standard error by the delta method."""
    chains = log_weights.shape[1]
    values = log_weights.logsumexp(1) - math.log(chains)
    relative = (log_weights - values[:, None]).exp()  # mean one
    errors = relative.std(1) / math.sqrt(chains)
    return LogPartition(lengths, values.cpu().numpy(), errors.cpu().numpy())
