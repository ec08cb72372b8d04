"""A corpus of questions as numbers of its own different words: words that no vocabulary has keep their identity.

Features of overlap and alignment live on names and rare words, which training has never seen. So these are numbered per
corpus; what was learned about a word (its idf, its vector) is looked up once per different word.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers
from varitext.text import Vocabulary


class WordRows(NamedTuple):
    """One question and its candidates, the words of all candidates one after another."""

    question: np.ndarray  # [n]
    answers: np.ndarray  # [m]
    lengths: np.ndarray  # [C] words of each candidate

    @property
    def ends(self) -> np.ndarray:
        return np.cumsum(self.lengths)  # [C]

    def per_candidate(self, values: np.ndarray) -> np.ndarray:
        """Sums of [..., m] over the words of each candidate, [..., C]; zero for a candidate of no words."""
        running = np.zeros((*values.shape[:-1], values.shape[-1] + 1), np.float64)
        np.cumsum(values, -1, out=running[..., 1:])
        return running[..., self.ends] - running[..., self.ends - self.lengths]


@dataclass(frozen=True, eq=False)
class WordTable:
    words: tuple[str, ...]  # in lower case, all different
    questions: tuple[WordRows, ...]

    @classmethod
    def of(cls, question_answers: QuestionAnswers) -> "WordTable":
        number: dict[str, int] = {}

        def rows(words: tuple[str, ...]) -> list[int]:
            return [number.setdefault(word.lower(), len(number)) for word in words]

        def tables() -> Iterator[WordRows]:
            for question in question_answers.questions:
                asked = np.array(rows(question.words), np.int64)
                answers = [rows(candidate.words) for candidate in question.candidates]
                joined = np.array([word for answer in answers for word in answer], np.int64)
                yield WordRows(asked, joined, np.array([len(answer) for answer in answers], np.int64))

        questions = tuple(tables())
        return cls(tuple(number), questions)

    def columns_in(self, vocabulary: Vocabulary) -> np.ndarray:
        """Each word's place in the vocabulary, or -1."""
        return np.array([vocabulary.index.get(word, -1) for word in self.words], np.int64)  # [words]

    @property
    def is_word(self) -> np.ndarray:
        """Whether each has a letter or a digit; the others are punctuation."""
        return np.array([any(map(str.isalnum, word)) for word in self.words], bool)  # [words]
