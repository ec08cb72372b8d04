"""NASM, the neural answer selection model (paper, section 4 and appendix B.2).

    prior              p(h | q) = N(mean(q), diag(std(q)^2))            learned, from the question alone
    inference network  q(h | q, a, y) = N(mean(q, a, y), diag(std(q, a, y)^2))
    generative model   p(y = 1 | q, a, h) = sigmoid(s_q^T M z_a(a, h) + b)
    KL                 KL(q(h | q, a, y) || p(h | q)), two diagonal Gaussians: training calls `latent/bound.py::elbo`,
                       which takes the closed form `latent/gaussian.py::diagonal_gaussian_kl`

h replaces the question as the query of the attention (`LatentAttention`). Both networks share the two LSTMs. The
posterior sees the label and is used in training only; prediction draws h from the prior.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from varitext.latent import DiagonalGaussian
from varitext.layers.attention import LatentAttention
from varitext.layers.dense import MLP, GaussianHead
from varitext.models.answers.network import Encoding
from varitext.models.answers.recurrent import WORD_SUMS, RecurrentNetwork


class NASM(RecurrentNetwork):
    """Answers ranked by latent stochastic attention; h is the meaning of the question."""

    has_latent = True
    attention_kind = LatentAttention

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 50,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        prior_dim: int = 50,
        posterior_dim: int = 150,
        fixed_words: int = 0,
        initialization: str = WORD_SUMS,
    ):
        super().__init__(vocabulary_size, embedding_dim, hidden_dim, layers, dropout, fixed_words, initialization)
        self.attention = self.attention_kind(latent_dim, hidden_dim)
        self.initialize()
        self.prior_mlp = MLP(hidden_dim, prior_dim, 2, "tanh")  # W_1, W_2
        self.prior_head = GaussianHead(prior_dim, latent_dim)  # W_3, W_4
        self.read_label = nn.Linear(1, hidden_dim)  # W_5: s_y
        self.posterior_mlp = MLP(3 * hidden_dim, posterior_dim, 2, "tanh")  # W_6, W_7
        self.posterior_head = GaussianHead(posterior_dim, latent_dim)  # W_8, W_9

    def prior_by_question(self, encoding: Encoding) -> DiagonalGaussian:
        p: DiagonalGaussian = self.prior_head(self.prior_mlp(encoding.question))
        return p  # [Q, K]

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        label = self.read_label(encoding.labels[:, None])  # [P, H]
        joint = torch.cat([encoding.question_by_pair, encoding.answers.last, label], 1)  # [P, 3H]
        q: DiagonalGaussian = self.posterior_head(self.posterior_mlp(joint))
        return q  # [P, K]

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits: Tensor = self.match(encoding.question_by_pair, self.attention(h, encoding.answers))
        return logits  # [S, P]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor:
        return self.attention.weights(h, encoding.answers)  # [S, P, T]

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.read_label, self.posterior_mlp, self.posterior_head):
            yield from part.parameters()
