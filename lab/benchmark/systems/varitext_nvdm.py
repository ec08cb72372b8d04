"""varitext as a user fits documents: the default model, and NVDM with the paper's multinomial likelihood."""

import numpy as np
from scipy.sparse import csr_matrix

from lab.benchmark.systems import Setting
from varitext.documents.fitting import choose_recipe
from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel
from varitext.documents.settings import default_document_model


class VaritextDefault:
    name: str | None = None  # of the model; None is the default

    def __init__(self, setting: Setting):
        self.setting = setting
        self.model = DocumentModel(self.name, setting.latent_dim, threads=setting.threads, seed=setting.seed)

    def read(self, counts: csr_matrix) -> csr_matrix:
        return counts

    def fit(self, documents: csr_matrix) -> None:
        if self.setting.quick or self.setting.share < 1:
            name = self.name or default_document_model(self.model, documents.shape[1], False)
            recipe = choose_recipe(name, self.model, documents)
            self.model.set_params(epochs=self.setting.rounds(recipe.training.epochs))
        self.model.fit(documents)

    def transform(self, documents: csr_matrix, refine: bool = True) -> np.ndarray:
        return self.model.transform(documents, refine=refine)

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        return self.model.fitted_.network.evaluate(counts, PREDICTION_SAMPLES, self.model.seed).elbo


class VaritextMultinomial(VaritextDefault):
    name = "nvdm"
