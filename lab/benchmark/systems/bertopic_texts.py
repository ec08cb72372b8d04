"""BERTopic with its own sentence encoder, which is on the clock: `experiments/bertopic_pipeline.py`."""

import numpy as np

from lab.benchmark.systems import Setting
from lab.experiments.bertopic_pipeline import HDBSCAN_CLUSTERS, MiniLM, new_pipeline, topics_of
from varitext.text import count_texts


class BERTopicTexts:
    def __init__(self, setting: Setting):
        self.setting = setting

    def read_texts(self, texts: list[str]) -> list[str]:
        return texts

    def fit(self, documents: list[str]) -> None:
        words, topics = count_texts(documents).vocabulary.words, self.setting.latent_dim
        self.model = new_pipeline(HDBSCAN_CLUSTERS, topics, self.setting.seed, words)
        topics_of(self.model, documents, MiniLM().embed(documents), topics)

    def transform(self, documents: list[str]) -> np.ndarray:
        """The topic of each, and how probable it is, [D, 2]."""
        return np.column_stack(self.model.transform(documents))


SYSTEM = BERTopicTexts
