"""Compare-aggregate on states of a small pretrained encoder that is not trained further (`pretrained.py`).

There is no latent variable: the bound is the log-likelihood. The network is that of `compare_aggregate.py`, with two
changes: a word starts as its state in its sentence, by MiniLM, and the network also reads how similar the two
sentences and their words are by these states. The model folder holds no part of the encoder.

Before any fit, `Likeness` ranks in its place:

    score = cos(mean of w, mean of v) + mean over w of max_v cos(w, v)

w are the words of the question, without punctuation in the second term, and v those of the candidate. The mapping from
score to probability was fitted on WikiQA's dev questions (`lab/speed/minilm_untrained.py`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.corpora.question_answers import QuestionAnswers
from varitext.layers.attention import Words
from varitext.models.answers.compare_aggregate import CompareAggregate
from varitext.models.answers.features.overlap import is_word
from varitext.models.answers.pretrained import pretrained as shared_encoder
from varitext.models.answers.scorer import AnswerScorer
from varitext.text import Vocabulary

SCALE, SHIFT = 4.20, -7.26  # from the score to log odds: logistic regression, `lab/speed/minilm_untrained.py`


class Likeness(AnswerScorer):
    pretrained = knows_every_word = True
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
        """The two terms of the score, [P, 2]."""
        return np.array([(one.whole, one.by_word) for one in likeness_of(question_answers)]).reshape(-1, 2)


class PairLikeness(NamedTuple):
    """Cosines of a question and a candidate; zero if one of them has no words."""

    whole: float
    by_word: float  # the mean of `question` without punctuation
    question: np.ndarray  # [Tq] the cosine of each word with its nearest in the candidate
    answer: np.ndarray  # [Ta] and of the candidate's words with their nearest in the question


def likeness_of(question_answers: QuestionAnswers) -> list[PairLikeness]:
    """Of every pair, in the order of the corpus."""
    questions = question_answers.questions
    asked = shared_encoder().states([question.words for question in questions])
    said = iter(shared_encoder().states([one.words for question in questions for one in question.candidates]))
    return [
        _likeness(states, next(said), _real_words(question.words))
        for question, states in zip(questions, asked, strict=True)
        for _ in question.candidates
    ]


def _likeness(asked: np.ndarray, said: np.ndarray, real: np.ndarray) -> PairLikeness:
    """Of states [T, H]; `real` says which of the question's are words."""
    if not len(asked) or not len(said):
        return PairLikeness(0.0, 0.0, np.zeros(len(asked)), np.zeros(len(said)))
    whole = _unit(asked.mean(0, np.float32)[None]) @ _unit(said.mean(0, np.float32)[None]).T
    alike = _unit(asked) @ _unit(said).T  # [Tq, Ta]
    nearest = alike.max(1)
    return PairLikeness(float(whole[0, 0]), float(nearest[real].mean()), nearest, alike.max(0))


def _real_words(words: tuple[str, ...]) -> np.ndarray:
    """Which words of a question are not punctuation; all, if there is nothing else."""
    real = np.array([is_word(word) for word in words], bool)
    return real if real.any() else np.ones(len(words), bool)


def _unit(states: np.ndarray) -> np.ndarray:
    wide = states.astype(np.float32)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-9))


class MiniLM(CompareAggregate):
    passes = 3  # on WikiQA's dev questions: best after two, worse from the fourth on
    pretrained = knows_every_word = True
    reads_states = True
    untrained = Likeness
    feature_names = (*CompareAggregate.feature_names, "likeness")

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int = 128,
        maps: int = 48,
        widths: Sequence[int] = (1, 3, 5),
        dropout: float = 0.3,
        features: Sequence[str] | str | None = None,
    ):
        super().__init__(vocabulary_size, 1, hidden_dim, maps, widths, dropout, features)
        self.project = nn.Linear(shared_encoder().width, hidden_dim)

    def _read(self, batch: PairBatch) -> tuple[Words, Words]:
        questions, answers = batch.question_states, batch.answer_states
        assert questions is not None and answers is not None  # `reads_states` asked for them
        return self._states(questions, batch.questions.mask), self._states(answers, batch.answers.mask)

    def _states(self, states: Tensor, mask: Tensor) -> Words:
        return Words(torch.tanh(self.project(self.dropout(states))), mask)  # [n, H]
