"""The models of answers by name. To add one, write its file and name it here: docs/add-a-model.md."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varitext.models.registry import ModelEntry, check_name, plug_ins

if TYPE_CHECKING:
    from varitext.models.answers.network import AnswerNetwork
    from varitext.models.answers.scorer import AnswerScorer

ROOM = "varitext.models.answers"


@dataclass(frozen=True)
class AnswerEntry(ModelEntry):
    """The three are the class's own attributes, so that help need not import it."""

    has_latent: bool = False
    trained_by_gradient: bool = True
    """An `AnswerNetwork`, or else an `AnswerScorer`."""
    has_features: bool = False
    """Whether a user may choose of its features (`feature_names`)."""
    extra: str = ""
    """What `pip install 'varitext[...]'` must have, if anything."""

    def load(self) -> "type[AnswerNetwork] | type[AnswerScorer]":
        kind: type[AnswerNetwork] | type[AnswerScorer] = self.imported()
        return kind


ANSWER_MODELS = {
    "lstm": AnswerEntry("LSTM", f"{ROOM}.recurrent:LSTM"),
    "lstm_attention": AnswerEntry("LSTM + Att", f"{ROOM}.recurrent:LSTMAttention"),
    "nasm": AnswerEntry("NASM", f"{ROOM}.nasm:NASM", has_latent=True),
    "nasm_question": AnswerEntry("NASM, one h a question", f"{ROOM}.nasm_question:QuestionNASM", has_latent=True),
    "compare": AnswerEntry("Compare-aggregate", f"{ROOM}.compare_aggregate:CompareAggregate", has_features=True),
    "bigram_cnn": AnswerEntry("Bigram-CNN", f"{ROOM}.convolutional:BigramCNN"),
    "deep_cnn": AnswerEntry("Deep CNN", f"{ROOM}.convolutional:DeepCNN", has_features=True),
    "overlap": AnswerEntry(
        "Overlap", f"{ROOM}.overlap_regression:OverlapRegression", trained_by_gradient=False, has_features=True
    ),
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


def model_class(name: str) -> "type[AnswerNetwork] | type[AnswerScorer]":
    check_name(name, ANSWER_MODELS, "model of answers")
    return ANSWER_MODELS[name].load()
