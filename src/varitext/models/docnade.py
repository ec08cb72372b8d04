"""docNADE, the neural autoregressive distribution estimator of documents (Larochelle and Lauly 2012).

    p(X) = prod_i p(x_i | x_1 .. x_{i-1}),   p(x_i = w | before) = softmax(U h_i + b)_w,
    h_i = activation(c + sum_{j<i} W_{x_j})

Nothing is latent, so log p is exact for a given order of the words. A bag of words has no order: one model serves all,
trained on random ones. Two figures follow from the orders o of one document, and both are reported:

    mean of logs    1/O sum_o log p(X_o)          the exact log likelihood of one random order, on average
    log of mean     log 1/O sum_o p(X_o)          that of the mixture of orders: never below the other

Training needs no order word by word. In a random order, what comes before a random place is a random part of the
document, and every word of the rest is as likely as any other to come next. So draw a share s from (0, 1), see each
word with probability s, and predict all the others at once. If r of the N words are left,

    E[ (N + 1) / r * sum_{w in rest} log p(w | seen) ]  =  E_orders[ log p(X) ],          (0 where r = 0)

because the number of words seen is then uniform on 0 .. N. One softmax per draw, in place of N per document
(as in Uria et al. 2014 and Lauly et al. 2017, with the share in place of the place).
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from varitext.batches import CountBatch
from varitext.document_task import DocumentObjective, Recipe
from varitext.errors import InputError
from varitext.latent import Bound, DiagonalGaussian
from varitext.latent.learning_signal import Estimate
from varitext.layers import multinomial_log_likelihood, sparse_times_dense
from varitext.models.document_network import DocumentNetwork
from varitext.training import TrainingSettings
from varitext.word_tree import SHAPES, WordTree

LARGEST_LOGITS = 2**23  # places x words held at once: 32 MB
ACTIVATIONS = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}


class DocNADE(DocumentNetwork):
    """An autoregressive model of bags of words; a document's vector is the hidden layer after all its words."""

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        activation: str = "sigmoid",
        output: str = "softmax",
        draws: int = 4,
        dropout: float = 0.0,
    ):
        super().__init__(vocabulary_size, latent_dim)
        if activation not in ACTIVATIONS:
            raise InputError(f"activation is {' or '.join(map(repr, ACTIVATIONS))}, not {activation!r}")
        if output not in ("softmax", *SHAPES):
            raise InputError(f"output is 'softmax' or a tree, {' or '.join(map(repr, SHAPES))}, not {output!r}")
        self.activation, self.draws = ACTIVATIONS[activation], draws
        self.embedding = nn.Parameter(0.01 * torch.randn(vocabulary_size, latent_dim))  # W^T
        self.bias = nn.Parameter(torch.zeros(latent_dim))  # c
        self.dropout = nn.Dropout(dropout)
        if output == "softmax":
            self.output = FullSoftmax(vocabulary_size, latent_dim)
        else:
            self.output = WordTree(vocabulary_size, latent_dim, output)

    def start_from_frequencies(self) -> None:
        self.output.start_from_frequencies(self.word_log_frequencies.exp())

    def objective(self, batch: CountBatch, samples: int = 1, kl_weight: float = 1.0) -> Estimate:
        """An unbiased estimate of log p(X) over all orders, from `draws` random parts of each document."""
        draws = samples * self.draws
        # one share in each of equal strata: the parts seen are spread evenly from nothing to everything
        strata = torch.arange(draws, device=batch.words.device)[:, None]
        share = (strata + torch.rand(draws, len(batch), device=batch.words.device)) / draws  # [S, B]
        seen = torch.binomial(batch.counts.expand(draws, -1), share[:, batch.documents])  # [S, n]
        before, rest = stacked(batch, seen), stacked(batch, batch.counts - seen)
        log_likelihood = self.output.log_likelihood(self.hidden(before), rest).view(draws, -1)  # [S, B]
        scale = (batch.lengths + 1) / rest.lengths.view(draws, -1).clamp(min=1)
        value = (scale * log_likelihood).mean(0)
        return Estimate(value, Bound(value, value.new_zeros(len(batch), self.latent_dim)))

    def hidden(self, batch: CountBatch) -> Tensor:
        """h after all the words of each document."""
        return self._activated(sparse_times_dense(batch, batch.counts.to(self.bias.dtype), self.embedding))  # [B, K]

    def log_probability(self, batch: CountBatch, orders: int) -> Tensor:
        """log p(X_o) of each document in random orders, [O, B]; exact."""
        return torch.stack([self.log_probability_in_order(*in_random_order(batch)) for _ in range(orders)])

    def log_probability_in_order(self, words: Tensor, documents: Tensor, size: int) -> Tensor:
        """log p of `size` documents word by word; `words` are theirs in order, document by document."""
        sums = self.embedding[words].double().cumsum(0)  # [T, K]   over all documents in one go, so with room to spare
        sums = sums - self.embedding[words]  # up to the word before
        starts = torch.searchsorted(documents, documents)  # [T]   the first word of each word's document
        before = (sums - sums[starts]).to(self.bias.dtype)
        places = torch.arange(len(words), device=words.device)
        values = []
        for block in places.split(max(1, LARGEST_LOGITS // len(self.embedding))):
            one_word = CountBatch(
                words=words[block],
                counts=torch.ones_like(block, dtype=self.bias.dtype),
                documents=block - block[0],
                starts=block - block[0],
                lengths=torch.ones_like(block, dtype=self.bias.dtype),
                vocabulary_size=len(self.embedding),
            )
            values.append(self.output.log_likelihood(self._activated(before[block]), one_word))
        return self.bias.new_zeros(size).index_add(0, documents, torch.cat(values)) if values else self.bias.new_zeros(size)

    def _activated(self, sums: Tensor) -> Tensor:
        return self.dropout(self.activation(self.bias + sums))

    def word_directions(self) -> Tensor:
        return self.embedding


class FullSoftmax(nn.Linear):
    """p(w | h) = softmax(U h + b)_w."""

    def __init__(self, vocabulary_size: int, hidden_dim: int):
        super().__init__(hidden_dim, vocabulary_size)
        nn.init.normal_(self.weight, std=0.05)

    def start_from_frequencies(self, frequencies: Tensor) -> None:
        with torch.no_grad():
            self.bias.copy_(frequencies.log())

    def log_likelihood(self, hidden: Tensor, batch: CountBatch) -> Tensor:
        """sum_w count_w log p(w | h) for each row of `hidden`, [R]; the batch's documents are the rows."""
        return multinomial_log_likelihood(self(hidden)[None], batch)[0]


def stacked(batch: CountBatch, counts: Tensor) -> CountBatch:
    """S versions of the same documents below each other: `counts` is [S, n], the rows are S x B."""
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
    """The documents' words, each as often as it is counted, shuffled within each document; whose they are; and B."""
    times = batch.counts.round().long()
    words, documents = batch.words.repeat_interleave(times), batch.documents.repeat_interleave(times)
    shuffled = torch.argsort(documents + torch.rand(len(words), dtype=torch.double, device=words.device))
    return words[shuffled], documents, len(batch)  # documents are in order, before and after
