"""What a fit learns from: questions to train on, dev questions that choose when to stop, words, and how many epochs."""

import dataclasses
from typing import NamedTuple

import numpy as np

from varitext.answers.derived_settings import most_wrong_answers, questions_to_learn
from varitext.answers.folds import hold_out
from varitext.answers.settings import AnswerSettings
from varitext.corpora.question_answers import (
    QuestionAnswers,
    canonical_order,
    check_both_labels,
    choose_questions,
    protocol_named,
    subset,
)
from varitext.errors import InputError
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.vocabulary import RANDOM, AnswerWords, learn_words
from varitext.runtime.randomness import stream

MAX_LEFT_OUT = 1500  # questions: more would tell no more, and take longer
MIN_EPOCHS, MAX_EPOCHS = 8, 30  # for very many questions, as QASent's, and for a few dozen


class TrainingData(NamedTuple):
    train: QuestionAnswers
    dev: QuestionAnswers
    words: AnswerWords
    overlap: Overlap
    epochs: int
    every_dev: QuestionAnswers | None = None  # dev questions before `questions` chose of them, if there are others
    left_out: QuestionAnswers | None = None  # training questions without a right answer that nothing is trained on
    share_without_answer: float | None = None  # of all questions that were given


def training_data(
    settings: AnswerSettings, question_answers: QuestionAnswers, dev: QuestionAnswers | None
) -> TrainingData:
    """What `fit` makes of the questions that it is given, or one line that says why they do not do."""
    check_both_labels(question_answers)
    if settings.position:
        _check_positions(question_answers)
    data = learn_from(settings, *_divide(settings, question_answers, dev))
    every = (*question_answers.questions, *(() if dev is None else dev.questions))
    return data._replace(
        every_dev=None if dev is None else canonical_order(dev).question_answers,
        left_out=_left_out(settings, question_answers),
        share_without_answer=sum(not question.has_right for question in every) / len(every),
    )


def learn_from(settings: AnswerSettings, train: QuestionAnswers, dev: QuestionAnswers) -> TrainingData:
    """The same for questions that are divided and chosen already."""
    unseen = 0 if settings.tune_word_vectors else settings.unseen_words  # among tuned ones they would be out of place
    if model_class(settings.model).pretrained:  # every word is known to the encoder
        words = learn_words(train, RANDOM, None, settings.seed)
    else:
        words = learn_words(train, settings.vectors, settings.embedding_dim, settings.seed, unseen)
    return TrainingData(train, dev, words, Overlap.learn(train, words.vocabulary), epochs_for(settings, train))


def epochs_for(settings: AnswerSettings, train: QuestionAnswers) -> int:
    """Those asked for, or enough for the model's `updates`; the networks of folds, with fewer pairs, make as many."""
    if settings.epochs is not None:
        return settings.epochs
    if passes := model_class(settings.model).passes:
        return passes
    right = np.bincount(train.groups, train.labels, train.n_questions)
    wrong = np.bincount(train.groups, 1 - train.labels, train.n_questions)
    pairs = int(np.sum(right + np.minimum(wrong, most_wrong_answers(settings) or np.inf)))
    updates = model_class(settings.model).updates
    return max(MIN_EPOCHS, min(MAX_EPOCHS, round(updates * settings.batch_size / pairs)))


def _divide(
    settings: AnswerSettings, question_answers: QuestionAnswers, dev: QuestionAnswers | None
) -> tuple[QuestionAnswers, QuestionAnswers]:
    """Questions to learn from and questions that choose when to stop, in an order that no file decides."""
    train = _without_long_answers(canonical_order(question_answers).question_answers, settings.longest_answer)
    train = subset(train, questions_to_learn(settings))
    if dev is None:
        train, dev = hold_out(train, settings.recipe.dev_share, settings.seed)
    else:
        dev = subset(canonical_order(dev).question_answers, questions_to_learn(settings))
    check_both_labels(train)
    return train, dev


def _left_out(settings: AnswerSettings, given: QuestionAnswers) -> QuestionAnswers | None:
    """At most `MAX_LEFT_OUT` of those without a right answer, if the protocol of training passes these over."""
    if not protocol_named(questions_to_learn(settings)).needs_right:
        return None
    arranged = canonical_order(given).question_answers
    without = np.flatnonzero([not question.has_right for question in arranged.questions])
    if not len(without):
        return None
    drawn = np.random.default_rng(stream(settings.seed, "left out")).permutation(without)[:MAX_LEFT_OUT]
    return choose_questions(arranged, np.isin(np.arange(arranged.n_questions), drawn))


def _without_long_answers(train: QuestionAnswers, longest: int | None) -> QuestionAnswers:
    if longest is None:
        return train
    kept = []
    for question in train.questions:
        short = tuple(one for one in question.candidates if len(one.words) <= longest)
        kept += [question._replace(candidates=short)] if short else []
    if not kept:
        raise InputError(f"no training candidate has at most {longest} words (longest_answer)")
    return dataclasses.replace(train, questions=tuple(kept))


def _check_positions(train: QuestionAnswers) -> None:
    """Some candidate's place in its document is known."""
    if not any(one.position is not None for question in train.questions for one in question.candidates):
        raise InputError(f"{train.name} ({train.part}) does not tell where its candidates stand: leave out position")
