"""The models of answers by name. To add one, write its file and name it here: docs/tutorials/build-a-model.md."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varitext.models.registry import ModelEntry, check_name, plug_ins, stored_name

if TYPE_CHECKING:
    from varitext.models.answers.model import AnswerModel

ROOM = "varitext.models.answers"


@dataclass(frozen=True)
class AnswerEntry(ModelEntry):
    """Repeats three attributes of the class, so that the command line's help need not import it."""

    has_latent: bool = False
    trained_by_gradient: bool = True
    """An `AnswerNetwork`; otherwise an `AnswerScorer`."""
    has_features: bool = False
    """Whether a user can choose among its features (`feature_names`)."""
    extra: str = ""
    """The extra that it needs: `pip install 'varitext[extra]'`."""

    def load(self) -> "type[AnswerModel]":
        kind: type[AnswerModel] = self.imported()
        return kind


ANSWER_MODELS = {
    "lstm": AnswerEntry("LSTM", f"{ROOM}.recurrent:LSTM"),
    "lstm_attention": AnswerEntry("LSTM + Att", f"{ROOM}.recurrent:LSTMAttention"),
    "nasm": AnswerEntry("NASM", f"{ROOM}.nasm:NASM", has_latent=True),
    "nasm_question": AnswerEntry("NASM, question-level latent", f"{ROOM}.nasm_question:QuestionNASM", has_latent=True),
    "compare": AnswerEntry("Compare-aggregate", f"{ROOM}.compare_aggregate:CompareAggregate", has_features=True),
    "bigram_cnn": AnswerEntry("Bigram-CNN", f"{ROOM}.convolutional:BigramCNN"),
    "deep_cnn": AnswerEntry("Deep CNN", f"{ROOM}.convolutional:DeepCNN", has_features=True),
    "overlap": AnswerEntry(
        "Overlap", f"{ROOM}.overlap_regression:OverlapRegression", trained_by_gradient=False, has_features=True
    ),
    "bm25": AnswerEntry("BM25", f"{ROOM}.bm25:BM25", trained_by_gradient=False),
    "pv": AnswerEntry("PV", f"{ROOM}.paragraph_vectors:ParagraphVectors", trained_by_gradient=False),
    "word_alignment": AnswerEntry(
        "WA", f"{ROOM}.word_alignment:WordAlignment", trained_by_gradient=False, has_features=True
    ),
    "lclr": AnswerEntry("LCLR", f"{ROOM}.lclr:LCLR", trained_by_gradient=False, has_features=True),
    "minilm": AnswerEntry("MiniLM, compare-aggregate", f"{ROOM}.minilm:MiniLM", has_features=True, extra="minilm"),
    "minilm_tuned": AnswerEntry(
        "MiniLM, cross-encoder", f"{ROOM}.cross_encoder:CrossEncoder", has_features=True, extra="minilm"
    ),
}
ANSWER_MODELS = plug_ins("varitext.answer_models", AnswerEntry) | ANSWER_MODELS


def model_class(model: "str | type[AnswerModel]") -> "type[AnswerModel]":
    """The class of a name, or the class itself."""
    if not isinstance(model, str):
        return model
    check_name(model, ANSWER_MODELS, "model of answers")
    return ANSWER_MODELS[model].load()


def model_name(model: str | type) -> str:
    """Its name in the registry, or `package.module:Class` of a plug-in."""
    return model if isinstance(model, str) else stored_name(model, ANSWER_MODELS)
