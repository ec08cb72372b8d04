"""Ourselves, as a user fits documents."""

import numpy as np
from scipy.sparse import csr_matrix

from lab.benchmark.systems import Setting
from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel
from varitext.documents.posterior import means_of


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

    def transform(self, documents: csr_matrix) -> np.ndarray:
        return self.model.transform(documents)

    def transform_fast(self, documents: csr_matrix) -> np.ndarray:
        """`varitext transform --fast`."""
        return self.model.transform(documents, refine=False)

    def transform_here(self, documents: csr_matrix, refine: bool) -> np.ndarray:
        return means_of(self.model.fitted_.network, documents, refine=refine, threads=1)

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        return self.model.fitted_.network.evaluate(counts, PREDICTION_SAMPLES, self.model.seed).elbo


SYSTEM = VaritextDefault
