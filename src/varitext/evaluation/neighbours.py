"""Nearest neighbours by the cosine of vectors."""

from typing import NamedTuple

import numpy as np

from varitext.evaluation.columns import merge_ties
from varitext.text.vocabulary import Vocabulary


class Neighbour(NamedTuple):
    index: int  # type: ignore[assignment]  # of the document; a neighbour needs no tuple.index
    similarity: float  # cosine


def nearest(vectors: np.ndarray, query: np.ndarray, n: int) -> list[Neighbour]:
    """The most similar first; of those that tie (`columns.py::merge_ties`) the earlier one first."""
    lengths = np.linalg.norm(vectors, axis=1) * max(float(np.linalg.norm(query)), 1e-12)
    similarity = merge_ties(vectors @ query / np.maximum(lengths, 1e-12))
    order = np.argsort(-similarity, kind="stable")[:n]
    return [Neighbour(int(i), float(similarity[i])) for i in order]


def nearest_words(vocabulary: Vocabulary, vectors: np.ndarray, word: str, n: int) -> list[tuple[str, float]]:
    """The words whose vectors, [V, K], have the largest cosine with that of a word of the vocabulary."""
    row = vocabulary.index[word]
    neighbours = nearest(vectors, vectors[row], n + 1)
    return [(vocabulary.words[place], similarity) for place, similarity in neighbours if place != row][:n]
