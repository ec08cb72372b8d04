"""Alignment of a question's words with those of a candidate: same word, same stem, similar vectors.

All candidates of a question are computed at once, over words numbered per corpus, so that names which training never
saw still match themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.overlap import STOP_WORDS, Overlap, WordTable
from varitext.text.tokens import stem

NO_WORD = -1


class QuestionPairs(NamedTuple):
    """One question's words beside those of its candidates, side by side and filled up with NO_WORD."""

    asked: np.ndarray  # [n] distinct words of the question, in its order, without punctuation
    answers: np.ndarray  # [C, T]
    same: np.ndarray  # [n, C, T] bool: the same word
    same_stem: np.ndarray  # [n, C, T] bool, also where the words are the same
    similarity: np.ndarray  # [n, C, T] from 0 to 1: 1 for the same word, otherwise the cosine of vectors, if above 0


@dataclass(frozen=True, eq=False)
class AlignedCorpus:
    """What is known about every distinct word of a corpus; and its questions, one after another."""

    table: WordTable
    idf: np.ndarray  # [words]
    is_stop: np.ndarray  # [words]
    is_word: np.ndarray  # [words] not punctuation
    stems: np.ndarray  # [words] a number per stem
    vectors: np.ndarray  # [words, E] of length one, or zero where there is none

    @classmethod
    def of(cls, question_answers: QuestionAnswers, overlap: Overlap, vectors: np.ndarray) -> "AlignedCorpus":
        """Number the words of a corpus; `vectors` are those of the vocabulary, [V, E], of length one or zero."""
        table = WordTable.of(question_answers)
        columns = table.columns_in(overlap.vocabulary)
        number: dict[str, int] = {}
        return cls(
            table,
            np.array([overlap.idf(word) for word in table.words]),
            np.array([word in STOP_WORDS for word in table.words], bool),
            table.is_word,
            np.array([number.setdefault(stem(word), len(number)) for word in table.words], np.int64),
            np.where(columns[:, None] < 0, 0, vectors[columns]).astype(np.float32),
        )

    def questions(self) -> Iterator[QuestionPairs]:
        for rows in self.table.questions:
            _, first = np.unique(rows.question, return_index=True)
            asked = rows.question[np.sort(first)]
            yield self._pairs(asked[self.is_word[asked]], padded_candidates(rows.answers, rows.lengths, NO_WORD))

    def _pairs(self, asked: np.ndarray, answers: np.ndarray) -> QuestionPairs:
        here = (answers != NO_WORD) & self.is_word[answers]  # [C, T]
        different, place = np.unique(answers, return_inverse=True)
        same = (asked[:, None] == different)[:, place.reshape(answers.shape)]
        same_stem = (self.stems[asked][:, None] == self.stems[different])[:, place.reshape(answers.shape)] & here
        cosine = np.clip(self.vectors[asked] @ self.vectors[different].T, 0, 1)  # [n, different]
        similarity = np.where(same, 1, cosine[:, place.reshape(answers.shape)] * here)
        return QuestionPairs(asked, answers, same, same_stem, similarity)


def padded_candidates(values: np.ndarray, lengths: np.ndarray, filling: float) -> np.ndarray:
    """Values of all candidates' words one after another, [m, ...], as [C, T, ...], at least one place wide."""
    mask = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]  # [C, T]
    filled = np.full((*mask.shape, *values.shape[1:]), filling, values.dtype)
    filled[mask] = values
    return filled


def unit_vectors(vectors: np.ndarray | None, size: tuple[int, ...]) -> np.ndarray:
    """Word vectors centred and scaled to unit length; zeros if there are none.

    They are centred because the vectors of all words share a direction, which would make any two of them similar.
    """
    if vectors is None:
        return np.zeros(size, np.float32)
    centred = vectors - vectors.mean(0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12))  # [V, E]
