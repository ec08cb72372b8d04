"""Write a fitted document model to a model folder (`store.py`), and read it back.

Besides the files that every model has, topics take two: topics.json, which is meant to be readable, and
topics.safetensors. An interrupted fit has neither.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from varitext.corpora.document_vectors import VectorOrigin
from varitext.documents.fitting import FittedDocuments
from varitext.documents.mixture import Choice, Mixture
from varitext.documents.posterior import LengthLine
from varitext.documents.settings import DocumentSettings
from varitext.documents.topic_model import topic_tree
from varitext.documents.topic_records import TABLE_FILE, TENSOR_FILE, TypicalDocument
from varitext.documents.topic_words import DEFAULT_WORDING, Phrases, Wording
from varitext.documents.topics import MAX_UNDO, Group, Regions
from varitext.errors import InputError, first_line
from varitext.layers.architecture import check_architecture, load_weights
from varitext.models.documents import DOCUMENT_MODELS, model_class
from varitext.models.documents.base import DocumentNetwork
from varitext.models.registry import home_of, trusted_class
from varitext.records import check_ranges, check_types, record_from_dict
from varitext.runtime.devices import usable_device
from varitext.store import DOCUMENT_MODEL, StoredModel, save_model
from varitext.text import TokenRules, Vocabulary, VocabularyRules
from varitext.text.boilerplate import Boilerplate

ELSEWHERE = {"model", "network", "architecture", "training", "vocabulary", "history", "updates", "regions", "vectors"}
LATER = {"boilerplate", "notes", "passages"}  # the first folders of this version lack these
LEARNED = [field.name for field in fields(FittedDocuments) if field.name not in ELSEWHERE]  # in config.json
Trust = str | type | None  # the class outside varitext that the caller is willing to load


def save_documents(folder: Path, settings: DocumentSettings, fitted: FittedDocuments, overwrite: bool) -> None:
    config = {
        "model": fitted.model,
        "settings": {field.name: _plain(getattr(settings, field.name)) for field in fields(DocumentSettings)},
        "architecture": fitted.architecture,
        "training": fitted.training,
        "learned": {name: _plain(getattr(fitted, name)) for name in (*LEARNED, "vectors")},
        "updates": fitted.updates,
    }
    weights = fitted.network.state_dict()
    attachments = {} if fitted.regions is None else _stored_states(fitted.regions)
    save_model(
        folder, StoredModel(DOCUMENT_MODEL, config, weights, fitted.vocabulary, fitted.history, attachments), overwrite
    )


def restore_documents(
    stored: StoredModel, folder: Path, trust: Trust = None
) -> tuple[DocumentSettings, FittedDocuments]:
    """Restore a model on the device that it was fitted on, if this machine has it."""
    config, learned = stored.config, stored.config["learned"]
    kind = _class_of(str(config["model"]), trust, folder)
    settings = _settings(config["settings"], kind)
    if len(stored.vocabulary) != config["architecture"]["vocabulary_size"]:
        raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
    build = partial(kind, **config["architecture"])
    check_architecture(build, config["architecture"], stored.weights, folder)
    network = build()
    load_weights(network, stored.weights, folder)
    kl_per_dimension = np.asarray(learned["kl_per_dimension"], np.float64)
    if kl_per_dimension.shape != (network.vector_dim,) or not np.isfinite(kl_per_dimension).all():
        raise InputError(f"{folder / 'config.json'}: kl_per_dimension needs a finite number for every dimension")
    rules = {
        "token_rules": TokenRules.from_dict(learned["token_rules"]),
        "vocabulary_rules": VocabularyRules.from_dict(learned["vocabulary_rules"]),
        "boilerplate": learned.get("boilerplate") and Boilerplate.from_dict(learned["boilerplate"]),
        "notes": tuple(learned.get("notes", ())),
        "passages": learned.get("passages"),
    }
    fitted = FittedDocuments(
        model=config["model"],
        network=network.to(settings.device).eval().requires_grad_(False),
        architecture=config["architecture"],
        training=config["training"],
        vocabulary=stored.vocabulary,
        history=stored.metrics,
        updates=config["updates"],
        regions=_restored_states(stored.attachments, stored.vocabulary, network.vector_dim, folder),
        **{name: learned[name] for name in LEARNED if name not in LATER}
        | rules
        | {"kl_per_dimension": kl_per_dimension},
        vectors=_restored_origin(learned.get("vectors"), config["architecture"], folder),
    )
    check_types(fitted)
    return settings, fitted


def _restored_origin(
    stored: Mapping[str, Any] | None, architecture: Mapping[str, Any], folder: Path
) -> VectorOrigin | None:
    """The origin of the sentence vectors; folders of earlier versions have none."""
    origin = None if stored is None else record_from_dict(VectorOrigin, stored)
    if (origin.dimension if origin else 0) != architecture.get("sentence_dim", 0):
        raise InputError(f"{folder / 'config.json'}: the width of the sentence vectors differs from the network's")
    return origin


def _class_of(name: str, trust: Trust, folder: Path) -> type[DocumentNetwork]:
    """The class of one of varitext's models by name; a class of another package only if the caller trusts it."""
    if name in DOCUMENT_MODELS and not DOCUMENT_MODELS[name].plug_in:
        return model_class(name)
    if ":" not in name:
        raise InputError(f"{folder} holds a {name!r}, a model that this version of varitext does not have")
    kind = trusted_class(name, trust, folder)
    if not (isinstance(kind, type) and issubclass(kind, DocumentNetwork)):
        raise InputError(f"{folder}: {name} is not a subclass of DocumentNetwork")
    return kind


