"""What a ranker must beat to be worth its training: counting shared words, and BM25, on the same dev questions."""

from dataclasses import dataclass

import numpy as np

from varitext.answers.training_data import TrainingData
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.features.bm25 import bm25
from varitext.models.answers.features.word_table import WordTable


@dataclass(frozen=True)
class DevComparison:
    """MAP on dev questions."""

    ranker: float
    word_count: float
    bm25: float

    @property
    def is_better(self) -> bool:
        return self.ranker > max(self.word_count, self.bm25)

    def __str__(self) -> str:
        baselines = f"word counting {self.word_count:.4f}, BM25 {self.bm25:.4f}"
        if self.is_better:
            return f"dev MAP {self.ranker:.4f} ({baselines})"
        return f"dev MAP {self.ranker:.4f}, NO BETTER THAN {baselines}: use more questions, or one of these baselines"


def dev_comparison(probability: np.ndarray, data: TrainingData) -> DevComparison:
    """`probability` is the ranker's, of the dev pairs."""
    dev, overlap = data.dev, data.overlap
    count = overlap.features(dev).only(["word_overlap"]).values[:, 0]
    lengths = [len(candidate.words) for question in data.train.questions for candidate in question.candidates]
    weighed = bm25(WordTable.of(dev), overlap, max(1.0, float(np.mean(lengths))))
    found = (ranking_record(scores, dev.labels, dev.groups).map for scores in (probability, count, weighed))
    return DevComparison(*found)
