"""An AnswerRanker as a model folder (`store.py`), and back."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from varitext.answers.first_stage import build_stage
from varitext.answers.second_stage import Combination
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.models.answers import ANSWER_MODELS
from varitext.models.answers.features.overlap import Overlap
from varitext.runtime.devices import usable_device
from varitext.store import StoredModel, save_model

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker

KIND = "answer-ranker"
FREQUENCIES = "overlap.document_frequencies"
LEARNED = (
    "corpus_",
    "vectors_",
    "n_training_questions_",
    "n_training_pairs_",
    "n_dev_questions_",
    "dev_map_",
    "stopped_",
    "fit_seconds_",
)


def save_answer_ranker(ranker: "AnswerRanker", folder: Path, overwrite: bool) -> None:
    settings = ranker.get_params(deep=False)
    settings["vectors"] = None if isinstance(ranker.vectors, (WordVectors, type(None))) else str(ranker.vectors)
    config = {
        "model": ranker.model,
        "settings": settings,
        "architecture": ranker.architecture_,
        "training": ranker.training_,
        "combination": None if ranker.combination_ is None else dataclasses.asdict(ranker.combination_),
        "learned": {name: getattr(ranker, name) for name in LEARNED},
    }
    frequencies = torch.from_numpy(ranker.overlap_.document_frequencies.astype(np.int32))
    weights = ranker.first_stage_.stored_weights() | {FREQUENCIES: frequencies}
    save_model(folder, StoredModel(KIND, config, weights, ranker.vocabulary_, ranker.history_), overwrite)


def restore_answer_ranker(kind: type["AnswerRanker"], stored: StoredModel, folder: Path) -> "AnswerRanker":
    config, weights = stored.config, dict(stored.weights)
    ranker = kind(**config["settings"])
    if config["model"] not in ANSWER_MODELS:
        raise InputError(f"{folder} holds a {config['model']!r}, which this varitext does not know")
    frequencies = weights.pop(FREQUENCIES).numpy().astype(np.int64)
    if not len(stored.vocabulary) == config["architecture"]["vocabulary_size"] == len(frequencies):
        raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
    ranker.device = usable_device(ranker.device)
    for name in LEARNED:
        setattr(ranker, name, config["learned"][name])
    ranker.architecture_, ranker.training_ = config["architecture"], config["training"]
    ranker.vocabulary_, ranker.history_ = stored.vocabulary, stored.metrics
    ranker.overlap_ = Overlap(stored.vocabulary, frequencies, ranker.n_training_pairs_)
    ranker.first_stage_ = build_stage(config["model"], config["architecture"], ranker.overlap_, ranker.device)
    ranker.first_stage_.restore(weights, folder)
    ranker.combination_ = _restored_combination(config["combination"])
    return ranker


def _restored_combination(stored: dict[str, Any] | None) -> Combination | None:
    if stored is None:
        return None
    tuples = {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
    return Combination(**stored | tuples)
