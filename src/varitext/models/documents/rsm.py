"""RSM, the replicated softmax (Hinton and Salakhutdinov 2009): a Boltzmann machine of words and binary hidden units.

    p(X) = 1/Z_N sum_h exp( sum_w x_w b_w + sum_k h_k (N a_k + sum_w x_w W_wk) )

There is no q and no KL: given the words the hidden units are independent, and p(h = 1 | X) is exact.

N, the document's length, multiplies the hidden bias a, and Z_N is its own for every length. Learning is by contrastive
divergence: up at the document, down at what some Gibbs steps make of it; one step at first, more as training goes on.
That never looks far from the documents, and lets probability pile up in places where no document is. So a part of the
way down is at `persistent` chains (Tieleman 2008), which go on from update to update and find such places. They take
the lengths of the batch's documents, and short ones, where p(h) is flat, help them from peak to peak. Some places no
chain finds for long: peaks of p(h) that only few h lead to, with dozens of units on, which outweigh all documents. So
an eighth of the chains begins anew at each update, at the highest peaks above some hundreds of h drawn at random; the
step down wears such a peak off before it has grown.

Z_N cannot be computed but estimated, by annealed importance sampling (`annealing.py`): perplexity is an estimate, not
a bound.
"""

import math

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn
from torch.nn import functional

from varitext.batches.counts import CountBatch, CountBatches
from varitext.latent import Bound, Estimate
from varitext.layers.counts import multinomial_log_likelihood, sparse_times_dense
from varitext.models.documents.annealing import LogPartition, ReplicatedSoftmax, anneal, draw_words, highest_peaks
from varitext.models.documents.base import DocumentNetwork, DocumentVectors
from varitext.models.documents.bounds import DocumentBounds, EstimateKind, exact_bounds
from varitext.models.documents.information import bernoulli_kl_per_unit
from varitext.models.documents.recipe import DocumentObjective, Recipe
from varitext.runtime.randomness import seeded, stream
from varitext.training.settings import TrainingSettings

CHAINS = 128
SEARCHED = 256  # h drawn at random at an update, from each of which a peak is climbed
RESTARTED = 8  # one in so many chains begins anew, at one of the highest


class RSM(DocumentNetwork):
    """An undirected model of bags of words; a document's vector is its hidden units' probabilities."""

    estimate_kind = EstimateKind(
        "estimate",
        "log p(X) with the partition function of each length estimated by annealed importance sampling over n_samples "
        "chains: not a bound; see standard_error",
    )
    free_axes = False
    rows_draw_alone = False
    whole_counts = True
    updates: Tensor  # how many it has seen; a buffer, for a resumed run to go on with the right number of steps
    chains: Tensor  # [., K]   their hidden units

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        most_steps: int = 5,
        updates_per_step: int = 500,
        persistent: float = 0.5,
    ):
        """`persistent` is the share of the way down that is at persistent chains; 0 is plain contrastive divergence."""
        super().__init__(vocabulary_size, latent_dim)
        self.persistent = persistent
        self.most_steps, self.updates_per_step = most_steps, updates_per_step
        self.word_weights = nn.Parameter(0.01 * torch.randn(vocabulary_size, latent_dim))  # W
        self.word_bias = nn.Parameter(torch.zeros(vocabulary_size))  # b
        self.hidden_bias = nn.Parameter(torch.zeros(latent_dim))  # a
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))
        self.register_buffer("chains", torch.zeros(CHAINS, latent_dim))

    def start_from_frequencies(self) -> None:
        with torch.no_grad():
            self.word_bias.copy_(self.word_log_frequencies)

    def softmax(self) -> ReplicatedSoftmax:
        return ReplicatedSoftmax(self.word_weights, self.word_bias, self.hidden_bias)

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """Its gradient is contrastive divergence's; the value reported is log p(X | h) of the first h drawn."""
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
        """log of p(X) Z_N, the hidden units summed out."""
        words = sparse_times_dense(batch, batch.counts, self.word_bias[:, None])[:, 0]
        return words + functional.softplus(self.hidden_input(batch)).sum(1)  # [B]

    def hidden_input(self, batch: CountBatch) -> Tensor:
        summed = sparse_times_dense(batch, batch.counts, self.word_weights)
        return summed + batch.lengths[:, None] * self.hidden_bias  # [B, K]

    @torch.no_grad()
    def gibbs(self, batch: CountBatch, steps: int) -> tuple[CountBatch, Tensor]:
        """The documents after some steps of hidden units given words, words given hidden units; and the log
        likelihood of the documents under their first hidden units."""
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
        """Documents of the same lengths from the persistent chains, which take as many steps."""
        turn = (torch.arange(len(batch), device=batch.words.device) + int(self.updates) * len(batch)) % CHAINS
        h, state = self._some_at_peaks(self.chains[turn]), batch
        for _ in range(self.steps()):
            state = _drawn(self.softmax().word_scores(h), batch)
            h = torch.bernoulli(torch.sigmoid(self.hidden_input(state)))
        self.chains[turn] = h
        return state

    def _some_at_peaks(self, h: Tensor) -> Tensor:
        peaks = highest_peaks(self.softmax(), SEARCHED, kept=len(h) // RESTARTED)
        places = torch.randperm(len(h), device=h.device)[: len(peaks)]
        return h.index_copy(0, places, peaks)

    def log_partition(self, longest: int, chains: int, bridges: int = 4) -> LogPartition:
        detached = ReplicatedSoftmax(*(parameter.detach() for parameter in self.softmax()))
        return anneal(detached, longest, chains, bridges=bridges)

    @torch.no_grad()
    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """The more samples, the more chains, and the slower they anneal."""
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
        """sum_w count_w log p(w | observed): each hidden word as the one word more of a longer document.

            p(w | X)  =  p(X, w) / sum_v p(X, v)

        Both are of N + 1 words, so their Z is the same and drops out: exact, nothing is drawn.
        """
        inputs = self.hidden_input(observed) + self.hidden_bias  # [B, K]   without the word
        scores = self.word_bias.repeat(len(observed), 1)  # [B, V]
        for unit in range(self.latent_dim):  # one by one: all at once would be [B, V, K]
            scores += functional.softplus(inputs[:, unit, None] + self.word_weights[:, unit])
        return multinomial_log_likelihood(scores[None], hidden)[0]

    # What users look at

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """p(h = 1 | X), unit by unit, and the std of such a unit. They are independent given the words: exact."""
        probabilities = torch.sigmoid(self.hidden_input(batch))
        return DocumentVectors(probabilities, (probabilities * (1 - probabilities)).sqrt())

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        return bernoulli_kl_per_unit(vectors.mean)

    def word_directions(self) -> Tensor:
        return self.word_weights

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        epochs = round(min(100, max(8, 3000 / math.sqrt(documents))))
        batch_size = min(128, max(32, 2 ** round(math.log2(documents / 32))))
        updates = epochs * math.ceil(documents / batch_size)
        training = TrainingSettings(
            epochs=epochs, batch_size=batch_size, learning_rate=1e-2, patience=max(5, epochs // 4), kl_warm_up=0
        )
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
