"""Overlap: logistic regression on shared words, a baseline for all other models. No latent variable.

Each column alone is a ranking that needs no training: the count of shared words, the same weighted by idf, BM25. With
the candidate's length and position they are a logistic regression that rivals networks on WikiQA.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.overlap import COUNTS, PLACE, WordTable, bm25
from varitext.models.answers.scorer import AnswerScorer, chosen
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from varitext.models.answers.vocabulary import AnswerWords

WORDS = (*COUNTS, "bm25", "log_length")
POSITION = ("log_position", "first_sentence")


class OverlapRegression(AnswerScorer):
    """`features` names the columns; a single one gives the ranking by that column.

    By default they are all of `WORDS`, and with `position` those of `POSITION`.
    """

    joins_columns = False
    feature_names = WORDS + POSITION
    mean_length: np.ndarray

    def __init__(self, vocabulary: Vocabulary, features: Sequence[str] | str | None = None, position: bool = False):
        columns = chosen(features, self.feature_names, WORDS + POSITION * position)
        super().__init__(vocabulary, columns)
        self.named_features = columns
        self.reads_positions = not set(POSITION).isdisjoint(columns)
        self.declare("mean_length", ())
        self.assign(mean_length=1.0)

    def learn_words(self, train: QuestionAnswers, dev: QuestionAnswers, words: "AnswerWords", seed: int) -> None:
        lengths = [len(candidate.words) for question in train.questions for candidate in question.candidates]
        self.assign(mean_length=max(1.0, float(np.mean(lengths))))

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        shared = self.overlap.features(question_answers)
        values = dict(zip(shared.columns, shared.values.T, strict=True))
        values["bm25"] = bm25(WordTable.of(question_answers), self.overlap, self.mean_length.item())
        position = values[PLACE[0]]  # a logarithm: zero for the first sentence
        values["first_sentence"] = np.where(np.isnan(position), np.nan, position == 0)
        return np.column_stack([values[name] for name in self.columns])
