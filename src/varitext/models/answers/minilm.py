"""Compare-aggregate on states of a small pretrained encoder that is not trained further (`pretrained.py`).

There is no latent variable: the bound is the log-likelihood. The network is that of `compare_aggregate.py`, with three
changes: a word starts as its state in its sentence, by MiniLM; the network also reads how similar the two sentences
and their words are by these states; and prediction adds half the log odds of `General` instead of a linear ranking,
for the sake of other text. The model folder holds no part of the encoder.

Before any fit, `General` ranks in its place: log odds that are linear in

    whole        cos(mean of w, mean of v)
    by_word      mean over w, without punctuation, of max_v cos(w, v)
    new_words    mean over the candidate's content words v that are not in the question of max_w cos(w, v)

and in what an answer to such a question should have (`features/carried.py`); w are the words of the question, v those
of the candidate. The weights were fitted to lists of WikiQA's and QASent's training questions
(`lab/speed/untrained.py`), not to any user's text.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.layers.attention import Words
from varitext.models.answers.compare_aggregate import LIKENESS, CompareAggregate
from varitext.models.answers.features.carried import expected_features, new_words
from varitext.models.answers.features.overlap import is_word
from varitext.models.answers.network import Encoding
from varitext.models.answers.pretrained import pretrained as shared_encoder
from varitext.models.answers.scorer import AnswerScorer
from varitext.text import Vocabulary

# of log odds: a listwise loss on training lists of both corpora, `python -m lab untrained`
WEIGHTS = {
    "whole": 3.65,
    "by_word": 4.21,
    "new_words": 1.98,
    "list_coverage": 1.29,
    "name_missing": -1.05,
    "year_missing": -4.14,
    "no_date": -2.58,
    "no_number": -1.77,
    "no_name": -1.77,
    "no_new_word": -4.61,
    "is_question": -3.34,
    "negation": -1.04,
}
SHIFT = -7.79
GENERAL_SHARE = 0.5  # in the prediction of a fitted ranker
SIMILARITIES = ("whole", "by_word", "new_words")


class General(AnswerScorer):
    """Similarity by MiniLM, shared words, and the kind of answer that is asked for: it needs no fit."""

    pretrained = knows_every_word = True
    reads_word_vectors = False
    reads_states = True

    def __init__(self, vocabulary: Vocabulary):
        super().__init__(vocabulary, tuple(WEIGHTS))
        self.assign(scale=1.0, coefficients=list(WEIGHTS.values()), intercept=SHIFT)

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        return general_columns(question_answers, likeness_of(question_answers))


def general_columns(question_answers: QuestionAnswers, alike: "Sequence[PairLikeness]") -> np.ndarray:
    """The columns of `WEIGHTS`, [P, F]."""
    similar = np.array([(one.whole, one.by_word, one.new_words) for one in alike]).reshape(-1, len(SIMILARITIES))
    expected = expected_features(question_answers).only(list(WEIGHTS)[len(SIMILARITIES) :])
    return np.hstack([similar, expected.values])


def general_log_odds(columns: np.ndarray) -> np.ndarray:
    found: np.ndarray = columns @ np.array(list(WEIGHTS.values())) + SHIFT
    return found  # [P]


class PairLikeness(NamedTuple):
    """Cosines of a question and a candidate; zero if one of them has no words."""

    whole: float
    by_word: float  # the mean of `question` without punctuation
    new_words: float  # the mean of `answer` over content words that the question does not have
    question: np.ndarray  # [Tq] the cosine of each word with its nearest in the candidate
    answer: np.ndarray  # [Ta] and of the candidate's words with their nearest in the question


def likeness_of(question_answers: QuestionAnswers) -> list[PairLikeness]:
    """The likeness of every pair, in the order of the corpus."""
    questions = question_answers.questions
    asked = shared_encoder().states([question.words for question in questions])
    said = shared_encoder().states([one.words for question in questions for one in question.candidates])
    found, begin = [], 0
    for question, states in zip(questions, asked, strict=True):
        end = begin + len(question.candidates)
        found += _likeness(states, said[begin:end], _real_words(question.words), new_words(question))
        begin = end
    return found


def _likeness(
    asked: np.ndarray, said: Sequence[np.ndarray], real: np.ndarray, new: Sequence[np.ndarray]
) -> list[PairLikeness]:
    """The likeness of each pair, from the states of a question, [Tq, H], and of its candidates, C times [T, H].

    `real` marks the words of the question that are not punctuation, `new` the words of each candidate that are new.
    """
    nothing = [PairLikeness(0.0, 0.0, 0.0, np.zeros(len(asked)), np.zeros(len(one))) for one in said]
    some = [place for place, one in enumerate(said) if len(one) and len(asked)]
    if not some:
        return nothing
    lengths = [len(said[place]) for place in some]
    begin = np.cumsum([0, *lengths[:-1]])
    joined = np.concatenate([said[place] for place in some]).astype(np.float32)  # [m, H]
    means = np.add.reduceat(joined, begin) / np.array(lengths, np.float32)[:, None]  # [C, H]
    whole = _unit(means) @ _unit(asked.mean(0, np.float32)[None])[0]  # [C]
    alike = _unit(asked) @ _unit(joined).T  # [Tq, m]
    nearest, back = np.maximum.reduceat(alike, begin, 1).T, np.split(alike.max(0), begin[1:])  # [C, Tq]
    for row, place in enumerate(some):
        of_new = float(back[row][new[place]].mean()) if new[place].any() else 0.0
        by_word = float(nearest[row][real].mean())
        nothing[place] = PairLikeness(float(whole[row]), by_word, of_new, nearest[row], back[row])
    return nothing


def _real_words(words: tuple[str, ...]) -> np.ndarray:
    """Which words of a question are not punctuation; all, if there is only punctuation."""
    real = np.array([is_word(word) for word in words], bool)
    return real if real.any() else np.ones(len(words), bool)


def _unit(states: np.ndarray) -> np.ndarray:
    wide = states.astype(np.float32)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-9))


class MiniLM(CompareAggregate):
    mixes_lists = False  # they gained nothing here
    passes = 3  # on WikiQA's dev questions: best after two, worse from the fourth on
    pretrained = knows_every_word = True
    reads_word_vectors = False
    reads_states = True
    untrained = General
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

    def prepare(self, batches: PairBatches, train: QuestionAnswers) -> None:
        """Nothing: `General` takes the place of the linear ranking."""

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits = super().logits(h, encoding)
        if self.reads_likeness and encoding.features is not None and not self.training:
            logits = logits + GENERAL_SHARE * encoding.features[:, LIKENESS - 1].to(logits)
        return logits

    def _read(self, batch: PairBatch) -> tuple[Words, Words]:
        questions, answers = batch.question_states, batch.answer_states
        assert questions is not None and answers is not None  # `reads_states` asked for them
        return self._states(questions, batch.questions.mask), self._states(answers, batch.answers.mask)

    def _states(self, states: Tensor, mask: Tensor) -> Words:
        return Words(torch.tanh(self.project(self.dropout(states))), mask)  # [n, H]
