"""The steps between questions and a first stage that learns: check settings, divide questions, choose sizes."""

import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varitext.answers.folds import hold_out
from varitext.answers.second_stage import Combination
from varitext.answers.task import AnswerObjective
from varitext.corpora.arranged import arrange
from varitext.corpora.question_answers import QuestionAnswers, check_both_labels, subset
from varitext.errors import InputError
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import COUNTS, PLACE, PairFeatures
from varitext.models.answers.vocabulary import AnswerWords
from varitext.training.settings import Progress, TrainingSettings

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker

EMBEDDING_DIM = 50  # the paper's; where there are no vectors to take it from
SIZES = ("latent_dim", "hidden_dim", "layers", "dropout", "features", "position")
FEWEST_EPOCHS, MOST_EPOCHS = 8, 30  # for very many questions, as QASent's, and for a few dozen
TRAINING = (
    "batch_size",
    "learning_rate",
    "weight_decay",
    "averaging",
    "kl_warm_up",
    "patience",
    "smoothing",
    "samples",
    "seed",
)


class Lesson(NamedTuple):
    """What one fit learns from, and how it is watched."""

    train: QuestionAnswers
    dev: QuestionAnswers
    words: AnswerWords
    progress: Progress | None = None
    checkpoint: Path | None = None
    resume: bool = False


class Unseen(NamedTuple):
    """Training pairs as the second stage sees them."""

    probability: np.ndarray  # out of fold
    features: PairFeatures
    labels: np.ndarray

    def combination(self, columns: tuple[str, ...]) -> Combination:
        return Combination.fit(self.probability, self.features.only(columns), self.labels)


def check_settings(chosen: "AnswerRanker") -> None:
    if not model_class(chosen.model).feature_names and chosen.features is not None:
        raise InputError(f"{chosen.model} has no features to choose from: leave out features")
    for name in ("latent_dim", "embedding_dim", "hidden_dim", "layers", "prediction_samples", "longest_answer"):
        if getattr(chosen, name) is not None and getattr(chosen, name) < 1:
            raise InputError(f"{name} must be at least 1, not {getattr(chosen, name)}")
    if chosen.unseen_words < 0:
        raise InputError(f"unseen_words must be 0 or more, not {chosen.unseen_words}")
    if chosen.folds < 2:
        raise InputError(f"folds must be at least 2, not {chosen.folds}")
    if not 0 <= chosen.free_bits < np.inf:
        raise InputError(f"free_bits must be 0 or more nats, not {chosen.free_bits}")
    if not 0 <= chosen.dropout < 1:
        raise InputError(f"dropout is a share from 0 to below 1, not {chosen.dropout}")


def divide(
    chosen: "AnswerRanker", question_answers: QuestionAnswers, dev: QuestionAnswers | None
) -> tuple[QuestionAnswers, QuestionAnswers]:
    """Questions to learn from and questions that choose when to stop, in an order that no file decides."""
    train = subset(_without_long_answers(arrange(question_answers).question_answers, chosen), chosen.questions)
    if dev is None:
        train, dev = hold_out(train, chosen.dev_share, chosen.seed)
    else:
        dev = subset(arrange(dev).question_answers, chosen.questions)
    check_both_labels(train)
    return train, dev


def _without_long_answers(train: QuestionAnswers, chosen: "AnswerRanker") -> QuestionAnswers:
    longest = chosen.longest_answer
    if longest is None:
        return train
    kept = []
    for question in train.questions:
        short = tuple(one for one in question.candidates if len(one.words) <= longest)
        kept += [question._replace(candidates=short)] if short else []
    if not kept:
        raise InputError(f"no training candidate has at most {longest} words (longest_answer)")
    return dataclasses.replace(train, questions=tuple(kept))


def joined_columns(chosen: "AnswerRanker") -> tuple[str, ...]:
    """What the second stage joins with the model's probability; none, and there is no second stage."""
    if not model_class(chosen.model).joins_columns:
        return ()
    return (COUNTS if chosen.counts else ()) + (PLACE if chosen.position else ())


def architecture_for(chosen: "AnswerRanker", words: AnswerWords) -> dict[str, Any]:
    """The settings that the model itself is built with, of those that it has."""
    sizes = {name: getattr(chosen, name) for name in SIZES}
    has_start = words.start is not None
    sizes["embedding_dim"] = words.start.shape[1] if has_start else chosen.embedding_dim or EMBEDDING_DIM
    sizes["fixed_words"] = 0 if chosen.tune_word_vectors else words.n_known
    parameters = inspect.signature(model_class(chosen.model)).parameters
    known = {name: value for name, value in sizes.items() if name in parameters}
    return {"vocabulary_size": len(words.vocabulary)} | known


def epochs_for(chosen: "AnswerRanker", train: QuestionAnswers) -> int:
    """Those asked for, or enough for the model's `updates`; the networks of folds, with fewer pairs, make as many."""
    if chosen.epochs is not None:
        return chosen.epochs
    right = np.bincount(train.groups, train.labels, train.n_questions)
    wrong = np.bincount(train.groups, 1 - train.labels, train.n_questions)
    pairs = int(np.sum(right + np.minimum(wrong, chosen.most_wrong or np.inf)))
    updates = model_class(chosen.model).updates
    return max(FEWEST_EPOCHS, min(MOST_EPOCHS, round(updates * chosen.batch_size / pairs)))


def training_settings(chosen: "AnswerRanker") -> TrainingSettings:
    """Those of one network; the time is shared with the networks of the folds."""
    named = {name: getattr(chosen, name) for name in TRAINING}
    settings = TrainingSettings(epochs=chosen.epochs_, time_limit=chosen.time_limit, **named)
    if chosen.time_limit is None or not joined_columns(chosen):
        return settings
    return dataclasses.replace(settings, time_limit=chosen.time_limit / (1 + chosen.folds))


def answer_objective(chosen: "AnswerRanker") -> AnswerObjective:
    return AnswerObjective(chosen.free_bits, chosen.most_wrong)
