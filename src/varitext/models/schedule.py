"""A training schedule for a corpus of some size, for models that need no better one of their own."""

import math

from varitext.training import TrainingSettings


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
