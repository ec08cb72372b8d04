"""BERTopic as its documentation recommends it, on the sentence encoder that it takes by default.

Sentence vectors (all-MiniLM-L6-v2) -> UMAP to 5 dimensions -> HDBSCAN -> c-TF-IDF. The words are those that the other
systems have, so that stop words and rare ones count against nobody. HDBSCAN finds its own number of clusters, and
leaves documents out: BERTopic merges topics until as many are left as asked for (`reduce_topics`), and the documents
go to the topic whose vector is nearest (`reduce_outliers`). With k-means in HDBSCAN's place, which its documentation
describes too, there are as many topics as asked for, and no document is left out.

This module needs the package, which is not installed beside ours: `runtime/child.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from bertopic import BERTopic
from bertopic.backend import BaseEmbedder
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from umap import UMAP

from varitext.models.answers.pretrained import pretrained

HDBSCAN_CLUSTERS, KMEANS_CLUSTERS = "bertopic", "bertopic_kmeans"


class MiniLM(BaseEmbedder):  # type: ignore[misc]  # a base class without types
    """Sentence vectors by the encoder that varitext has, for BERTopic to call."""

    def embed(self, documents: Sequence[str], verbose: bool = False) -> np.ndarray:
        return pretrained().sentence_vectors([document.split() for document in documents])


class FoundTopics(NamedTuple):
    topics: list[list[str]]  # ten words each
    groups: list[int]  # the topic of every document
    outliers: int  # documents that HDBSCAN had left out


def new_pipeline(clusters: str, number: int, seed: int, words: Sequence[str]) -> BERTopic:
    """Its default settings, with a seed; what its documentation recommends for a number of topics."""
    return BERTopic(
        embedding_model=MiniLM(),
        umap_model=UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed),
        hdbscan_model=KMeans(number, random_state=seed) if clusters == KMEANS_CLUSTERS else None,
        vectorizer_model=CountVectorizer(vocabulary=list(words)),
    )


def topics_of(pipeline: BERTopic, texts: list[str], vectors: np.ndarray, number: int) -> FoundTopics:
    groups, _ = pipeline.fit_transform(texts, vectors)
    outliers = groups.count(-1)
    pipeline.reduce_topics(texts, number + (outliers > 0))  # the documents that are left out count as a topic
    groups = pipeline.topics_
    if outliers:
        groups = pipeline.reduce_outliers(texts, groups, strategy="embeddings", embeddings=vectors)
    numbers = sorted(set(pipeline.topics_) - {-1})
    topics = [[word for word, _ in pipeline.get_topic(number)] for number in numbers]
    return FoundTopics(topics, [int(group) for group in groups], outliers)
