"""A ranker as a model folder (`store.py`), and back."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from varitext.answers.baselines import DevComparison
from varitext.answers.calibration import Calibration
from varitext.answers.ensemble import MEMBERS, build_stages
from varitext.answers.fitting import FittedAnswers
from varitext.answers.joint_picture import JointPicture
from varitext.answers.second_stage import Combination
from varitext.answers.settings import AnswerSettings
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.models.answers import ANSWER_MODELS
from varitext.models.answers.features.overlap import Overlap
from varitext.runtime.devices import usable_device
from varitext.store import StoredModel, save_model

KIND = "answer-ranker"
FREQUENCIES = "overlap.document_frequencies"
FACTS = (  # of the fit, in config.json under the names of the estimator's attributes
    "corpus",
    "vectors",
    "n_training_questions",
    "n_training_pairs",
    "n_dev_questions",
    "dev_map",
    "stopped",
    "fit_seconds",
)


class Restored(NamedTuple):
    settings: AnswerSettings
    learned: FittedAnswers


def save(settings: AnswerSettings, learned: FittedAnswers, folder: Path, overwrite: bool) -> None:
    vectors, stage, overlap = settings.vectors, learned.first_stage, learned.overlap
    config = {
        "model": settings.model,
        "settings": settings.flat() | {"vectors": None if isinstance(vectors, WordVectors | None) else str(vectors)},
        "architecture": stage.architecture,
        "training": learned.training,
        "combination": _as_dict(learned.combination),
        "calibration": _as_dict(learned.calibration),
        "comparison": _as_dict(learned.comparison),
        "joint": _as_dict(learned.joint),
        "learned": {name: getattr(learned, name) for name in FACTS},
    }
    frequencies = torch.from_numpy(overlap.document_frequencies.astype(np.int32))
    weights = stage.stored_weights() | {FREQUENCIES: frequencies}
    save_model(folder, StoredModel(KIND, config, weights, overlap.vocabulary, learned.history), overwrite)


def restore(stored: StoredModel, folder: Path) -> Restored:
    config, weights, vocabulary = stored.config, dict(stored.weights), stored.vocabulary
    settings = AnswerSettings.from_flat(config["settings"])
    settings = dataclasses.replace(settings, device=usable_device(settings.device))
    if config["model"] not in ANSWER_MODELS:
        raise InputError(f"{folder} holds a {config['model']!r}, which this varitext does not know")
    frequencies = weights.pop(FREQUENCIES).numpy().astype(np.int64)
    if not len(vocabulary) == config["architecture"]["vocabulary_size"] == len(frequencies):
        raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
    facts = {name: config["learned"][name] for name in FACTS}
    overlap = Overlap(vocabulary, frequencies, facts["n_training_pairs"])
    architecture = config["architecture"]
    members = architecture.get(MEMBERS, 1)
    stage = build_stages(config["model"], architecture, overlap, settings.device, members=members)
    stage.restore(weights, folder)
    combination = _restored_combination(config["combination"])
    calibration, comparison = config.get("calibration"), config.get("comparison")  # folders of version 0.1 have none
    learned = FittedAnswers(
        stage,
        overlap,
        combination,
        config["training"],
        stored.metrics,
        **facts,
        calibration=Calibration(**calibration) if calibration else None,
        comparison=DevComparison(**comparison) if comparison else None,
        joint=_restored_joint(config.get("joint")),
    )
    return Restored(settings, learned)


def _restored_joint(stored: dict[str, Any] | None) -> JointPicture | None:
    return JointPicture(**stored | {"parameters": tuple(stored["parameters"])}) if stored else None


def _as_dict(record: Combination | Calibration | DevComparison | JointPicture | None) -> dict[str, Any] | None:
    return None if record is None else dataclasses.asdict(record)


def _restored_combination(stored: dict[str, Any] | None) -> Combination | None:
    if stored is None:
        return None
    tuples = {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
    return Combination(**stored | tuples)
