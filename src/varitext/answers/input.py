"""The input of a ranker: texts, pairs, DataFrames and corpora, as one corpus of questions; and known candidates."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from varitext.corpora.own_questions import QuestionColumns, from_table
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers, reading_form, sentence_words
from varitext.errors import InputError
from varitext.models.answers.features.overlap import is_word
from varitext.text import Vocabulary

QuestionSource = QuestionAnswers | Iterable[tuple[str, Sequence[str]]] | Any
"""Also a DataFrame; pandas is not needed here."""


def as_corpus(question: str, candidates: Sequence[str], positions: Sequence[int | None] | None) -> QuestionAnswers:
    """One question as a corpus."""
    if not isinstance(question, str) or not (question_words := sentence_words(question)):
        raise InputError("the question is empty")
    _check_candidates(candidates)
    positions = [None] * len(candidates) if positions is None else positions
    _check_positions(positions, len(candidates))
    listed = tuple(
        Candidate(str(place), sentence_words(text), text, 0, position)
        for place, (text, position) in enumerate(zip(candidates, positions, strict=True))
    )
    return QuestionAnswers("question", "all", (), (Question("0", question_words, question, listed),))


def as_questions(given: "QuestionSource", columns: QuestionColumns, labelled: bool = False) -> QuestionAnswers:
    """A corpus, the rows of a DataFrame, or pairs of a question and its candidates, as a corpus."""
    if isinstance(given, QuestionAnswers):
        return given
    if hasattr(given, "to_dict"):
        return from_table(given, columns, labelled)
    if labelled or isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError("questions must be a corpus (load_questions) or a DataFrame with one row per candidate")
    listed = [as_corpus(*_question_and_candidates(one), None).questions[0] for one in given]
    numbered = (one._replace(id=str(number)) for number, one in enumerate(listed))
    return QuestionAnswers("questions", "all", (), tuple(numbered))


def _question_and_candidates(one: Any) -> tuple[str, Sequence[str]]:
    try:
        question, candidates = one
    except (TypeError, ValueError):
        raise InputError("each question must be a pair: its text and a list of candidates") from None
    return question, candidates


def _check_candidates(candidates: Sequence[str]) -> None:
    if isinstance(candidates, str) or not all(isinstance(one, str) for one in candidates):
        raise InputError("candidates must be a list of texts")
    if not len(candidates):
        raise InputError("there are no candidates")


def _check_positions(positions: Sequence[int | None], n_candidates: int) -> None:
    if len(positions) != n_candidates:
        raise InputError(f"there are {n_candidates} candidates and {len(positions)} positions")
    if any(one is not None and one < 0 for one in positions):
        raise InputError("positions count from 0: they must not be negative")


def check_known(question: Question, candidates: np.ndarray, vocabulary: Vocabulary | None) -> None:
    """Refuse an unknown question, or one without a known candidate, [P]. Without a vocabulary every word is known."""
    if not _has_known_word(question.words, vocabulary):
        raise InputError("the question has no word that the model knows; the training questions had none of them")
    if not candidates.any():
        raise InputError("no candidate has a word that the model knows")


def known_candidates(
    question_answers: QuestionAnswers, vocabulary: Vocabulary | None, shared_words: bool
) -> np.ndarray:
    """Whether each candidate has a word of the vocabulary or, if `shared_words` count, of its question, [P]."""
    known = []
    for question in question_answers.questions:
        asked = {word.lower() for word in question.words if is_word(word)} if shared_words else set()
        for one in question.candidates:
            known.append(_has_known_word(one.words, vocabulary) or any(word.lower() in asked for word in one.words))
    return np.array(known, bool)


def _has_known_word(words: Sequence[str], vocabulary: Vocabulary | None) -> bool:
    if vocabulary is None:
        return any(map(is_word, words))
    return any(is_word(word) and reading_form(word) in vocabulary.index for word in words)
