"""tomotopy: LDA by collapsed Gibbs sampling, in C++."""

import numpy as np
import tomotopy
from scipy.sparse import csr_matrix

from lab.benchmark.systems import Setting
from varitext.models.documents.lda import lda_document_bounds

ITERATIONS = 1000
UNSEEN = 1e-12  # p(word | topic) of a word without training documents


class TomotopyLDA:
    def __init__(self, setting: Setting):
        self.setting = setting
        self.model = tomotopy.LDAModel(k=setting.latent_dim, seed=setting.seed + 1)

    def read(self, counts: csr_matrix) -> list[list[str]]:
        names = np.arange(counts.shape[1]).astype(str)
        rows = zip(counts.indptr[:-1], counts.indptr[1:], strict=True)
        return [np.repeat(names[counts.indices[a:b]], counts.data[a:b].astype(int)).tolist() for a, b in rows]

    def fit(self, documents: list[list[str]]) -> None:
        for words in documents:
            self.model.add_doc(words)
        self.model.train(self.setting.rounds(ITERATIONS), workers=self.setting.threads)

    def transform(self, documents: list[list[str]]) -> np.ndarray:
        made = [self.model.make_doc(words) for words in documents]
        topics, _ = self.model.infer(made, workers=self.setting.threads)
        return np.array(topics)

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        return lda_document_bounds(counts, self.topics(counts.shape[1]), np.asarray(self.model.alpha, np.float64))

    def topics(self, words: int) -> np.ndarray:
        columns = np.array([int(word) for word in self.model.used_vocabs])
        topics: np.ndarray = np.full((self.setting.latent_dim, words), UNSEEN)
        for topic in range(self.setting.latent_dim):
            topics[topic, columns] = self.model.get_topic_word_dist(topic)
        return np.asarray(topics / topics.sum(1, keepdims=True))