def _settings(stored: Mapping[str, Any], kind: type[DocumentNetwork]) -> DocumentSettings:
    values = dict(stored)
    for name, rules in (("token_rules", TokenRules), ("vocabulary_rules", VocabularyRules)):
        values[name] = None if values[name] is None else rules.from_dict(values[name])
    if tokeniser := values["tokeniser"]:
        values["tokeniser"] = MissingTokeniser(str(tokeniser))
    if values["model"] == home_of(kind):
        values["model"] = kind
    settings = DocumentSettings(**values)
    check_ranges(settings)
    settings.device = usable_device(settings.device)
    return settings


@dataclass(frozen=True)
class MissingTokeniser:
    """Stands in for a user's function, which a model folder names but does not contain."""

    name: str

    def __call__(self, text: str) -> list[str]:
        raise InputError(
            f"the model was fitted with your own tokeniser, {self.name}, which its folder does not hold. Pass it to "
            "DocumentModel.load(folder, tokeniser=...), or give lists of words or counts instead of texts"
        )


def _plain(value: Any) -> Any:
    """A value as it is written to JSON; functions and classes by name."""
    if isinstance(value, MissingTokeniser):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, type) and issubclass(value, DocumentNetwork):
        return home_of(value)
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _stored_states(regions: Regions) -> dict[str, bytes]:
    """The topics now and before each of the last changes: before-1.topics.json, and its tensors if they differ."""
    files = _stored_regions(regions)
    state, number = regions.before, 1
    tensors = files[TENSOR_FILE]
    while state is not None:
        earlier = _stored_regions(state)
        files[_before(number, TABLE_FILE)] = earlier[TABLE_FILE]
        if earlier[TENSOR_FILE] != tensors:
            tensors = files[_before(number, TENSOR_FILE)] = earlier[TENSOR_FILE]
        state, number = state.before, number + 1
    return files


def _restored_states(
    files: Mapping[str, bytes], vocabulary: Vocabulary, dimensions: int, folder: Path
) -> Regions | None:
    states, own = [_restored_regions(files, vocabulary, dimensions, folder)], dict(files)
    for number in range(1, MAX_UNDO + 1):
        if states[0] is None or _before(number, TABLE_FILE) not in files:
            break
        own[TABLE_FILE] = files[_before(number, TABLE_FILE)]
        own[TENSOR_FILE] = files.get(_before(number, TENSOR_FILE), own[TENSOR_FILE])
        states.append(_restored_regions(own, vocabulary, dimensions, folder))
    found: Regions | None = None
    for state in reversed(states):
        found = state and state.after(found)
    return found


def _before(number: int, name: str) -> str:
    return f"before-{number}.{name}"


def _stored_regions(regions: Regions) -> dict[str, bytes]:
    table = {
        "topics": [topic.as_dict() for topic in regions.info()],
        "choice": regions.choice.as_dict(),
        "tree": [merge._asdict() for merge in topic_tree(regions)],
        "length_line": regions.line and regions.line._asdict(),
        "seed_topics": regions.seeds,
        "wording": regions.wording._asdict(),
        "stability": regions.stability,
        "phrases": regions.phrases.terms,
        "groups": [group._asdict() for group in regions.groups],
        "components": [
            {"coherence": coherence, "typical": [asdict(one) for one in typical]}
            for coherence, typical in zip(regions.coherence, regions.typical, strict=True)
        ],
    }
    tensors = {
        **regions.mixture._asdict(),
        "word_probabilities": regions.word_probabilities,
        "word_documents": regions.word_documents,
        "cohesion": regions.cohesion,
        "phrase_documents": regions.phrases.having,
        "documents": regions.documents,
        "distinct": regions.distinct,
        "tokens": regions.tokens,
    }
    text = json.dumps(table, indent=1, ensure_ascii=False) + "\n"
    return {
        TABLE_FILE: text.encode(),
        TENSOR_FILE: save({name: np.ascontiguousarray(array) for name, array in tensors.items()}),
    }


