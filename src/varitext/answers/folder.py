"""A ranker as a model folder (`store.py`), and back."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from varitext.answers.familiarity import Familiarity
from varitext.answers.fitted import UNTRAINED, DevComparison, FittedAnswers
from varitext.answers.joint import JointModel
from varitext.answers.prediction import Calibration, Combination
from varitext.answers.recalibration import CalibrationReport
from varitext.answers.settings import AnswerSettings, check_samples, flat_settings, settings_from_flat
from varitext.answers.stages import check_class, stored_stage
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.evaluation.conformal import HeldOutQuestions
from varitext.models.answers import ANSWER_MODELS, model_class
from varitext.models.answers.features.overlap import Overlap
from varitext.models.registry import stored_name, trusted_class
from varitext.records import check_ranges, check_types
from varitext.runtime.devices import usable_device
from varitext.store import ANSWER_RANKER, StoredModel, save_model

FREQUENCIES = "overlap.document_frequencies"
ENCODER = "encoder_sha256"  # of the pretrained encoder, which the folder does not hold
FACTS = (  # fields of `FittedAnswers` that config.json holds under "learned"
    "corpus",
    "vectors",
    "n_training_questions",
    "n_training_pairs",
    "n_dev_questions",
    "dev_map",
    "stopped",
    "fit_seconds",
)
RECORDS: dict[str, Callable[..., Any]] = {
    "combination": Combination,
    "calibration": Calibration,
    "comparison": DevComparison,
    "joint": JointModel,
    "held_out": HeldOutQuestions,
    "calibrated": CalibrationReport.from_stored,
    "familiarity": Familiarity,
}


def save(settings: AnswerSettings, fitted: FittedAnswers, folder: Path, overwrite: bool) -> None:
    vectors, overlap, model = settings.vectors, fitted.overlap, stored_name(settings.model, ANSWER_MODELS)
    source = None if isinstance(vectors, WordVectors | None) else str(vectors)
    config = {
        "model": model,
        "settings": flat_settings(settings) | {"model": model, "vectors": source},
        "architecture": fitted.architecture,
        "training": fitted.training,
        **{name: _as_dict(getattr(fitted, name)) for name in RECORDS},
        "learned": {name: getattr(fitted, name) for name in FACTS},
    }
    if fitted.network.pretrained:
        config[ENCODER] = _installed_encoder()
    frequencies = overlap.document_frequencies.astype(np.int32)
    weights = fitted.first_stage.stored_weights() | {FREQUENCIES: frequencies}
    save_model(folder, StoredModel(ANSWER_RANKER, config, weights, overlap.vocabulary, fitted.history), overwrite)


def restore(stored: StoredModel, folder: Path, trust: str | type | None = None) -> tuple[AnswerSettings, FittedAnswers]:
    """The class of a plug-in is imported only if `trust` names exactly that class."""
    config, weights, vocabulary = stored.config, dict(stored.weights), stored.vocabulary
    settings = settings_from_flat(config["settings"])
    check_ranges(settings)
    check_samples(settings.prediction_samples)
    settings.device = usable_device(settings.device)
    settings.model = _model(config["model"], folder, trust)
    frequencies = weights.pop(FREQUENCIES).astype(np.int64)
    if not len(vocabulary) == config["architecture"]["vocabulary_size"] == len(frequencies):
        raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
    facts = {name: config["learned"][name] for name in FACTS}
    overlap = Overlap(vocabulary, frequencies, facts["n_training_pairs"])
    architecture = config["architecture"]
    kind = model_class(settings.model)
    if facts["stopped"] == UNTRAINED and kind.untrained is not None:
        kind = kind.untrained
    if kind.pretrained:
        _check_encoder(config, folder)
    stage = stored_stage(kind, architecture, overlap, settings.device, weights, folder)
    records = {name: _record(build, config.get(name)) for name, build in RECORDS.items()}
    fitted = FittedAnswers(
        first_stage=stage, overlap=overlap, training=config["training"], history=stored.metrics, **facts, **records
    )
    check_types(fitted)
    return settings, fitted


def _model(name: str, folder: Path, trust: str | type | None) -> Any:
    if name in ANSWER_MODELS and not ANSWER_MODELS[name].plug_in:
        return name
    if ":" not in name:
        raise InputError(f"{folder} holds a {name!r}, which this version of varitext does not have")
    kind = trusted_class(name, trust, folder)
    check_class(kind)
    return kind


def _check_encoder(config: dict[str, Any], folder: Path) -> None:
    """Refuse a folder that was fitted on another pretrained encoder; older folders do not name theirs."""
    installed = _installed_encoder()
    if (stored := str(config.get(ENCODER, installed))) != installed:
        raise InputError(
            f"{folder} was fitted on another encoder (SHA-256 {stored[:12]}..., installed is {installed[:12]}...): "
            "install the package that it was fitted with, or fit it again"
        )


def _installed_encoder() -> str:
    from varitext.models.answers.pretrained import weights_sha256  # imports torch

    return weights_sha256()


def _as_dict(record: Any) -> dict[str, Any] | None:
    return None if record is None else dataclasses.asdict(record)


def _record(build: Callable[..., Any], stored: dict[str, Any] | None) -> Any:
    """None if the folder has none. JSON has lists in the place of tuples."""
    if stored is None:
        return None
    record = build(**{name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()})
    check_types(record)
    lengths = {len(value) for value in vars(record).values() if isinstance(value, tuple)}
    if isinstance(record, (Combination, Familiarity)) and len(lengths) != 1:  # a number for every column
        raise InputError(f"{type(record).__name__} has lists of different lengths")
    return record
