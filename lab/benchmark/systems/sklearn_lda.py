"""scikit-learn: LDA by batch variational Bayes, its default; online learning is worse on a corpus of this size."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation

from lab.benchmark.systems import Setting
from varitext.models.documents.lda import lda_document_bounds

PASSES = 20


class SklearnLDA:
    def __init__(self, setting: Setting):
        self.setting = setting
        self.model = LatentDirichletAllocation(
            n_components=setting.latent_dim,
            learning_method="batch",
            max_iter=setting.rounds(PASSES),
            n_jobs=setting.threads,
            random_state=setting.seed,
        )

    def read(self, counts: csr_matrix) -> csr_matrix:
        return counts

    def fit(self, documents: csr_matrix) -> None:
        self.model.fit(documents)

    def transform(self, documents: csr_matrix) -> np.ndarray:
        return np.asarray(self.model.transform(documents))

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        topics = self.model.components_ / self.model.components_.sum(1, keepdims=True)
        return lda_document_bounds(counts, topics, np.full(len(topics), self.model.doc_topic_prior_))
