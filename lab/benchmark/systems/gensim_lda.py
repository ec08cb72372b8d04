"""gensim: LDA by online variational Bayes in several processes."""

import numpy as np
from gensim.models import LdaMulticore
from scipy.sparse import csr_matrix

from lab.benchmark.systems import Setting
from varitext.models.documents.lda import lda_document_bounds

PASSES = 20
Document = list[tuple[int, int]]  # word, count


class GensimLDA:
    def __init__(self, setting: Setting):
        self.setting = setting

    def read(self, counts: csr_matrix) -> list[Document]:
        self.words = counts.shape[1]
        entries = list(zip(counts.indices.tolist(), counts.data.astype(int).tolist(), strict=True))
        return [entries[a:b] for a, b in zip(counts.indptr[:-1], counts.indptr[1:], strict=True)]

    def fit(self, documents: list[Document]) -> None:
        self.model = LdaMulticore(
            documents,
            num_topics=self.setting.latent_dim,
            id2word={number: str(number) for number in range(self.words)},
            workers=self.setting.threads,
            passes=self.setting.rounds(PASSES),
            random_state=self.setting.seed,
        )

    def transform(self, documents: list[Document]) -> np.ndarray:
        gamma, _ = self.model.inference(documents)
        return np.asarray(gamma / gamma.sum(1, keepdims=True))

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        topics = self.model.get_topics().astype(np.float64)
        return lda_document_bounds(counts, topics / topics.sum(1, keepdims=True), self.model.alpha.astype(np.float64))
