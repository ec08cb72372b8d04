"""Documents drawn from a known model, batches of them, and networks with random weights."""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse
import torch

from varitext.batches.counts import CountBatch
from varitext.models.documents import model_class
from varitext.runtime.randomness import seeded


def topic_documents(
    documents: int = 300, words: int = 60, topics: int = 4, length: int = 40, seed: int = 0
) -> scipy.sparse.csr_matrix:
    """Each document has one topic; each topic mostly uses its own stretch of the vocabulary."""
    generator = np.random.default_rng(seed)
    own = words // topics
    probabilities = np.full((topics, words), 0.2 / words)
    for topic in range(topics):
        probabilities[topic, topic * own : (topic + 1) * own] += 0.8 / own
    probabilities /= probabilities.sum(1, keepdims=True)
    chosen = generator.integers(topics, size=documents)
    lengths = generator.poisson(length, documents) + 1
    rows = [generator.multinomial(n, probabilities[topic]) for n, topic in zip(lengths, chosen, strict=True)]
    return scipy.sparse.csr_matrix(np.array(rows, np.float32))


def batch_of(counts: Any, dtype: torch.dtype = torch.double) -> CountBatch:
    """A batch of documents from a sparse or dense matrix of counts."""
    batch = CountBatch.from_rows(scipy.sparse.csr_matrix(counts, dtype=np.float32))
    return dataclasses.replace(batch, counts=batch.counts.to(dtype), lengths=batch.lengths.to(dtype))


def scattered_network(name: str, counts: scipy.sparse.csr_matrix, spread: float = 0.6, **settings: Any) -> Any:
    """A document network of 3 latent dimensions in double precision, with every weight away from its initial value."""
    with seeded(3):
        model = model_class(name)(counts.shape[1], 3, **settings).double()
        model.learn_frequencies(torch.from_numpy(np.asarray(counts.sum(0), np.float64).ravel()))
        for parameter in model.parameters():
            parameter.requires_grad_(False).add_(spread * torch.randn_like(parameter))
    return model.eval()


def scored_pairs(questions=40, candidates=5, seed=0):
    """Scores, labels and ids; every question has a right answer."""
    generator = np.random.default_rng(seed)
    labels = generator.random((questions, candidates)) < 0.3
    labels[:, 0] = True
    ids = np.repeat([f"q{number:02}" for number in range(questions)], candidates)
    return generator.random(questions * candidates), labels.ravel().astype(int), ids
