"""docNADE, the neural autoregressive distribution estimator of documents (Larochelle and Lauly 2012).

    p(X) = prod_i p(x_i | x_1 .. x_{i-1}),   p(x_i = w | before) = softmax(U h_i + b)_w,
    h_i = activation(c + sum_{j<i} W_{x_j})

There is no latent variable: no prior, no posterior, no KL. log p is exact for a given order of the words. A bag of
words has no order, so one model is trained on random orders. Two values over O orders of a document are reported:

    mean of logs    1/O sum_o log p(X_o)          the exact log likelihood of one random order, on average
    log of mean     log 1/O sum_o p(X_o)          the log likelihood of the mixture of orders: never below the other

*Training* does not go word by word. In a random order, the words before a random position are a random part of the
document, and each remaining word is equally likely to be next. So draw a share s from (0, 1), observe each word with
probability s, and predict all others at once. If r of the N words remain,

    E[ (N + 1) / r * sum_{w in rest} log p(w | seen) ]  =  E_orders[ log p(X) ],          (0 if r = 0)

because the number of observed words is then uniform on 0 .. N: one softmax per draw instead of N per document (as in
Uria et al. 2014 and Lauly et al. 2017, who draw the position).
"""

import math
from dataclasses import replace

import scipy.sparse
import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch, CountBatches
from varitext.errors import InputError
from varitext.latent import Bound, Estimate
from varitext.layers.counts import multinomial_log_likelihood, sparse_times_dense
from varitext.models.documents.base import (
    DocumentNetwork,
    DocumentObjective,
    DocumentVectors,
    Recipe,
    training_schedule,
)
from varitext.models.documents.bounds import DocumentBounds, EstimateKind, direction_information, exact_bounds
from varitext.runtime.randomness import seeded, stream

MAX_LOGITS = 2**23  # positions x words held at once: 32 MB
SAMPLES_PER_ORDER = 5  # an order costs a softmax per word; a draw of h in other models costs one per document
ACTIVATIONS = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}


