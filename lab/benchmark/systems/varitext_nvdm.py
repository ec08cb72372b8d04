"""varitext as a user fits documents: the default model, and NVDM with the paper's multinomial likelihood."""

import numpy as np
from scipy.sparse import csr_matrix

from lab.benchmark.systems import Setting
from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel


class VaritextDefault:
    name: str | None = None  # of the model; None is the default

    def __init__(self, setting: Setting):
        epochs = 2 if setting.quick else None
        self.model = DocumentModel(
            self.name, setting.latent_dim, threads=setting.threads, seed=setting.seed, epochs=epochs
        )

    def read(self, counts: csr_matrix) -> csr_matrix:
        return counts

    def fit(self, documents: csr_matrix) -> None:
        self.model.fit(documents)

    def transform(self, documents: csr_matrix, refine: bool = True) -> np.ndarray:
        return self.model.transform(documents, refine=refine)

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        return self.model.fitted_.network.evaluate(counts, PREDICTION_SAMPLES, self.model.seed).elbo


class VaritextMultinomial(VaritextDefault):
    name = "nvdm"
