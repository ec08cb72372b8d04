"""The registry of document models. To add one, write its file and list it here: docs/tutorials/build-a-model.md."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varitext.models.registry import ModelEntry, check_name, plug_ins, stored_name

if TYPE_CHECKING:
    from varitext.models.documents.base import DocumentNetwork

ROOM = "varitext.models.documents"
GAUSSIAN = ("reparameterised", "dreg", "importance_weighted")
BERNOULLI = ("local_expectation", "leave_one_out", "nvil", "vimco", "exact")


@dataclass(frozen=True)
class DocumentEntry(ModelEntry):
    presets: tuple[str, ...] = ("recommended",)
    """Presets of the class's `recipe`."""
    estimators: tuple[str, ...] = ()
    """Gradient estimators to choose from (keys of `latent.ESTIMATORS`), the default first, if there is a choice."""
    word_weight: str | None = None
    """Weight that holds the word vectors, [V, K], up to a rotation: words are compared without building a network."""
    reads_vectors: bool = False
    """Whether it learns from sentence vectors beside the words; without them it equals another registered model."""

    def load(self) -> "type[DocumentNetwork]":
        kind: type[DocumentNetwork] = self.imported()
        return kind


DECODER, LINEAR = "decoder.weight", "decoder.linear.weight"
DOCUMENT_MODELS = {
    "nvdm": DocumentEntry("NVDM", f"{ROOM}.nvdm:NVDM", ("recommended", "paper", "paper-network"), GAUSSIAN, DECODER),
    "nvdm_categorical": DocumentEntry(
        "categorical NVDM",
        f"{ROOM}.nvdm_categorical:NVDMCategorical",
        estimators=("leave_one_out", "nvil", "vimco", "exact"),
        word_weight=DECODER,
    ),
    "nvdm_dcm": DocumentEntry(
        "NVDM with a DCM likelihood", f"{ROOM}.nvdm_dcm:NVDMDCM", estimators=GAUSSIAN, word_weight=LINEAR
    ),
    "nvdm_vectors": DocumentEntry(
        "multimodal NVDM",
        f"{ROOM}.nvdm_vectors:NVDMVectors",
        estimators=GAUSSIAN,
        word_weight=LINEAR,
        reads_vectors=True,
    ),
    "nvdm_gsm": DocumentEntry("Gaussian softmax topic model (GSM)", f"{ROOM}.nvdm_gsm:GSM", estimators=GAUSSIAN),
    "sbn": DocumentEntry("SBN", f"{ROOM}.bernoulli:SBN", ("recommended", "paper"), BERNOULLI, DECODER),
    "fdarn": DocumentEntry("fDARN", f"{ROOM}.bernoulli:FDARN", ("recommended", "paper"), BERNOULLI, DECODER),
    "docnade": DocumentEntry("docNADE", f"{ROOM}.docnade:DocNADE"),
    "rsm": DocumentEntry("RSM", f"{ROOM}.rsm:RSM"),
    "lda": DocumentEntry("LDA", f"{ROOM}.lda:LDA"),
    "swv": DocumentEntry("SWV", f"{ROOM}.swv:SWV", word_weight=DECODER),
}
DOCUMENT_MODELS = plug_ins("varitext.document_models", DocumentEntry) | DOCUMENT_MODELS


def model_class(model: "str | type[DocumentNetwork]") -> "type[DocumentNetwork]":
    """The class with this name, or the class itself if one is given."""
    if not isinstance(model, str):
        return model
    check_name(model, DOCUMENT_MODELS, "model")
    return DOCUMENT_MODELS[model].load()


def check_preset(model: "str | type[DocumentNetwork]", preset: str) -> None:
    """Check that the model has this preset; a class outside the registry has only "recommended"."""
    if isinstance(model, str):
        check_name(model, DOCUMENT_MODELS, "model")
    entry = DOCUMENT_MODELS.get(model if isinstance(model, str) else stored_name(model, DOCUMENT_MODELS))
    check_name(preset, entry.presets if entry else DocumentEntry.presets, "preset")
