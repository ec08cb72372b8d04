"""BERTopic as its documentation recommends, with its default sentence encoder.

Sentence vectors (all-MiniLM-L6-v2) -> UMAP to 5 dimensions -> HDBSCAN -> c-TF-IDF, over the vocabulary of the other
systems. HDBSCAN chooses its own number of clusters and leaves out outliers: BERTopic merges topics down to the
requested number (`reduce_topics`) and assigns outliers to the nearest topic (`reduce_outliers`). With k-means instead
of HDBSCAN, as its documentation also describes, the number of topics is as requested and there are no outliers.

Needs the package `bertopic`, which is installed separately (`lab/child.py`).
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
    """Sentence vectors by varitext's encoder, for BERTopic to call."""

    def embed(self, documents: Sequence[str], verbose: bool = False) -> np.ndarray:
        return pretrained().sentence_vectors([document.split() for document in documents])


class FoundTopics(NamedTuple):
    topics: list[list[str]]  # ten words each
    groups: list[int]  # the topic of every document
    outliers: int  # documents that HDBSCAN left out


def new_pipeline(clusters: str, number: int, seed: int, words: Sequence[str]) -> BERTopic:
    """BERTopic with default settings, a seed, and the documentation's settings for a given number of topics."""
    return BERTopic(
        embedding_model=MiniLM(),
        umap_model=UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed),
        hdbscan_model=KMeans(number, random_state=seed) if clusters == KMEANS_CLUSTERS else None,
        vectorizer_model=CountVectorizer(vocabulary=list(words)),
    )


def topics_of(pipeline: BERTopic, texts: list[str], vectors: np.ndarray, number: int) -> FoundTopics:
    groups, _ = pipeline.fit_transform(texts, vectors)
    outliers = groups.count(-1)
    pipeline.reduce_topics(texts, number + (outliers > 0))  # the outliers count as a topic
    groups = pipeline.topics_
    if outliers:
        groups = pipeline.reduce_outliers(texts, groups, strategy="embeddings", embeddings=vectors)
    numbers = sorted(set(pipeline.topics_) - {-1})
    topics = [[word for word, _ in pipeline.get_topic(number)] for number in numbers]
    return FoundTopics(topics, [int(group) for group in groups], outliers)
