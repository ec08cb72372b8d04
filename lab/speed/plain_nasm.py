"""A straightforward NASM in PyTorch, as one would write it from the paper.

Every pair is a row: its question is read again for each candidate, all sentences are padded to the longest of the
batch, and samples of h are drawn in a loop.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


def mlp(wide: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(wide, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())


class PlainNASM(nn.Module):
    def __init__(self, vectors: Tensor, hidden: int = 50, latent: int = 50, layers: int = 3):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.dropout = nn.Dropout(0.4)
        self.question_lstm = nn.LSTM(vectors.shape[1], hidden, layers, batch_first=True)
        self.answer_lstm = nn.LSTM(vectors.shape[1], hidden, layers, batch_first=True)
        self.prior, self.prior_mean, self.prior_log_std = mlp(hidden, 50), nn.Linear(50, latent), nn.Linear(50, latent)
        self.label = nn.Linear(1, hidden)
        self.posterior = mlp(3 * hidden, 150)
        self.posterior_mean, self.posterior_log_std = nn.Linear(150, latent), nn.Linear(150, latent)
        self.from_h, self.from_state = nn.Linear(latent, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.from_context, self.from_last = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.match = nn.Bilinear(hidden, hidden, 1)

    def read(self, lstm: nn.LSTM, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states, _ = lstm(self.dropout(self.embedding(tokens)))
        mask = tokens > 0
        last = states[torch.arange(len(tokens)), (mask.sum(1) - 1).clamp(min=0)]
        return states, last, mask

    def logit(self, h: Tensor, question: Tensor, states: Tensor, last: Tensor, mask: Tensor) -> Tensor:
        energy = self.score(torch.tanh(self.from_h(h)[:, None] + self.from_state(states)))[..., 0]
        weights = torch.softmax(energy.masked_fill(~mask, -1e9), 1)
        context = (weights[..., None] * states).sum(1)
        return self.match(question, torch.tanh(self.from_context(context) + self.from_last(last)))[:, 0]

    def loss(self, questions: Tensor, answers: Tensor, labels: Tensor, samples: int = 1) -> Tensor:
        """Minus the bound, a mean over pairs."""
        _, question, _ = self.read(self.question_lstm, questions)
        states, last, mask = self.read(self.answer_lstm, answers)
        prior, posterior = (
            self.prior(question),
            self.posterior(torch.cat([question, last, self.label(labels[:, None])], 1)),
        )
        mean_p, log_std_p = self.prior_mean(prior), self.prior_log_std(prior)
        mean_q, log_std_q = self.posterior_mean(posterior), self.posterior_log_std(posterior)
        likelihood = 0.0
        for _ in range(samples):
            h = mean_q + log_std_q.exp() * torch.randn_like(mean_q)
            logit = self.logit(h, question, states, last, mask)
            likelihood = likelihood - functional.binary_cross_entropy_with_logits(logit, labels) / samples
        ratio = ((2 * log_std_q).exp() + (mean_q - mean_p) ** 2) / (2 * log_std_p).exp()
        kl = (0.5 * (ratio - 1) + log_std_p - log_std_q).sum(1).mean()
        return kl - likelihood

    @torch.no_grad()
    def predict(self, questions: Tensor, answers: Tensor, samples: int = 20) -> Tensor:
        _, question, _ = self.read(self.question_lstm, questions)
        states, last, mask = self.read(self.answer_lstm, answers)
        prior = self.prior(question)
        mean, log_std = self.prior_mean(prior), self.prior_log_std(prior)
        found = []
        for _ in range(samples):
            h = mean + log_std.exp() * torch.randn_like(mean)
            found.append(torch.sigmoid(self.logit(h, question, states, last, mask)))
        return torch.stack(found).mean(0)
