"""A straightforward NVDM in PyTorch, written directly from the paper."""

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional

from lab.benchmark.systems import Setting
from lab.benchmark.systems.drawn_bound import drawn_bounds

EPOCHS = 60


class DenseNVDM(nn.Module):
    def __init__(self, words: int, latent_dim: int = 50, hidden_dim: int = 500):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(words, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, hidden_dim), nn.ReLU()
        )
        self.mean = nn.Linear(hidden_dim, latent_dim)
        self.log_std = nn.Linear(hidden_dim, latent_dim)
        self.decoder = nn.Linear(latent_dim, words)

    def forward(self, counts: Tensor) -> Tensor:
        """The bound of each document, one sample."""
        hidden = self.encoder(torch.log1p(counts))  # raw counts end in NaN within a dozen epochs
        mean, log_std = self.mean(hidden), self.log_std(hidden)
        h = mean + log_std.exp() * torch.randn_like(mean)
        log_likelihood = (functional.log_softmax(self.decoder(h), -1) * counts).sum(-1)
        bound: Tensor = log_likelihood - 0.5 * (mean.square() + (2 * log_std).exp() - 1 - 2 * log_std).sum(-1)
        return bound


class DenseFit:
    """Batch 64, Adam 5e-4, the whole count matrix dense in memory."""

    def __init__(self, counts: np.ndarray, latent_dim: int = 50, seed: int = 0):
        torch.manual_seed(seed)
        self.counts = torch.from_numpy(counts)
        self.model = DenseNVDM(counts.shape[1], latent_dim)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 5e-4)

    def epoch(self) -> None:
        for rows in torch.split(torch.randperm(len(self.counts)), 64):
            loss = -self.model(self.counts[rows]).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def perplexity(self, counts: np.ndarray, samples: int = 20) -> float:
        per_word = []
        for rows in torch.split(torch.from_numpy(counts), 512):
            bound = torch.stack([self.model(rows) for _ in range(samples)]).mean(0)
            per_word.append(bound / rows.sum(-1))
        return float(torch.cat(per_word).mean().neg().exp())


class PlainNVDM:
    def __init__(self, setting: Setting):
        self.setting = setting

    def read(self, counts: csr_matrix) -> np.ndarray:
        return counts.toarray().astype(np.float32)

    def fit(self, documents: np.ndarray) -> None:
        fit = DenseFit(documents, self.setting.latent_dim, self.setting.seed)
        for _ in range(self.setting.rounds(EPOCHS)):
            fit.epoch()
        self.network = fit.model.eval()

    @torch.no_grad()
    def transform(self, documents: np.ndarray) -> np.ndarray:
        blocks = torch.split(torch.from_numpy(documents), 256)
        return torch.cat([self.posterior(block).loc for block in blocks]).numpy()

    def bounds(self, counts: csr_matrix) -> np.ndarray:
        log_words = lambda h: functional.log_softmax(self.network.decoder(h), -1)  # noqa: E731
        return drawn_bounds(self.posterior, Normal(0.0, 1.0), log_words, counts)

    def posterior(self, documents: Tensor) -> Normal:
        hidden = self.network.encoder(torch.log1p(documents))
        return Normal(self.network.mean(hidden), self.network.log_std(hidden).exp())
