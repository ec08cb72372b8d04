"""The words that a question and a candidate share, where the candidate stands and how long it is (paper: +Cnt).

    word_overlap        the number of different words of the question that the candidate has too, without stop words
    idf_overlap         the same, each word weighed by idf = log((1 + N) / (1 + df)) over the N training answers
    word_overlap_all    both with stop words: on WikiQA these tell more, as "how many" asks for other sentences than
    idf_overlap_all     "who" does
    log_position        log(1 + place in its document), unknown where the corpus does not tell
    log_length          log(1 + number of words)

Case and punctuation do not count. df is of training answers alone, and a word that none of them has is as rare as
a word can be: nothing of a test part is needed. `Combination` joins such columns with a model's probability by logistic
regression; whoever fits it gives it probabilities of pairs that the model was not trained on.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.linear_model import LogisticRegression

from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.text import Vocabulary

COUNTS = ("word_overlap", "idf_overlap", "word_overlap_all", "idf_overlap_all")
PLACE = ("log_position", "log_length")
COLUMNS = COUNTS + PLACE
STOP_WORDS = ENGLISH_STOP_WORDS | {"did", "does", "n't", "'s", "'m", "'d", "'re", "'ve", "'ll"}
SMALLEST = 1e-12  # a probability nearer to 0 or 1 has no finite log odds worth the name


class PairFeatures(NamedTuple):
    """One row per pair, in the order of the corpus."""

    columns: tuple[str, ...]
    values: np.ndarray  # [pairs, columns]; NaN where a position is unknown

    def only(self, columns: Sequence[str]) -> "PairFeatures":
        return PairFeatures(tuple(columns), self.values[:, [self.columns.index(name) for name in columns]])


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
                counts = [count for words in (telling, shared) for count in (len(words), sum(map(weights.get, words)))]
                position = np.nan if candidate.position is None else np.log1p(candidate.position)
                rows.append((*counts, position, np.log1p(len(candidate.words))))
        return PairFeatures(COLUMNS, np.array(rows, np.float64))


def _distinct_words(words: Sequence[str]) -> set[str]:
    return {word.lower() for word in words if any(map(str.isalnum, word))}


@dataclass(frozen=True)
class Combination:
    """Logistic regression on a model's log odds and columns of `PairFeatures`, each standardised."""

    columns: tuple[str, ...]  # the first is log_odds
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float

    @classmethod
    def fit(cls, probabilities: np.ndarray, features: PairFeatures, labels: np.ndarray) -> "Combination":
        """`probabilities` must be out-of-fold: those of training pairs would be trusted far too much."""
        values = _with_log_odds(probabilities, features)
        columns = ("log_odds", *features.columns)
        mean, scale = np.nanmean(values, 0), np.nanstd(values, 0)
        scale[scale <= 1e-12 * np.abs(mean)] = 1.0  # a column that never varies, but for rounding
        regression = LogisticRegression(C=1.0, max_iter=1000).fit(_standardised(values, mean, scale), labels)
        numbers = [tuple(map(float, one)) for one in (mean, scale, regression.coef_[0])]
        return cls(columns, *numbers, float(regression.intercept_[0]))

    def probability(self, probabilities: np.ndarray, features: PairFeatures) -> np.ndarray:
        """The combined probability of each pair."""
        values = _with_log_odds(probabilities, features.only(self.columns[1:]))
        standardised = _standardised(values, np.array(self.mean), np.array(self.scale))
        return expit(standardised @ np.array(self.coefficients) + self.intercept)


def _with_log_odds(probabilities: np.ndarray, features: PairFeatures) -> np.ndarray:
    return np.column_stack([logit(np.clip(probabilities, SMALLEST, 1 - SMALLEST)), features.values])


def _standardised(values: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """What is unknown says nothing: it stands at the mean."""
    return np.nan_to_num((values - mean) / scale, nan=0.0)


def question_folds(train: QuestionAnswers, folds: int, seed: int) -> np.ndarray:
    """The fold of every question: equal questions together, those with a right answer spread evenly."""
    has_right: dict[tuple[str, ...], bool] = {}
    for question in train.questions:
        has_right[question.words] = has_right.get(question.words, False) or question.has_right
    if len(has_right) < 2:
        raise InputError("counts and position need at least 2 different questions to learn from")
    words = sorted(has_right)
    order = np.random.default_rng((seed, 2)).permutation(len(words)).tolist()
    order.sort(key=lambda place: has_right[words[place]])  # stable: at random among either kind
    fold_of = {words[place]: number % folds for number, place in enumerate(order)}
    return np.array([fold_of[question.words] for question in train.questions])
