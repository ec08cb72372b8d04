"""contextualized-topic-models: its ProdLDA, with its own training loop and defaults.

The package expects embeddings of the documents. Given log counts of unit length instead, its `ZeroShotTM` is ProdLDA on
bags of words. Raw counts would give long documents a KL of millions, since the log variance is unbounded. Its decoder
ends in a batch norm without scale and bias, so all words are equally likely on average, which limits its perplexity.

Needs matplotlib and wordcloud, but not sentence-transformers and the package's other dependencies.
"""

import contextlib
import os
from collections.abc import Iterator

import numpy as np
import torch
from contextualized_topic_models.datasets.dataset import CTMDataset
from contextualized_topic_models.models.ctm import ZeroShotTM
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.distributions import Normal
from torch.nn import functional

from lab.benchmark.systems import Setting
from lab.benchmark.systems.drawn_bound import drawn_bounds


class CTMProdLDA:
    def __init__(self, setting: Setting):
        self.setting = setting

    def read(self, counts: csr_matrix) -> CTMDataset:
        """As what the inference network reads, and as words to explain."""
        rows = counts.toarray().astype(np.float32)
        return CTMDataset(
            network_input(torch.from_numpy(rows)).numpy(),
            rows,
            {number: str(number) for number in range(counts.shape[1])},
        )

    def fit(self, documents: CTMDataset) -> None:
        torch.manual_seed(self.setting.seed)
        words = documents.X_bow.shape[1]
        self.model = ZeroShotTM(
            bow_size=words,
            contextual_size=words,
            n_components=self.setting.latent_dim,
            num_epochs=self.setting.rounds(100),
            num_data_loader_workers=0,  # threads do the work
        )
        with _quietly():
            self.model.fit(documents, do_train_predictions=False)

    def transform(self, documents: CTMDataset) -> np.ndarray:
        with _quietly():
            return np.asarray(self.model.get_doc_topic_distribution(documents))

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        network = self.model.model.eval()
        with torch.no_grad():
            prior = Normal(network.prior_mean, network.prior_variance.sqrt())
        return drawn_bounds(self._posterior, prior, self._log_words, counts)

    def _posterior(self, documents: Tensor) -> Normal:
        mean, log_variance = self.model.model.get_posterior(documents, network_input(documents))
        return Normal(mean, (0.5 * log_variance).exp())

    def _log_words(self, h: Tensor) -> Tensor:
        network = self.model.model
        return torch.log_softmax(network.beta_batchnorm(torch.softmax(h, -1) @ network.beta), -1)


def network_input(counts: Tensor) -> Tensor:
    """Log counts, each document of unit length, [B, V]."""
    return functional.normalize(torch.log1p(counts), dim=1)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without its progress bars."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
        yield
