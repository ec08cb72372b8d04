"""Questions in the order and length that models read them: candidates sorted, long sentences cut, places remembered."""

import itertools
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers

MAX_SENTENCE_LENGTH = 250  # words; what comes after is not read. The longest of WikiQA and QASent has 236


class CanonicalOrder(NamedTuple):
    """A corpus in the order of its words, which no file decides, with overlong sentences cut."""

    question_answers: QuestionAnswers
    place: np.ndarray  # [P] where each pair stands in the corpus as it was given

    def restore_order(self, values: np.ndarray) -> np.ndarray:
        """Values of the arranged pairs, [..., P], in the order of the corpus as it was given."""
        back = np.empty_like(values)
        back[..., self.place] = values
        return back


def canonical_order(question_answers: QuestionAnswers) -> CanonicalOrder:
    given, pair = [], 0
    for question in question_answers.questions:
        short = [one._replace(words=one.words[:MAX_SENTENCE_LENGTH]) for one in question.candidates]
        numbered = list(zip(short, range(pair, pair + len(short)), strict=True))
        pair += len(numbered)
        numbered.sort(key=lambda one: (one[0].words, one[0].position or 0, one[0].id, one[0].label))
        given.append((question._replace(words=question.words[:MAX_SENTENCE_LENGTH]), numbered))
    given.sort(key=lambda one: (one[0].words, one[0].id))
    _warn_of_cuts(question_answers)
    questions = tuple(question._replace(candidates=tuple(one for one, _ in numbered)) for question, numbered in given)
    place = np.array([number for _, numbered in given for _, number in numbered], np.int64)
    return CanonicalOrder(replace(question_answers, questions=questions), place)


def choose_questions(question_answers: QuestionAnswers, chosen: np.ndarray) -> QuestionAnswers:
    """The questions for which `chosen` is true."""
    return replace(question_answers, questions=tuple(itertools.compress(question_answers.questions, chosen)))


def _warn_of_cuts(question_answers: QuestionAnswers) -> None:
    questions = question_answers.questions
    sentences = [words for one in questions for words in (one.words, *(other.words for other in one.candidates))]
    lengths = [len(words) for words in sentences if len(words) > MAX_SENTENCE_LENGTH]
    if lengths:
        many = "sentences are" if len(lengths) > 1 else "sentence is"
        warnings.warn(
            f"{len(lengths)} {many} longer than {MAX_SENTENCE_LENGTH} words (the longest: {max(lengths):,}); "
            "only the beginning is read",
            stacklevel=4,
        )
