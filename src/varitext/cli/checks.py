"""Checks of what was typed, before anything is loaded."""

import re
from pathlib import Path
from typing import Any

from varitext.errors import InputError
from varitext.loading import load_any


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were typed: the others keep the estimator's own defaults."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def refuse_options(options: dict[str, Any], reason: str) -> None:
    """None of these may have been typed."""
    if typed := given(options):
        raise InputError(f"--{next(iter(typed)).replace('_', '-')} does not apply: {reason}")


def check_place_for_model(out: Path, resume: bool) -> None:
    """Nothing of a user's is overwritten: a new folder, or with --resume one that holds an unfinished run."""
    from varitext.files import check_can_write, refuse_to_overwrite
    from varitext.store import CHECKPOINT

    check_can_write(out)
    if (out / CHECKPOINT).exists():
        if not resume:
            raise InputError(f"{out} holds an unfinished run: add --resume to go on, or remove it first")
    elif resume and (out / "config.json").exists():
        if load_any(out).stopped_ != "interrupted":
            raise InputError(f"{out} holds a finished model: there is nothing to resume")
    else:
        refuse_to_overwrite(out)


def is_finished_model(folder: Path) -> bool:
    from varitext.store import checkpoints

    return (folder / "config.json").exists() and not checkpoints(folder)


def refuse_many_processes(what: str) -> None:
    from varitext.runtime.processes import size_at_launch

    if size_at_launch() > 1:
        raise InputError(
            f"{what} learns in one process: under torchrun only models of documents do, in their first fit"
        )


def check_new_file(path: Path) -> None:
    from varitext.files import check_can_write

    if path.exists():
        raise InputError(f"{path} exists already: name another file, or remove it first")
    check_can_write(path)


def is_answer_model(name: str) -> bool:
    """Whether that is the name of a model of answers, or else of documents; refused if it is neither."""
    from varitext.models.answers import ANSWER_MODELS
    from varitext.models.documents import DOCUMENT_MODELS

    if name not in DOCUMENT_MODELS and name not in ANSWER_MODELS:
        raise InputError(
            f"no model is called {name!r}; there are: {', '.join(DOCUMENT_MODELS)} for documents, "
            f"{', '.join(ANSWER_MODELS)} for answers"
        )
    return name in ANSWER_MODELS


def check_preset(model: str, preset: str) -> None:
    """Refuse a preset that the document model does not have, before anything is loaded."""
    from varitext.models import documents

    documents.check_preset(model, preset)


def check_estimator(model: str, estimator: str | None) -> None:
    """Refuse an estimator that nobody knows, or a model that has no choice, before anything is loaded."""
    from varitext.latent import ESTIMATORS
    from varitext.models.documents import DOCUMENT_MODELS

    if estimator is None:
        return
    if estimator not in ESTIMATORS:
        raise InputError(f"no estimator is called {estimator!r}; there are: {', '.join(ESTIMATORS)}")
    if not DOCUMENT_MODELS[model].estimators:
        raise InputError(f"--estimator does not apply: {model} has no choice of estimator; sbn and fdarn have")


def check_device(name: str) -> None:
    """Refuse a device that is not here, before anything is loaded."""
    from varitext.runtime import devices

    devices.check_device(name)


def seconds_of(duration: str | None) -> float | None:
    if duration is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", duration.strip())
    if not match or float(match[1]) == 0:
        raise InputError(f"--time-limit {duration!r} is not a duration such as 60s, 10m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match[2]]
