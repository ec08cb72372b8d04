"""BM25: the weight of the question's words in a candidate, where repeated words count less and less.

    score = sum_w idf(w) tf (k + 1) / (tf + k (1 - b + b length / mean length))
    idf   = log(1 + (N - df + 1/2) / (df + 1/2))

over the different words w of the question; tf is how often the candidate has w. N, df and the mean length are of
training answers, as in `overlap.py`; a word that none of them has is as rare as a word can be.
"""

import numpy as np

from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.features.word_table import WordRows, WordTable

SATURATION = 1.2  # k
LENGTH_SHARE = 0.75  # b


def bm25(table: WordTable, overlap: Overlap, mean_length: float) -> np.ndarray:
    """The score of every pair, in the order of the corpus."""
    weights = _weights(table, overlap)
    return np.concatenate([_scores(rows, weights, mean_length) for rows in table.questions])  # [P]


def _weights(table: WordTable, overlap: Overlap) -> np.ndarray:
    columns = table.columns_in(overlap.vocabulary)
    frequencies = np.where(columns < 0, 0, overlap.document_frequencies[columns])
    return np.asarray(idf(overlap.n_answers, frequencies) * table.is_word)  # [words]


def _scores(rows: WordRows, weights: np.ndarray, mean_length: float) -> np.ndarray:
    asked = np.unique(rows.question)
    often = rows.per_candidate(asked[:, None] == rows.answers)  # [n, C]
    return np.asarray(weights[asked] @ saturated(often, rows.lengths / mean_length))  # [C]


def idf(n: int, frequencies: np.ndarray) -> np.ndarray:
    """Of words that so many of n sentences have."""
    return np.asarray(np.log1p((n - frequencies + 0.5) / (frequencies + 0.5)))


def saturated(often: np.ndarray, relative_length: np.ndarray) -> np.ndarray:
    """What a word adds that a sentence has so often, without its idf; the length is over the mean length."""
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * relative_length)
    return np.asarray(often * (SATURATION + 1) / (often + norm))