class DocNADE(DocumentNetwork):
    """An autoregressive model of bags of words; a document's vector is the hidden layer after all its words."""

    estimate_kind = EstimateKind(
        "exact",
        "log p(X), exact for a given order of the words: its mean over n_samples random orders; importance-weighted: "
        "log p(X) of the mixture of these orders",
    )
    free_axes = False
    independent_noise = False
    likelihood = "autoregressive"
    whole_counts = True

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        activation: str = "sigmoid",
        draws: int = 4,
        dropout: float = 0.0,
    ):
        super().__init__(vocabulary_size, latent_dim)
        if activation not in ACTIVATIONS:
            raise InputError(f"activation is {' or '.join(map(repr, ACTIVATIONS))}, not {activation!r}")
        self.activation, self.draws = ACTIVATIONS[activation], draws
        self.embedding = nn.Parameter(0.01 * torch.randn(vocabulary_size, latent_dim))  # W^T
        self.bias = nn.Parameter(torch.zeros(latent_dim))  # c
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(latent_dim, vocabulary_size)  # weight: U, bias: b
        nn.init.normal_(self.output.weight, std=0.05)

    def initialize_from_frequencies(self) -> None:
        with torch.no_grad():
            self.output.bias.copy_(self.word_log_frequencies.exp().log())  # rounded as in the stored results

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        """An unbiased estimate of log p(X) over all orders, from `draws` random parts of each document."""
        draws = samples * self.draws
        # stratified: observed parts are spread evenly from nothing to everything
        strata = torch.arange(draws, device=batch.words.device)[:, None]
        share = (strata + torch.rand_like(batch.lengths.expand(draws, -1))) / draws  # [S, B]
        seen = torch.binomial(batch.counts.expand(draws, -1), share[:, batch.documents])  # [S, n]
        before, rest = stacked(batch, seen), stacked(batch, batch.counts - seen)
        log_likelihood = self.word_log_likelihood(self.hidden(before), rest).view(draws, -1)  # [S, B]
        scale = (batch.lengths + 1) / rest.lengths.view(draws, -1).clamp(min=1)
        value = (scale * log_likelihood).mean(0)
        return Estimate(value, Bound(value, value.new_zeros(len(batch), self.latent_dim)))

    @torch.no_grad()
    def evaluate(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """One order per five samples of other models. The value is the mean of log p over orders."""
        orders = max(1, samples // SAMPLES_PER_ORDER)
        with seeded(stream(seed, "evaluation noise"), self.bias.device):
            batches = CountBatches(counts, self.bias.device).in_order(256)
            found = torch.cat([self.log_probability(batch, orders) for batch in batches], 1).double()  # [O, D]
        mixture = found.logsumexp(0) - math.log(orders)
        bounds = exact_bounds(found.mean(0).cpu().numpy(), counts, self.latent_dim)
        return bounds._replace(importance_weighted=mixture.cpu().numpy(), drawn=orders)

    @torch.no_grad()
    def evaluate_round(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        """Estimate from random parts of the documents, as in training: one softmax per part instead of per word."""
        with seeded(stream(seed, "evaluation noise"), self.bias.device):
            batches = CountBatches(counts, self.bias.device).in_order(256)
            values = torch.cat([self.objective(batch, samples, kl_weight=1.0).surrogate for batch in batches])
        return exact_bounds(values.double().cpu().numpy(), counts, self.latent_dim)

    def hidden(self, batch: CountBatch) -> Tensor:
        """h after all the words of each document."""
        return self._activated(sparse_times_dense(batch, batch.counts.to(self.bias.dtype), self.embedding))  # [B, K]

    def log_probability(self, batch: CountBatch, orders: int) -> Tensor:
        """log p(X_o) of each document in random orders, [O, B]; exact."""
        return torch.stack([self.log_probability_in_order(*in_random_order(batch)) for _ in range(orders)])

    def log_probability_in_order(self, words: Tensor, documents: Tensor, size: int) -> Tensor:
        """log p of `size` documents, word by word; `words` are their words in order, document by document."""
        sums = self.embedding[words].double().cumsum(0)  # [T, K]   over all documents, hence in double precision
        sums = sums - self.embedding[words]  # without the word itself
        starts = torch.searchsorted(documents, documents)  # [T]   the first word of each word's document
        before = (sums - sums[starts]).to(self.bias.dtype)
        size_of_block, values = MAX_LOGITS // len(self.embedding) + 1, []
        for rows in torch.split(torch.arange(len(words), device=words.device), size_of_block):
            numbers, ones = torch.arange(len(rows), device=words.device), before.new_ones(len(rows))
            single = CountBatch(words[rows], ones, numbers, numbers, ones, len(self.embedding))  # each word a document
            values.append(self.word_log_likelihood(self._activated(before[rows]), single))
        return self.bias.new_zeros(size).index_add(0, documents, torch.cat(values))

    def completion_log_likelihood(self, observed: CountBatch, hidden: CountBatch, samples: int) -> Tensor:
        """sum_w count_w log p(w | observed): each hidden word as the next one; exact, without draws."""
        return self.word_log_likelihood(self.hidden(observed), hidden)  # [B]

    def word_log_likelihood(self, hidden: Tensor, batch: CountBatch) -> Tensor:
        """sum_w count_w log softmax(U h + b)_w for each row of `hidden`, [R]; the batch's documents are the rows."""
        return multinomial_log_likelihood(self.output(hidden)[None], batch)[0]

    def _activated(self, sums: Tensor) -> Tensor:
        hidden: Tensor = self.dropout(self.activation(self.bias + sums))
        return hidden

    # Vectors and training

    def document_vectors(self, batch: CountBatch) -> DocumentVectors:
        """The hidden layer after all words; it is deterministic."""
        hidden = self.hidden(batch)
        return DocumentVectors(hidden, torch.zeros_like(hidden))

    def kl_per_dimension(self, vectors: DocumentVectors, lengths: Tensor) -> Tensor:
        directions = self.output.weight.detach()
        return direction_information(vectors.mean, directions, self.word_log_frequencies, float(lengths.mean()))

    def word_directions(self) -> Tensor:
        return self.embedding

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        training = replace(training_schedule(documents, 5e-3, passes=40), learning_rate=5e-3, kl_warm_up=0)
        return Recipe({}, training, DocumentObjective(length_exponent=0.7))


def stacked(batch: CountBatch, counts: Tensor) -> CountBatch:
    """S versions of the same documents in one batch of S x B: `counts` is [S, n]."""
    versions, entries = counts.shape
    number = torch.arange(versions, device=counts.device)[:, None]
    documents = (number * len(batch) + batch.documents).ravel()
    return CountBatch(
        words=batch.words.repeat(versions),
        counts=counts.reshape(-1),
        documents=documents,
        starts=(number * entries + batch.starts).ravel(),
        lengths=counts.new_zeros(versions * len(batch)).index_add_(0, documents, counts.reshape(-1)),
        vocabulary_size=batch.vocabulary_size,
    )


def in_random_order(batch: CountBatch) -> tuple[Tensor, Tensor, int]:
    """The documents' words, shuffled within each document; the document of each word; and B."""
    times = batch.counts.round().long()
    words, documents = batch.words.repeat_interleave(times), batch.documents.repeat_interleave(times)
    shuffled = torch.argsort(documents + torch.rand(len(words), dtype=torch.double, device=words.device))
    return words[shuffled], documents, len(batch)  # documents are sorted, before and after
