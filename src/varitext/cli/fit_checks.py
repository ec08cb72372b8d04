"""What `varitext fit` refuses before anything is loaded: options that do not apply, and folders that are taken."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from varitext.answers.settings import DEFAULT_MODEL
from varitext.cli.checks import refuse_options
from varitext.cli.data_settings import QuestionSettings
from varitext.cli.fit_jobs import FitRequest
from varitext.cli.fit_options import ANSWER_OPTIONS, DOCUMENT_OPTIONS
from varitext.cli.printing import log
from varitext.documents.settings import DocumentSettings, default_document_model
from varitext.errors import InputError
from varitext.loading import load_any
from varitext.models.answers import ANSWER_MODELS, model_class
from varitext.models.documents import DOCUMENT_MODELS, check_preset
from varitext.models.registry import check_name
from varitext.records import record_from_options

ONLY_ANSWERS = ANSWER_OPTIONS.keys() - DOCUMENT_OPTIONS.keys()
ON_RAY = ("ray_workers", "ray_address")
ONLY_DOCUMENTS = (DOCUMENT_OPTIONS.keys() - ANSWER_OPTIONS.keys()) | set(ON_RAY)
LATENT_OPTIONS = ("latent_dim", "kl_warm_up", "free_bits")
WORD_VECTOR_OPTIONS = ("vectors", "embedding_dim", "tune_vectors", "unseen_words")
TRAINING_OPTIONS = ("epochs", "batch_size", "learning_rate")


def refuse_typed(typed: dict[str, Any], names: Collection[str], reason: str) -> None:
    refuse_options({name: value for name, value in typed.items() if name in names}, reason)


def default_model(corpus: str, typed: dict[str, Any]) -> str:
    """By what the corpus holds. What cannot be read is taken for documents: loading it says what is wrong."""
    from varitext.corpora import holds_questions

    try:
        columns = record_from_options(QuestionSettings, typed).columns()
        of_questions = not {"continued", "text_column"} & typed.keys() and holds_questions(corpus, columns)
    except InputError:
        of_questions = False
    return DEFAULT_MODEL if of_questions else default_document_model(record_from_options(DocumentSettings, typed))


def is_answer_model(name: str) -> bool:
    """Whether that is the name of a model of answers, or else of documents; refused if it is neither."""
    if name not in DOCUMENT_MODELS and name not in ANSWER_MODELS:
        raise InputError(
            f"no model is called {name!r}; there are: {', '.join(DOCUMENT_MODELS)} for documents, "
            f"{', '.join(ANSWER_MODELS)} for answers"
        )
    return name in ANSWER_MODELS


def check_document_options(request: FitRequest) -> None:
    model, typed = request.model, request.typed
    refuse_typed(typed, ONLY_ANSWERS, f"{model} is a model of documents")
    check_preset(model, typed.get("preset", DocumentSettings.preset))
    if "estimator" in typed:
        if not DOCUMENT_MODELS[model].estimators:
            others = ", ".join(name for name, other in DOCUMENT_MODELS.items() if other.estimators)
            refuse_typed(typed, ["estimator"], f"{model} has no choice of estimator; {others} have")
        check_name(typed["estimator"], DOCUMENT_MODELS[model].estimators, "estimator")


def check_answer_options(request: FitRequest) -> None:
    """Refuse what the model cannot take, and say what has no effect."""
    model, typed = request.model, request.typed
    refuse_many_processes(model)
    refuse_typed(typed, ONLY_DOCUMENTS, f"{model} is a model of answers")
    entry, kind = ANSWER_MODELS[model], model_class(model)
    if not entry.has_latent:
        refuse_typed(typed, LATENT_OPTIONS, f"{model} has no latent variable; nasm has")
    if not entry.has_features:
        others = ", ".join(name for name, other in ANSWER_MODELS.items() if other.has_features)
        refuse_typed(typed, ["features"], f"{model} has no features to choose from; {others} have")
    if kind.pretrained:
        refuse_typed(typed, WORD_VECTOR_OPTIONS, f"{model} begins from a pretrained encoder, not from word vectors")
        refuse_typed(typed, ["counts", "position"], f"{model} reads by itself what it needs")
    if not kind.joins_columns:
        refuse_typed(typed, ["counts"], f"{model} is made of counts already")
    if "position" in typed and not kind.joins_columns and model == DEFAULT_MODEL:
        refuse_typed(typed, ["position"], f"{model} reads positions by itself, where they are known")
    if "tune_vectors" in typed:
        refuse_typed(typed, ["unseen_words"], "--tune-vectors leaves out words that training lacks")
    if not entry.trained_by_gradient:
        refuse_typed(typed, ["tune_vectors"], f"{model} does not learn word vectors")
        refuse_typed(typed, ["ensemble"], f"{model} comes out the same whatever the seed")
        _say_what_has_no_effect(model, [name for name in TRAINING_OPTIONS if name in typed], request.resume)


def _say_what_has_no_effect(model: str, typed: list[str], resume: bool) -> None:
    if typed:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in typed)
        log(f"note: {model} is not trained in steps: {options} {'have' if len(typed) > 1 else 'has'} no effect")
    if resume:
        log(f"note: {model} is not trained in steps and keeps no checkpoint: --resume starts over")


def refuse_many_processes(what: str) -> None:
    from varitext.runtime.processes import size_at_launch

    if size_at_launch() > 1:
        raise InputError(
            f"{what} learns in one process: under torchrun only models of documents do, in their first fit"
        )


def check_place_for_model(out: Path, resume: bool) -> None:
    """Nothing of a user's is overwritten: a new folder, or with --resume one that holds an unfinished run."""
    from varitext.files import refuse_to_overwrite
    from varitext.store import CHECKPOINT

    if (out / CHECKPOINT).exists():
        if not resume:
            raise InputError(f"{out} holds an unfinished run: add --resume to go on, or remove it first")
    elif resume and (out / "config.json").exists():
        if load_any(out).fitted_.stopped != "interrupted":
            raise InputError(f"{out} holds a finished model: there is nothing to resume")
    else:
        refuse_to_overwrite(out)


def is_finished_model(folder: Path) -> bool:
    from varitext.store import checkpoints

    return (folder / "config.json").exists() and not checkpoints(folder)
