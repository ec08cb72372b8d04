"""A DocumentModel as a model folder (`store.py`), and back."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from varitext.errors import InputError
from varitext.models.documents import DOCUMENT_MODELS, model_class
from varitext.runtime.devices import usable_device
from varitext.store import StoredModel, load_weights, save_model
from varitext.text import TokenRules, VocabularyRules

if TYPE_CHECKING:
    from varitext.documents.model import DocumentModel

KIND = "document-model"
LEARNED = (
    "corpus_",
    "token_rules_",
    "vocabulary_rules_",
    "kl_per_dimension_",
    "dev_perplexity_",
    "n_features_in_",
    "n_training_documents_",
    "n_dev_documents_",
    "n_empty_documents_",
    "stopped_",
    "fit_seconds_",
)


def save_document_model(model: "DocumentModel", folder: Path, overwrite: bool) -> None:
    config = {
        "model": model.model,
        "settings": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "architecture": model.architecture_,
        "training": model.training_,
        "learned": {name: _plain(getattr(model, name)) for name in LEARNED},
        "updates": model.updates_,
    }
    weights = model.network_.state_dict()
    save_model(folder, StoredModel(KIND, config, weights, model.vocabulary_, model.history_), overwrite)


def restore_document_model(kind: type["DocumentModel"], stored: StoredModel, folder: Path) -> "DocumentModel":
    config = stored.config
    settings = dict(config["settings"])
    for name, rules in (("token_rules", TokenRules), ("vocabulary_rules", VocabularyRules)):
        settings[name] = None if settings[name] is None else rules.from_dict(settings[name])
    model = kind(**settings)
    if config["model"] not in DOCUMENT_MODELS:
        raise InputError(f"{folder} holds a {config['model']!r}, which this varitext does not know")
    if len(stored.vocabulary) != config["architecture"]["vocabulary_size"]:
        raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
    model.architecture_, model.training_ = config["architecture"], config["training"]
    model.network_ = model_class(config["model"])(**config["architecture"])
    load_weights(model.network_, stored.weights, folder)
    model.move_to(usable_device(model.device)).network_.eval().requires_grad_(False)
    model.vocabulary_, model.history_ = stored.vocabulary, stored.metrics
    for name in LEARNED:
        setattr(model, name, config["learned"][name])
    model.updates_ = config.get("updates", [])  # folders of before there were updates have none
    model.kl_per_dimension_ = np.asarray(model.kl_per_dimension_, np.float64)
    model.token_rules_ = TokenRules.from_dict(model.token_rules_)
    model.vocabulary_rules_ = VocabularyRules.from_dict(model.vocabulary_rules_)
    return model


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
