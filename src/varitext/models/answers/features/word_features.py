"""What can be seen of each word of a question and a candidate without knowing what it means.

    same_word      the other sentence has the word
    same_stem      or another form of it
    idf            how rare it is among training answers, over that of a word none of them has
    same_idf       same_word times idf: shared words count by how rare they are
    stop_word, number, capital, punctuation
                   its kind: "when" asks for numbers, "who" for capitals

Training has no vector for most names, and names are what questions are about: that two sentences share one is known
all the same. The first four depend on both sentences, so a question has other features for every candidate.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from varitext.batches.pairs import PairWordFeatures
from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.overlap import STOP_WORDS, Overlap
from varitext.text.stems import stem

WORD_FEATURES = ("same_word", "same_stem", "idf", "same_idf", "stop_word", "number", "capital", "punctuation")


class _Words(NamedTuple):
    """A sentence: its words and stems as numbers, and what does not depend on the other sentence."""

    number: np.ndarray  # [T]
    stem: np.ndarray  # [T]
    idf: np.ndarray  # [T]
    kind: np.ndarray  # [T, 4]


def word_features(question_answers: QuestionAnswers, overlap: Overlap) -> list[PairWordFeatures]:
    """Of every pair, in the order of the corpus."""
    table, found = _WordTable(overlap), []
    for question in question_answers.questions:
        asked = table.sentence(question.words)
        for candidate in question.candidates:
            answer = table.sentence(candidate.words)
            found.append(PairWordFeatures(_features(asked, answer), _features(answer, asked)))
    return found


def _features(own: _Words, other: _Words) -> np.ndarray:
    same = np.isin(own.number, other.number) & (own.kind[:, 3] == 0)  # punctuation is in every sentence
    same_stem = np.isin(own.stem, other.stem) & (own.kind[:, 3] == 0)
    columns = np.column_stack([same, same_stem, own.idf, same * own.idf, own.kind])
    return columns.astype(np.float32)  # [T, F]


class _WordTable:
    """What is known of each different word, found once."""

    def __init__(self, overlap: Overlap):
        self.overlap, self.most = overlap, float(np.log(1 + overlap.n_answers)) or 1.0
        self.numbers: dict[str, int] = {}
        self.known: dict[str, tuple[float, ...]] = {}

    def sentence(self, words: Sequence[str]) -> _Words:
        rows = np.array([self._row(word) for word in words], np.float64).reshape(-1, 3 + 4)
        return _Words(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3:])

    def _row(self, word: str) -> tuple[float, ...]:
        found = self.known.get(word)
        if found is None:
            found = self.known[word] = tuple(self._new_row(word))
        return found

    def _new_row(self, word: str) -> Iterator[float]:
        lower = word.lower()
        yield self.numbers.setdefault(lower, len(self.numbers))
        yield self.numbers.setdefault(f"{stem(lower)}*", len(self.numbers))  # no word: a stem may look like one
        yield self.overlap.idf(lower) / self.most
        yield lower in STOP_WORDS
        yield any(map(str.isdigit, word))
        yield word[:1].isupper()
        yield not any(map(str.isalnum, word))
