"""What a network reads of questions beside the numbers of their words, by what it asks for."""

import numpy as np

from varitext.batches.pairs import PairInputs, PairWordFeatures
from varitext.batches.tokens import PairPieces
from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.features.word_features import word_features
from varitext.models.answers.network import AnswerNetwork


def network_inputs(model: AnswerNetwork, question_answers: QuestionAnswers, overlap: Overlap) -> PairInputs:
    names = model.pair_columns
    columns = overlap.features(question_answers).only(names).values if names else None
    words = word_features(question_answers, overlap) if model.reads_word_features else None
    if model.reads_likeness:
        columns, words = _with_likeness(question_answers, columns, words)
    questions, answers = _states(question_answers) if model.reads_states else (None, None)
    return PairInputs(columns, words, questions, answers, _pieces(question_answers) if model.reads_pieces else None)


def _with_likeness(
    question_answers: QuestionAnswers, columns: np.ndarray | None, words: list[PairWordFeatures] | None
) -> tuple[np.ndarray, list[PairWordFeatures]]:
    """Two columns before the others, and one after the other features of every word."""
    from varitext.models.answers.likeness import likeness_of

    alike = likeness_of(question_answers)
    parts = [np.array([(one.whole, one.by_word) for one in alike]), *([] if columns is None else [columns])]
    of_words = [PairWordFeatures(_as_column(one.question), _as_column(one.answer)) for one in alike]
    if words is not None:
        both = zip(words, of_words, strict=True)
        of_words = [PairWordFeatures(*map(np.hstack, zip(own, new, strict=True))) for own, new in both]
    return np.hstack(parts), of_words


def _as_column(cosine: np.ndarray) -> np.ndarray:
    """From 0 .. 1, where nearly all are, to -1 .. 1."""
    return (2 * cosine[:, None] - 1).astype(np.float32)  # [T, 1]


def _states(question_answers: QuestionAnswers) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of the words of every question and of every pair's answer."""
    from varitext.models.answers.pretrained import pretrained

    asked = [question.words for question in question_answers.questions]
    said = [one.words for question in question_answers.questions for one in question.candidates]
    found = pretrained().states([*asked, *said])
    return found[: len(asked)], found[len(asked) :]


def _pieces(question_answers: QuestionAnswers) -> list[PairPieces]:
    from varitext.models.answers.pretrained import pretrained

    together, questions = pretrained().together, question_answers.questions
    return [together(question.words, one.words) for question in questions for one in question.candidates]
