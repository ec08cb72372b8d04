"""From a user's settings to those of the parts: how the model is built, how it is trained, and what joins it."""

import dataclasses
import inspect
from typing import Any

import numpy as np

from varitext.answers.settings import AnswerSettings
from varitext.answers.task import AnswerObjective
from varitext.errors import InputError
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import COUNTS, PLACE
from varitext.models.answers.recurrent import INITIALIZATIONS
from varitext.models.answers.vocabulary import AnswerWords
from varitext.training.settings import TrainingSettings

EMBEDDING_DIM = 50  # the paper's; where there are no vectors to take it from


def check_settings(settings: AnswerSettings) -> None:
    recipe = settings.recipe
    if not model_class(settings.model).feature_names and settings.features is not None:
        raise InputError(f"{settings.model} has no features to choose from: leave out features")
    named = settings.flat()
    fewest = model_class(settings.model).fewest_latent_dims
    if settings.latent_dim is not None and settings.latent_dim < fewest:
        raise InputError(f"latent_dim must be at least {fewest}, not {settings.latent_dim}")
    for name in (
        "embedding_dim",
        "hidden_dim",
        "layers",
        "ensemble",
        "prediction_samples",
        "longest_answer",
    ):
        if named[name] is not None and named[name] < 1:
            raise InputError(f"{name} must be at least 1, not {named[name]}")
    if settings.unseen_words < 0:
        raise InputError(f"unseen_words must be 0 or more, not {settings.unseen_words}")
    if not model_class(settings.model).trained_by_gradient and settings.ensemble != 1:
        raise InputError(f"{settings.model} comes out the same whatever the seed: leave out ensemble")
    if recipe.folds < 2:
        raise InputError(f"folds must be at least 2, not {recipe.folds}")
    if not 0 <= recipe.free_bits < np.inf:
        raise InputError(f"free_bits must be 0 or more nats, not {recipe.free_bits}")
    if recipe.initialization not in (None, *INITIALIZATIONS):
        raise InputError(f"initialization is {' or '.join(INITIALIZATIONS)}, not {recipe.initialization!r}")
    if recipe.dropout is not None and not 0 <= recipe.dropout < 1:
        raise InputError(f"dropout is a share from 0 to below 1, not {recipe.dropout}")


def architecture_for(settings: AnswerSettings, words: AnswerWords) -> dict[str, Any]:
    """The settings that the model itself is built with, of those that it has."""
    recipe, kind = settings.recipe, model_class(settings.model)
    given = settings.embedding_dim or EMBEDDING_DIM
    sizes = {
        "latent_dim": settings.latent_dim,
        "hidden_dim": recipe.hidden_dim,
        "layers": recipe.layers,
        "dropout": recipe.dropout,
        "initialization": recipe.initialization,
        "features": kind.features_of_new_fits if settings.features is None else settings.features,
        "position": settings.position,
        "embedding_dim": given if words.start is None else words.start.shape[1],
        "fixed_words": 0 if settings.tune_word_vectors else words.n_known,
    }
    parameters = inspect.signature(kind).parameters
    known = {name: value for name, value in sizes.items() if name in parameters}
    for name in ("latent_dim", "hidden_dim", "layers", "dropout", "initialization"):
        if name in known and known[name] is None:
            known[name] = parameters[name].default
    return {"vocabulary_size": len(words.vocabulary)} | known


def training_settings(settings: AnswerSettings, epochs: int) -> TrainingSettings:
    """Those of one network; the time is shared with the networks of the folds."""
    recipe, kind = settings.recipe, model_class(settings.model)
    training = TrainingSettings(
        epochs=epochs,
        batch_size=max(1, round(settings.batch_size * kind.batch_factor)),
        learning_rate=settings.learning_rate * kind.learning_rate_factor,
        kl_warm_up=recipe.kl_warm_up,
        samples=kind.training_samples if recipe.samples is None else recipe.samples,
        weight_decay=recipe.weight_decay,
        averaging=recipe.averaging,
        patience=recipe.patience,
        smoothing=recipe.smoothing,
        time_limit=settings.time_limit,
        seed=settings.seed,
    )
    if settings.time_limit is None:
        return training
    networks = settings.ensemble * (1 + recipe.folds * bool(joined_columns(settings)))
    return dataclasses.replace(training, time_limit=settings.time_limit / networks)


def answer_objective(settings: AnswerSettings) -> AnswerObjective:
    return AnswerObjective(settings.recipe.free_bits, most_wrong_answers(settings))


def questions_to_learn(settings: AnswerSettings) -> str:
    """The protocol that chooses them."""
    return settings.questions or model_class(settings.model).learns_from


def most_wrong_answers(settings: AnswerSettings) -> int | None:
    """Of a question per pass; None for all, as where all candidates of a question share its h."""
    return None if model_class(settings.model).latent_of_question else settings.recipe.most_wrong


def joined_columns(settings: AnswerSettings) -> tuple[str, ...]:
    """What the second stage joins with the model's probability; none, and there is no second stage."""
    if not model_class(settings.model).joins_columns:
        return ()
    return (COUNTS if settings.counts else ()) + (PLACE if settings.position else ())
