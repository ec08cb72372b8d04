"""Words that a question and a candidate share (paper: +Cnt), and BM25.

    word_overlap        the number of distinct words of the question that the candidate also has, without stop words
    idf_overlap         the same, each word weighted by idf = log((1 + N) / (1 + df)) over the N training answers
    word_overlap_all    both with stop words, which help on WikiQA: "how many" asks for other sentences than "who"
    idf_overlap_all
    overlap_density     idf_overlap_all / sqrt(number of words): the same words in a shorter candidate count more
    log_position        log(1 + position in its document), NaN if unknown
    log_length          log(1 + number of words)
    bm25                sum_w idf(w) tf (k + 1) / (tf + k (1 - b + b length / mean length)), over the distinct words w
                        of the question; tf counts w in the candidate, idf(w) = log(1 + (N - df + 1/2) / (df + 1/2))

Case and punctuation do not count. df is of training answers only; a word that none of them has gets the highest idf.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.text import Vocabulary
from varitext.text.stop_words import ENGLISH

COUNTS = ("word_overlap", "idf_overlap", "word_overlap_all", "idf_overlap_all", "overlap_density")
PLACE = ("log_position", "log_length")
COLUMNS = COUNTS + PLACE
STOP_WORDS = frozenset(ENGLISH.split()) | {"did", "does", "n't", "'s", "'m", "'d", "'re", "'ve", "'ll"}


class PairFeatures(NamedTuple):
    """One row per pair, in the order of the corpus."""

    columns: tuple[str, ...]
    values: np.ndarray  # [pairs, columns]; NaN where a position is unknown
    question_of: np.ndarray  # [pairs]

    def only(self, columns: Sequence[str]) -> "PairFeatures":
        if unknown := set(columns) - set(self.columns):
            raise InputError(f"no column of a pair is called {min(unknown)!r}; there are: {', '.join(self.columns)}")
        chosen = [self.columns.index(name) for name in columns]
        return PairFeatures(tuple(columns), self.values[:, chosen], self.question_of)

    def of_pairs(self, chosen: np.ndarray) -> "PairFeatures":
        return PairFeatures(self.columns, self.values[chosen], self.question_of[chosen])


@dataclass(frozen=True, eq=False)
class Overlap:
    """Document frequencies among the training answers: enough to compute all columns for any pair."""

    vocabulary: Vocabulary
    document_frequencies: np.ndarray  # [V]
    n_answers: int

    @classmethod
    def learn(cls, train: QuestionAnswers, vocabulary: Vocabulary) -> "Overlap":
        frequencies: Counter[str] = Counter()
        for question in train.questions:
            for candidate in question.candidates:
                frequencies.update({word.lower() for word in candidate.words})
        found = np.array([frequencies[word] for word in vocabulary.words], np.int64)
        return cls(vocabulary, found, train.n_pairs)

    def frequency(self, word: str) -> int:
        """The number of training answers that have the word."""
        column = self.vocabulary.index.get(word)
        return 0 if column is None else int(self.document_frequencies[column])

    def idf(self, word: str) -> float:
        return float(np.log((1 + self.n_answers) / (1 + self.frequency(word))))

    def features(self, question_answers: QuestionAnswers) -> PairFeatures:
        rows = []
        for question in question_answers.questions:
            weights = {word: self.idf(word) for word in distinct_words(question.words)}
            for candidate in question.candidates:
                shared = sorted(weights.keys() & distinct_words(candidate.words))  # a fixed order of summation
                content = [word for word in shared if word not in STOP_WORDS]
                counts: list[float] = []
                for words in (content, shared):
                    counts += [len(words), sum(weights[word] for word in words)]
                counts.append(counts[-1] / np.sqrt(1 + len(candidate.words)))
                position = np.nan if candidate.position is None else np.log1p(candidate.position)
                rows.append((*counts, position, np.log1p(len(candidate.words))))
        return PairFeatures(COLUMNS, np.array(rows, np.float64), question_answers.groups)


def distinct_words(words: Sequence[str]) -> set[str]:
    return {word.lower() for word in words if is_word(word)}


@lru_cache(200_000)
def is_word(word: str) -> bool:
    """Whether a token has a letter or a digit, unlike punctuation."""
    return any(map(str.isalnum, word))


class WordRows(NamedTuple):
    """One question and its candidates, the words of all candidates one after another."""

    question: np.ndarray  # [n]
    answers: np.ndarray  # [m]
    lengths: np.ndarray  # [C] words of each candidate

    @property
    def ends(self) -> np.ndarray:
        return np.cumsum(self.lengths)  # [C]

    def per_candidate(self, values: np.ndarray) -> np.ndarray:
        """Sums of [..., m] over the words of each candidate, [..., C]; zero for a candidate without words."""
        running = np.zeros((*values.shape[:-1], values.shape[-1] + 1), np.float64)
        np.cumsum(values, -1, out=running[..., 1:])
        return running[..., self.ends] - running[..., self.ends - self.lengths]


@dataclass(frozen=True, eq=False)
class WordTable:
    """The words of a corpus, numbered per corpus: words that no vocabulary has keep their identity."""

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
    """The idf of words, from the number of sentences, of n, that have them."""
    return np.asarray(np.log1p((n - frequencies + 0.5) / (frequencies + 0.5)))


def saturated(often: np.ndarray, relative_length: np.ndarray) -> np.ndarray:
    """The term of a word without its idf; the length is relative to the mean length."""
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * relative_length)
    return np.asarray(often * (SATURATION + 1) / (often + norm))
