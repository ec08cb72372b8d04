"""Documents drawn from a known model, so that tests know the answer."""

import numpy as np
import scipy.sparse


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
