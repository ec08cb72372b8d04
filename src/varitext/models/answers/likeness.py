"""A question and a candidate by states of MiniLM: how alike they are as a whole, and word by word.

    score = cos(mean of w, mean of v) + mean over w of max_v cos(w, v)

w are the words of the question and v those of the candidate; punctuation of the question has no part in the second
term. It needs no training: what probability a score means was found on WikiQA's dev questions, and is the same for
everybody (`benchmarks/minilm_untrained.py`).
"""

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.overlap import is_word
from varitext.models.answers.pretrained import pretrained as shared_encoder
from varitext.models.answers.scorer import AnswerScorer
from varitext.text import Vocabulary

SCALE, SHIFT = 4.20, -7.26  # of the score, to log odds: logistic regression, `benchmarks/minilm_untrained.py`


class Likeness(AnswerScorer):
    pretrained = True
    reads_states = True

    def __init__(self, vocabulary: Vocabulary):
        super().__init__(vocabulary, ("likeness",))
        self.scale.fill_(1.0)
        self.coefficients.fill_(SCALE)
        self.intercept.fill_(SHIFT)

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        found: np.ndarray = self.parts(question_answers).sum(1, keepdims=True)
        return found  # [P, 1]

    def parts(self, question_answers: QuestionAnswers) -> np.ndarray:
        """The two terms of the score, [P, 2]: as a whole, and word by word."""
        questions = question_answers.questions
        asked = shared_encoder().states([question.words for question in questions])
        said = iter(shared_encoder().states([one.words for question in questions for one in question.candidates]))
        return np.array(
            [
                _likeness(states, next(said), _real_words(question.words))
                for question, states in zip(questions, asked, strict=True)
                for _ in question.candidates
            ]
        ).reshape(-1, 2)


def _likeness(asked: np.ndarray, said: np.ndarray, real: np.ndarray) -> tuple[float, float]:
    """Of states [T, H]; `real` says which of the question's are words."""
    if not len(asked) or not len(said):
        return 0.0, 0.0
    whole = _unit(asked.mean(0, np.float32)[None]) @ _unit(said.mean(0, np.float32)[None]).T
    return float(whole[0, 0]), float((_unit(asked[real]) @ _unit(said).T).max(1).mean())


def _real_words(words: tuple[str, ...]) -> np.ndarray:
    """Which words of a question are no punctuation; all, if there is nothing else."""
    real = np.array([is_word(word) for word in words], bool)
    return real if real.any() else np.ones(len(words), bool)


def _unit(states: np.ndarray) -> np.ndarray:
    wide = states.astype(np.float32)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-9))