def _restored_regions(
    files: Mapping[str, bytes], vocabulary: Vocabulary, dimensions: int, folder: Path
) -> Regions | None:
    if TABLE_FILE not in files or TENSOR_FILE not in files:
        return None
    try:
        table, tensors = json.loads(files[TABLE_FILE]), load(files[TENSOR_FILE])
    except (ValueError, SafetensorError) as error:
        raise InputError(f"{folder}: its topics cannot be read ({first_line(error)})") from None
    line, choice, components = table["length_line"], table["choice"], table["components"]
    _check_tensors(tensors, (len(components), len(vocabulary), dimensions, len(table.get("phrases", ()))), folder)
    wording = table.get("wording")
    regions = Regions(
        mixture=Mixture(*(tensors[name] for name in Mixture._fields)),
        word_probabilities=tensors["word_probabilities"],
        word_documents=_word_documents(tensors),
        cohesion=tensors.get("cohesion", np.zeros_like(tensors["word_probabilities"])),
        phrases=Phrases(
            tuple(table.get("phrases", ())), tensors.get("phrase_documents", np.zeros((len(components), 0)))
        ),
        documents=tensors["documents"],
        distinct=tensors.get("distinct", tensors["documents"]),
        tokens=tensors["tokens"],
        coherence=tuple(one["coherence"] for one in components),
        typical=tuple(tuple(TypicalDocument(**typical) for typical in one["typical"]) for one in components),
        groups=tuple(Group(one["number"], tuple(one["components"]), one["name"]) for one in table["groups"]),
        words=vocabulary.words,
        choice=Choice(
            choice["number"],
            choice["how"],
            tuple(map(tuple, choice["log_likelihoods"])),
            tuple(choice.get("standard_errors", ())),
        ),
        line=line and LengthLine(**line),
        seeds=tuple(table["seed_topics"]),
        wording=Wording(**wording | {"stop_words": tuple(wording["stop_words"])}) if wording else DEFAULT_WORDING,
        stability=tuple((int(number), float(value)) for number, value in table.get("stability", ())),
    )
    numbers = [component for group in regions.groups for component in group.components]
    typical = [one for of_topic in regions.typical for one in of_topic]
    for record in (regions, regions.phrases, regions.wording, regions.choice, regions.line, *regions.groups, *typical):
        if record is not None:
            check_types(record)
    if not regions.groups or not all(isinstance(one, int) and 0 <= one < len(components) for one in numbers):
        raise InputError(f"{folder / TABLE_FILE}: a topic is made of components that are not there")
    if any(not isinstance(group.name, str | None) or "\n" in (group.name or "") for group in regions.groups):
        raise InputError(f"{folder / TABLE_FILE}: a name of a topic is not a line of text")
    return regions


def _check_tensors(tensors: Mapping[str, np.ndarray], sizes: tuple[int, int, int, int], folder: Path) -> None:
    """Check for finite numbers in the shapes that these numbers of regions, words, dimensions and phrases imply."""
    regions, most_words, dimensions, phrases = sizes
    words = min(tensors["word_probabilities"].shape[-1], most_words)  # fewer if an update has added words
    expected: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("variances", "weights", "documents", "distinct", "tokens"), (regions,)),
        **dict.fromkeys(("word_probabilities", "word_documents", "cohesion", "document_shares"), (regions, words)),
        "centres": (regions, dimensions),
        "document_shares_of_all": (words,),
        "phrase_documents": (regions, phrases),
    }
    for name, values in tensors.items():
        if values.shape != expected.get(name):
            raise InputError(f"{folder / TENSOR_FILE}: {name} is {values.shape}, expected {expected.get(name)}")
        if not np.isfinite(values).all() or (name in ("variances", "weights") and (values < 0).any()):
            raise InputError(f"{folder / TENSOR_FILE}: {name} holds infinities, NaN or negative numbers")


def _word_documents(tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Documents that have each word. Folders of version 1.0 hold shares, smoothed by half a document of all words."""
    if "word_documents" in tensors:
        return tensors["word_documents"]
    shares, of_all, sizes = (tensors[name] for name in ("document_shares", "document_shares_of_all", "documents"))
    return np.asarray(np.rint(shares * (sizes[:, None] + 0.5) - 0.5 * of_all), np.int32)
