"""Surface features of each word of a question and a candidate.

    same_word      the other sentence has the word
    same_stem      or another form of it
    idf            among training answers, divided by that of a word none of them has
    same_idf       same_word times idf
    stop_word, number, capital, punctuation
                   its kind: "when" asks for numbers, "who" for capitals

Questions are often about names that have no word vector; these features still show that two sentences share one. The
first two and same_idf depend on both sentences, so a question has different features for every candidate.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from varitext.batches.pairs import PairWordFeatures
from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.overlap import STOP_WORDS, Overlap
from varitext.text.tokens import stem

WORD_FEATURES = ("same_word", "same_stem", "idf", "same_idf", "stop_word", "number", "capital", "punctuation")


N_KINDS = 4  # the last columns, those of the word alone
MAX_REMEMBERED = 200_000  # words


class _Words(NamedTuple):
    """Words one after another: numbers of words and stems, and what depends on the word alone."""

    number: np.ndarray  # [n]
    stem: np.ndarray  # [n]
    idf: np.ndarray  # [n]
    kind: np.ndarray  # [n, 4]

    def at(self, places: np.ndarray) -> "_Words":
        return _Words(*(values[places] for values in self))

    @property
    def is_punctuation(self) -> np.ndarray:
        return np.asarray(self.kind[:, -1] == 1)


def word_features(question_answers: QuestionAnswers, overlap: Overlap) -> list[PairWordFeatures]:
    """The features of every pair, in the order of the corpus."""
    table, read = _WordTable(overlap), []
    for question in question_answers.questions:
        lengths = np.array([len(one.words) for one in question.candidates])
        asked = table.places_of(question.words)
        answers = table.places_of([word for one in question.candidates for word in one.words])
        read.append((asked, answers, lengths))
    words, found = table.words(), []
    for asked, answers, lengths in read:
        found += _of_question(words.at(asked), words.at(answers), lengths)
    return found


def _of_question(asked: _Words, answers: _Words, lengths: np.ndarray) -> list[PairWordFeatures]:
    """The features of all candidates of one question, whose words are concatenated."""
    real = ~asked.is_punctuation[:, None] & ~answers.is_punctuation  # [Tq, m]: a full stop is in every sentence
    same = (asked.number[:, None] == answers.number) & real
    same_stem = (asked.stem[:, None] == answers.stem) & real
    of_answers = _columns(answers, same.any(0), same_stem.any(0))  # [m, F]
    ends = np.cumsum(lengths)
    in_candidate = [_any_within(one, ends, lengths) for one in (same, same_stem)]  # [C, Tq]
    of_question = [_columns(asked, *both) for both in zip(*in_candidate, strict=True)]  # C times [Tq, F]
    return list(map(PairWordFeatures, of_question, np.split(of_answers, ends[:-1])))


def _any_within(same: np.ndarray, ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Whether any of the words of each candidate is true, [C, Tq], from [Tq, m]."""
    running = np.zeros((len(same), same.shape[1] + 1), np.int64)
    np.cumsum(same, 1, out=running[:, 1:])
    return (running[:, ends] > running[:, ends - lengths]).T


def _columns(words: _Words, same: np.ndarray, same_stem: np.ndarray) -> np.ndarray:
    columns = np.empty((len(same), len(WORD_FEATURES)), np.float32)
    columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3] = same, same_stem, words.idf, same * words.idf
    columns[:, 4:] = words.kind
    return columns  # [n, F]


class _WordTable:
    """The features of each distinct word, computed once."""

    def __init__(self, overlap: Overlap):
        self.overlap, self.most = overlap, float(np.log(1 + overlap.n_answers)) or 1.0
        self.numbers: dict[str, int] = {}  # of words in lower case, and of stems
        self.places: dict[str, int] = {}  # of words as they are written

    def places_of(self, words: Sequence[str]) -> np.ndarray:
        places = self.places
        return np.array([places.setdefault(word, len(places)) for word in words], np.int64)

    def words(self) -> _Words:
        """All words, in the order of their places."""
        seen = [_look_of(word) for word in self.places]
        numbers = [self.numbers.setdefault(one.lower, len(self.numbers)) for one in seen]
        stems = [self.numbers.setdefault(one.stem, len(self.numbers)) for one in seen]
        idf = np.array([self.overlap.idf(one.lower) for one in seen]) / self.most
        kinds = np.array([one.kind for one in seen], np.float64).reshape(-1, N_KINDS)
        return _Words(np.array(numbers, np.int64), np.array(stems, np.int64), idf, kinds)


class _Look(NamedTuple):
    lower: str
    stem: str
    kind: tuple[bool, ...]


@lru_cache(MAX_REMEMBERED)
def _look_of(word: str) -> _Look:
    """Features of the word alone, the same in every corpus."""
    lower = word.lower()
    number, capital, sign = any(map(str.isdigit, word)), word[:1].isupper(), not any(map(str.isalnum, word))
    return _Look(
        lower, f"{stem(lower)}*", (lower in STOP_WORDS, number, capital, sign)
    )  # *: a stem may look like a word
