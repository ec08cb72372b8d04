"""Document models for experiments: the documents, the settings, and fitted models that experiments share."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora import CORPORA, load_documents
from varitext.corpora.documents import Documents
from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel
from varitext.evaluation import coherence_record
from varitext.models.documents import DOCUMENT_MODELS
from varitext.reproduce.engine import Plan

NEWSGROUPS = "20newsgroups-nvdm"
ARTICLES = "20newsgroups"
RCV1 = "rcv1"
RCV1_SAMPLE = "rcv1-sample"
FIRST = ("lda", "rsm", "docnade", "sbn", "fdarn")  # as in the paper's table
QUICK_DOCUMENTS = {"train": 1000, "test": 200}
QUICK_EPOCHS = 2
QUICK_SAMPLES = 2


class Setting(NamedTuple):
    """What distinguishes one fit of a corpus from another, besides its seed."""

    model: str
    latent_dim: int = 50
    preset: str = "recommended"

    @property
    def name(self) -> str:
        preset = "" if self.preset == "recommended" else f", preset {self.preset}"
        return f"{titles()[self.model]}, K = {self.latent_dim}{preset}"


def titles() -> dict[str, str]:
    """The names of all document models: those of the paper in its order, then the others."""
    return {model: DOCUMENT_MODELS[model].title for model in dict.fromkeys((*FIRST, *DOCUMENT_MODELS))}


def is_here(corpus: str, plan: Plan) -> bool:
    """Whether its files are on this machine; nothing is downloaded."""
    return bool(CORPORA[corpus].locate(plan.data_dir))


def load_part(corpus: str, part: str, plan: Plan) -> Documents:
    return _loaded(corpus, part, plan.data_dir, QUICK_DOCUMENTS[part] if plan.quick else None)


@cache  # several fits in one process read the same documents
def _loaded(corpus: str, part: str, data_dir: Path | None, most: int | None) -> Documents:
    documents = load_documents(corpus, part, data_dir)
    return documents if most is None else some_of(documents, most)


def some_of(documents: Documents, most: int) -> Documents:
    """At most `most` of them, a fixed random sample."""
    rows = np.sort(np.random.default_rng(0).permutation(len(documents))[:most])
    counts = None if documents.counts is None else documents.counts[rows]
    texts, labels = (each and [each[row] for row in rows] for each in (documents.texts, documents.labels))
    columns = {name: [each[row] for row in rows] for name, each in documents.columns.items()}
    return dataclasses.replace(documents, counts=counts, texts=texts, labels=labels, columns=columns)


def coherence_reference(plan: Plan) -> Documents:
    """The reference for co-occurrence: the raw articles if available, otherwise the training counts."""
    if is_here(ARTICLES, plan):
        return load_part(ARTICLES, "train", plan)
    return load_part(NEWSGROUPS, "train", plan)


def coherence(topics: Sequence[Any], plan: Plan) -> dict[str, Any]:
    """NPMI and C_V of topics in the reference, as JSON; counts have no order of words, so no C_V."""
    reference = coherence_reference(plan)
    has_texts = reference.texts is not None
    npmi = coherence_record(topics, reference, "npmi", window=None if has_texts else "document")
    return {
        "npmi": npmi.coherence,
        "npmi_window": npmi.window,
        "c_v": coherence_record(topics, reference, "c_v").coherence if has_texts else None,
        "reference": reference.name,
        "reference_sha256": reference.sha256,
    }


def fitted_model(corpus: str, setting: Setting, seed: int, plan: Plan) -> DocumentModel:
    """A model with the preset's settings, from `plan.models` if already fitted; `plan.quick` trains it briefly."""
    folder = plan.model_folder(corpus, *setting, seed)
    if folder and (folder / "config.json").exists():
        fitted: DocumentModel = DocumentModel.load(folder).set_params(threads=plan.threads)
        return fitted
    epochs = QUICK_EPOCHS if plan.quick else None
    model = DocumentModel(
        setting.model,
        setting.latent_dim,
        preset=setting.preset,
        epochs=epochs,
        threads=plan.threads,
        seed=seed,
        keep_boilerplate=True,  # every system gets the same text
        keep_duplicates=True,
    )
    model.fit(load_part(corpus, "train", plan))
    if folder:
        model.save(folder)
    return model


def samples_of(plan: Plan) -> int:
    return QUICK_SAMPLES if plan.quick else PREDICTION_SAMPLES


def hashes(corpus: str, plan: Plan) -> dict[str, str]:
    return {f"{part}_sha256": load_part(corpus, part, plan).sha256 for part in ("train", "test")}


def short(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as short JSON, at any depth."""
    return {name: _short(value) for name, value in values.items()}


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return short(value)
    if isinstance(value, (list, tuple)):
        return [_short(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
