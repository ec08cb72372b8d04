"""Synthetic documents drawn from topics, any number over a vocabulary of any size, written to shards.

Word frequencies follow Zipf's law, each topic prefers some words, and a document draws its words from three topics.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from varitext.corpora.counts import numbered_words
from varitext.corpora.shards import chunk_of, finish_folder, write_shards

TOPICS, TOPICS_OF_A_DOCUMENT, LENGTH, BLOCK = 50, 3, 100, 5000


def draw_documents(documents: int, words: int, seed: int, length: int = LENGTH) -> Iterator[csr_matrix]:
    """Draw documents in blocks; the topics are the same for every seed."""
    places = _cumulative_topics(words)
    generator = np.random.default_rng(seed)
    for start in range(0, documents, BLOCK):
        size = min(BLOCK, documents - start)
        lengths = np.maximum(5, generator.lognormal(math.log(length) - 0.125, 0.5, size)).astype(int)
        owner = np.repeat(np.arange(size), lengths)
        topics = generator.integers(TOPICS, size=(size, TOPICS_OF_A_DOCUMENT))
        topic = topics[owner, generator.integers(TOPICS_OF_A_DOCUMENT, size=len(owner))]
        drawn = np.searchsorted(places, topic + generator.random(len(owner)), side="right") - topic * words
        drawn = np.clip(drawn, 0, words - 1)
        counts = csr_matrix((np.ones(len(drawn), np.float32), (owner, drawn)), (size, words))
        counts.sum_duplicates()
        yield counts


def _cumulative_topics(words: int) -> np.ndarray:
    """Cumulative shares of all topics concatenated, topic k from k to k + 1: one search finds a word of any topic."""
    generator = np.random.default_rng(0)
    logits = 1.2 * generator.standard_normal((TOPICS, words)) - np.log(np.arange(words) + 30.0)
    shares = np.exp(logits)
    sums = np.cumsum(shares, 1)
    return np.ravel(sums / sums[:, -1:] + np.arange(TOPICS)[:, None])


def write_documents(folder: str, documents: int, words: int, seed: int) -> dict[str, int]:
    Path(folder).mkdir(parents=True)
    shards = write_shards(Path(folder), map(chunk_of, draw_documents(documents, words, seed)), words)
    finish_folder(Path(folder), shards, numbered_words(words), [], {"vocabulary": "of the counts", "seed": seed})
    return {"documents": documents}
