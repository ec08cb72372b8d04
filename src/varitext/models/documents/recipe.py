"""How a document model is fitted: architecture, training settings and objective, by preset and size of the corpus."""

import math
from dataclasses import dataclass
from typing import Any

from varitext.training.settings import TrainingSettings


@dataclass(frozen=True)
class Recipe:
    """A named way to fit a model: the paper's, or the one we recommend."""

    architecture: dict[str, Any]
    training: TrainingSettings
    objective: "DocumentObjective"


@dataclass(frozen=True)
class DocumentObjective:
    """What is minimised: the mean over documents of N^-a (beta KL - log likelihood), or what a model has in its place
    (`DocumentNetwork.objective`)."""

    length_exponent: float = 0.0
    """The measure reported, per-document perplexity, weighs a document's bound by 1/N; a plain mean weighs it by 1 and
    lets the few long documents decide. a lies between: 0 is the plain bound, 1 the measure itself."""
    word_dropout: float = 0.0
    """The largest share of its words that a training document may lose, anew at every pass; see `drop_words`."""


def schedule_for(documents: int, learning_rate: float, samples: int = 1, passes: int = 41) -> TrainingSettings:
    """Many passes over few documents, few over many: `passes` over ten thousand. Early stopping cuts what is too long.

    The learning rate is that of batches of 128; smaller corpora have smaller batches and smaller steps.
    """
    epochs = round(min(100, max(8, 100 * passes / math.sqrt(documents))))
    batch_size = min(128, max(32, 2 ** round(math.log2(documents / 32))))
    return TrainingSettings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate * math.sqrt(batch_size / 128),
        samples=samples,
        patience=max(5, epochs // 4),
    )
