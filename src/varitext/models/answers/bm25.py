"""BM25 as a ranker: the terms of `features/overlap.py` over their sum, so that scores compare across questions.

    score = sum_w idf(w) tf (k + 1) / (tf + k (1 - b + b length / mean length))  /  sum_w idf(w)

over the distinct words w of the question: from 0, no word shared, to k + 1. It needs no fit. Document frequencies are
those of the index that is searched; of the training answers, if it was fitted; otherwise of the question's own
candidates. There is no latent variable.
"""

from collections import Counter

import numpy as np

from varitext.corpora.question_answers import Question, QuestionAnswers
from varitext.models.answers.features.overlap import Overlap, distinct_words, idf, saturated
from varitext.models.answers.scorer import AnswerScorer
from varitext.text import Vocabulary

USUAL_LENGTH = 25  # words, about the mean of WikiQA's and QASent's candidates
SCALE, SHIFT = 5.02, -5.21  # from the score to log odds, by `python -m lab untrained`


class BM25(AnswerScorer):
    joins_columns = False
    knows_every_word = True

    def __init__(self, vocabulary: Vocabulary):
        super().__init__(vocabulary, ("bm25",))
        self.assign(scale=1.0, coefficients=SCALE, intercept=SHIFT)

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        return bm25_share(question_answers, self.overlap)[:, None]  # [P, 1]


BM25.untrained = BM25


def bm25_share(question_answers: QuestionAnswers, overlap: Overlap) -> np.ndarray:
    """The score of every pair, [P], in corpus order; by the candidates' own frequencies if there are no others."""
    return np.concatenate([_of_question(question, overlap) for question in question_answers.questions])


def _of_question(question: Question, overlap: Overlap) -> np.ndarray:
    asked = sorted(distinct_words(question.words))
    tallies = [Counter(word.lower() for word in one.words) for one in question.candidates]
    often = np.array([[tally[word] for word in asked] for tally in tallies], np.float64)  # [C, words]
    if overlap.n_answers:
        weights = idf(overlap.n_answers, np.array([overlap.frequency(word) for word in asked]))
    else:
        weights = idf(len(tallies), (often > 0).sum(0))
    lengths = np.array([[len(one.words)] for one in question.candidates]) / USUAL_LENGTH
    return np.asarray(saturated(often, lengths) @ weights / max(weights.sum(), 1e-9))  # [C]
