"""RSM, the replicated softmax (Hinton and Salakhutdinov 2009): a Boltzmann machine of words and binary hidden units.

    p(X) = 1/Z_N sum_h exp( sum_w x_w b_w + sum_k h_k (N a_k + sum_w x_w W_wk) )

N, the document's length, multiplies the hidden bias a, and Z_N is its own for every length. Learning is by contrastive
divergence: up at the document, down at what some Gibbs steps make of it; one step at first, more as training goes on.
Z_N cannot be computed but estimated, by annealed importance sampling (`annealing.py`): perplexity is an estimate, not
a bound.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from varitext.annealing import LogPartition, ReplicatedSoftmax, anneal, draw_words
from varitext.batches import CountBatch
from varitext.document_task import DocumentObjective, Recipe
from varitext.errors import InputError
from varitext.latent import Bound, DiagonalGaussian
from varitext.latent.learning_signal import Estimate
from varitext.layers import multinomial_log_likelihood, sparse_times_dense
from varitext.models.document_network import DocumentNetwork
from varitext.training import TrainingSettings


class RSM(DocumentNetwork):
    """An undirected model of bags of words; a document's vector is its hidden units' probabilities."""

    def __init__(self, vocabulary_size: int, latent_dim: int = 50, most_steps: int = 5, updates_per_step: int = 500):
        super().__init__(vocabulary_size, latent_dim)
        self.most_steps, self.updates_per_step = most_steps, updates_per_step
        self.word_weights = nn.Parameter(0.01 * torch.randn(vocabulary_size, latent_dim))  # W
        self.word_bias = nn.Parameter(torch.zeros(vocabulary_size))  # b
        self.hidden_bias = nn.Parameter(torch.zeros(latent_dim))  # a
        # how many updates it has seen; a buffer, for a resumed run to go on with the right number of steps
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))

    def start_from_frequencies(self) -> None:
        with torch.no_grad():
            self.word_bias.copy_(self.word_log_frequencies)

    @property
    def parameters_of_model(self) -> ReplicatedSoftmax:
        return ReplicatedSoftmax(self.word_weights, self.word_bias, self.hidden_bias)

    def objective(self, batch: CountBatch, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        """Its gradient is contrastive divergence's; the value reported is log p(X | h) of the first h drawn."""
        fantasy, reconstruction = self.gibbs(batch, self.steps())
        if self.training:
            self.updates += 1
        difference = self.log_unnormalised(batch) - self.log_unnormalised(fantasy)  # [B]
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
        state, first = batch, None
        for _ in range(steps):
            h = torch.bernoulli(torch.sigmoid(self.hidden_input(state)))
            scores = self.parameters_of_model.word_scores(h)
            first = multinomial_log_likelihood(scores[None], batch)[0] if first is None else first
            state = _drawn(scores, batch)
        return state, first

    def log_partition(self, longest: int, chains: int, bridges: int = 4) -> LogPartition:
        detached = ReplicatedSoftmax(*(parameter.detach() for parameter in self.parameters_of_model))
        return anneal(detached, longest, chains, bridges=bridges)

    def word_directions(self) -> Tensor:
        return self.word_weights


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
