"""The words that a question and a candidate share, where the candidate stands and how long it is (paper: +Cnt).

    word_overlap        the number of different words of the question that the candidate has too, without stop words
    idf_overlap         the same, each word weighed by idf = log((1 + N) / (1 + df)) over the N training answers
    word_overlap_all    both with stop words: on WikiQA these tell more, as "how many" asks for other sentences than
    idf_overlap_all     "who" does
    overlap_density     idf_overlap_all / sqrt(number of words): the same words shared by a shorter candidate say more
    log_position        log(1 + place in its document), unknown where the corpus does not tell
    log_length          log(1 + number of words)

Case and punctuation do not count. df is of training answers alone, and a word that none of them has is as rare as
a word can be: nothing of a test part is needed. The ranker's second stage joins these columns with a probability.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from varitext.corpora.question_answers import QuestionAnswers
from varitext.text import Vocabulary

COUNTS = ("word_overlap", "idf_overlap", "word_overlap_all", "idf_overlap_all", "overlap_density")
PLACE = ("log_position", "log_length")
COLUMNS = COUNTS + PLACE
STOP_WORDS = ENGLISH_STOP_WORDS | {"did", "does", "n't", "'s", "'m", "'d", "'re", "'ve", "'ll"}


class PairFeatures(NamedTuple):
    """One row per pair, in the order of the corpus."""

    columns: tuple[str, ...]
    values: np.ndarray  # [pairs, columns]; NaN where a position is unknown
    question_of: np.ndarray  # [pairs]

    def only(self, columns: Sequence[str]) -> "PairFeatures":
        chosen = [self.columns.index(name) for name in columns]
        return PairFeatures(tuple(columns), self.values[:, chosen], self.question_of)

    def of_pairs(self, chosen: np.ndarray) -> "PairFeatures":
        return PairFeatures(self.columns, self.values[chosen], self.question_of[chosen])


@dataclass(frozen=True, eq=False)
class Overlap:
    """How rare each word is among the training answers; enough to compute all columns for any pair."""

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

    def idf(self, word: str) -> float:
        column = self.vocabulary.index.get(word)
        seen = 0 if column is None else int(self.document_frequencies[column])
        return float(np.log((1 + self.n_answers) / (1 + seen)))

    def features(self, question_answers: QuestionAnswers) -> PairFeatures:
        rows = []
        for question in question_answers.questions:
            weights = {word: self.idf(word) for word in _distinct_words(question.words)}
            for candidate in question.candidates:
                shared = sorted(weights.keys() & _distinct_words(candidate.words))  # sums need an order: sets have none
                telling = [word for word in shared if word not in STOP_WORDS]
                counts: list[float] = []
                for words in (telling, shared):
                    counts += [len(words), sum(weights[word] for word in words)]
                counts.append(counts[-1] / np.sqrt(1 + len(candidate.words)))
                position = np.nan if candidate.position is None else np.log1p(candidate.position)
                rows.append((*counts, position, np.log1p(len(candidate.words))))
        return PairFeatures(COLUMNS, np.array(rows, np.float64), question_answers.groups)


def _distinct_words(words: Sequence[str]) -> set[str]:
    return {word.lower() for word in words if is_word(word)}


@lru_cache(200_000)
def is_word(word: str) -> bool:
    """Whether it has a letter or a digit; punctuation has none."""
    return any(map(str.isalnum, word))
