"""Pyro: ProdLDA (Srivastava and Sutton 2017), the model and settings of Pyro's tutorial, reimplemented.

    inference network   two softplus layers of 100, dropout .2, batch norm on mean and log variance
    prior               log theta ~ N(0, I), theta brought to sum to one
    generative model    counts ~ Multinomial(softmax(batch_norm(beta theta))), dropout .2 on theta

Adam at 1e-3, batches of 32, 50 epochs, the counts dense in memory.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined"
# Pyro ships types for some of its functions only

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, TraceMeanField_ELBO
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.distributions import Normal

from lab.benchmark.systems import Setting
from lab.benchmark.systems.drawn_bound import drawn_bounds

EPOCHS, BATCH, HIDDEN, DROPOUT, RATE = 50, 32, 100, 0.2, 1e-3


class ProdLDA(nn.Module):
    def __init__(self, words: int, topics: int):
        super().__init__()
        self.topics = topics
        self.encoder = nn.Sequential(
            nn.Linear(words, HIDDEN), nn.Softplus(), nn.Linear(HIDDEN, HIDDEN), nn.Softplus(), nn.Dropout(DROPOUT)
        )
        self.mean = nn.Sequential(nn.Linear(HIDDEN, topics), nn.BatchNorm1d(topics))
        self.log_variance = nn.Sequential(nn.Linear(HIDDEN, topics), nn.BatchNorm1d(topics))
        self.decoder = nn.Sequential(nn.Dropout(DROPOUT), nn.Linear(topics, words), nn.BatchNorm1d(words))

    def model(self, counts: Tensor) -> None:
        pyro.module("decoder", self.decoder)
        with pyro.plate("documents", len(counts)):
            zeros = counts.new_zeros(len(counts), self.topics)
            theta = pyro.sample("theta", dist.LogNormal(zeros, zeros + 1).to_event(1))
            shares = torch.softmax(self.decoder(theta / theta.sum(-1, keepdim=True)), -1)
            pyro.sample("words", dist.Multinomial(int(counts.sum(-1).max()), shares), obs=counts)

    def guide(self, counts: Tensor) -> None:
        pyro.module("encoder", nn.ModuleList([self.encoder, self.mean, self.log_variance]))
        with pyro.plate("documents", len(counts)):
            q = self.posterior(counts)
            pyro.sample("theta", dist.LogNormal(q.loc, q.scale).to_event(1))

    def posterior(self, counts: Tensor) -> Normal:
        hidden = self.encoder(counts)
        return Normal(self.mean(hidden), (0.5 * self.log_variance(hidden)).exp())


class PyroProdLDA:
    def __init__(self, setting: Setting):
        self.setting = setting

    def read(self, counts: csr_matrix) -> Tensor:
        return torch.from_numpy(counts.toarray()).float()

    def fit(self, documents: Tensor) -> None:
        pyro.set_rng_seed(self.setting.seed)
        pyro.clear_param_store()
        self.network = ProdLDA(documents.shape[1], self.setting.latent_dim)
        inference = SVI(
            self.network.model, self.network.guide, pyro.optim.Adam({"lr": RATE}), loss=TraceMeanField_ELBO()
        )
        for _ in range(self.setting.rounds(EPOCHS)):
            for batch in torch.split(documents, BATCH):
                if len(batch) > 1:  # batch norm needs two documents
                    inference.step(batch)
        self.network.eval()

    @torch.no_grad()
    def transform(self, documents: Tensor) -> np.ndarray:
        means = [self.network.posterior(block).loc for block in torch.split(documents, 256)]
        return torch.softmax(torch.cat(means), -1).numpy()

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        return drawn_bounds(self.network.posterior, Normal(0.0, 1.0), self._log_words, counts)

    def _log_words(self, log_theta: Tensor) -> Tensor:
        return torch.log_softmax(self.network.decoder(torch.softmax(log_theta, -1)), -1)
