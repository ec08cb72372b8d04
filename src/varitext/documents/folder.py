"""A fitted document model as a model folder (`store.py`), and back."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from varitext.documents.fitted import FittedDocuments
from varitext.documents.region_files import restored_regions, stored_regions
from varitext.documents.settings import DocumentSettings
from varitext.errors import InputError
from varitext.models.documents import DOCUMENT_MODELS, model_class
from varitext.runtime.devices import usable_device
from varitext.store import StoredModel, load_weights, save_model
from varitext.text import TokenRules, VocabularyRules

KIND = "document-model"
LEARNED = (
    "corpus",
    "token_rules",
    "vocabulary_rules",
    "kl_per_dimension",
    "dev_perplexity",
    "n_training_documents",
    "n_dev_documents",
    "n_empty_documents",
    "n_repeated_documents",
    "stopped",
    "fit_seconds",
)


class LoadedDocuments(NamedTuple):
    settings: DocumentSettings
    fitted: FittedDocuments


def save_documents(folder: Path, settings: DocumentSettings, fitted: FittedDocuments, overwrite: bool) -> None:
    config = {
        "model": fitted.model,
        "settings": {name: _plain(value) for name, value in vars(settings).items()} | _tokeniser_name(settings),
        "architecture": fitted.architecture,
        "training": fitted.training,
        "learned": {name: _plain(getattr(fitted, name)) for name in LEARNED},
        "updates": fitted.updates,
    }
    weights = fitted.network.state_dict()
    attachments = {} if fitted.regions is None else stored_regions(fitted.regions)
    save_model(folder, StoredModel(KIND, config, weights, fitted.vocabulary, fitted.history, attachments), overwrite)


def restore_documents(stored: StoredModel, folder: Path) -> LoadedDocuments:
    """On the device that the model was fitted on, if this machine has it."""
    config = stored.config
    values = dict(config["settings"])
    for name, rules in (("token_rules", TokenRules), ("vocabulary_rules", VocabularyRules)):
        values[name] = None if values[name] is None else rules.from_dict(values[name])
    if tokeniser := values.get("tokeniser"):
        values["tokeniser"] = MissingTokeniser(str(tokeniser))
    settings = DocumentSettings(**values)
    if config["model"] not in DOCUMENT_MODELS:
        raise InputError(f"{folder} holds a {config['model']!r}, which this varitext does not know")
    if len(stored.vocabulary) != config["architecture"]["vocabulary_size"]:
        raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
    settings = dataclasses.replace(settings, device=usable_device(settings.device))
    network = model_class(config["model"])(**config["architecture"])
    load_weights(network, stored.weights, folder)
    learned = config["learned"]
    kl_per_dimension = np.asarray(learned["kl_per_dimension"], np.float64)
    if kl_per_dimension.shape != (network.vector_dim,) or not np.isfinite(kl_per_dimension).all():
        raise InputError(f"{folder / 'config.json'}: kl_per_dimension_ needs a finite number for every dimension")
    fitted = FittedDocuments(
        model=config["model"],
        network=network.to(settings.device).eval().requires_grad_(False),
        architecture=config["architecture"],
        training=config["training"],
        vocabulary=stored.vocabulary,
        token_rules=TokenRules.from_dict(learned["token_rules"]),
        vocabulary_rules=VocabularyRules.from_dict(learned["vocabulary_rules"]),
        corpus=learned["corpus"],
        kl_per_dimension=kl_per_dimension,
        history=stored.metrics,
        stopped=learned["stopped"],
        fit_seconds=learned["fit_seconds"],
        dev_perplexity=learned["dev_perplexity"],
        n_training_documents=learned["n_training_documents"],
        n_dev_documents=learned["n_dev_documents"],
        n_empty_documents=learned["n_empty_documents"],
        n_repeated_documents=learned["n_repeated_documents"],
        updates=config.get("updates", []),  # the first folders were written before there were updates
        regions=restored_regions(stored.attachments, stored.vocabulary, folder),  # or topics
    )
    return LoadedDocuments(settings, fitted)


@dataclasses.dataclass(frozen=True)
class MissingTokeniser:
    """In place of a function of the user's, which a model folder names and does not hold."""

    name: str

    def __call__(self, text: str) -> list[str]:
        raise InputError(
            f"the model was fitted with a tokeniser of your own, {self.name}, which its folder does not hold: "
            "DocumentModel.load(folder, tokeniser=...) takes it again; lists of words and counts need none"
        )


def _tokeniser_name(settings: DocumentSettings) -> dict[str, str | None]:
    tokeniser = settings.tokeniser
    if isinstance(tokeniser, MissingTokeniser):
        return {"tokeniser": tokeniser.name}
    if tokeniser is None:
        return {"tokeniser": None}
    return {"tokeniser": getattr(tokeniser, "__qualname__", type(tokeniser).__qualname__)}


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
