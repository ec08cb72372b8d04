"""NASM with one h for a question and all its candidates: a latent that what we know of a question can fill.

    prior              p(h | q) = N(mean(q), diag(std(q)^2))            learned, from the question alone
    inference network  q(h | q, a_1 y_1, ..., a_n y_n): p(h | q), moved by all candidates with their labels; the sums
                       over them know no order
    generative model   prod_i p(y_i | q, a_i, h),  p(y = 1 | q, a, h) = sigmoid([s_q; h]^T M z_a(a, q, h) + w^T h + b)
    KL                 KL(q || p) of two Gaussians, by formula (`latent/divergence.py::kl`), once for a question;
                       training maximises the importance-weighted bound (`latent/bound.py::Draws`) with 8 samples

The paper's NASM has an h for every pair: a single label then tells nothing worth its KL, and the posterior collapses.
Here h is what the labels of a question have in common beyond what its words say: whether any candidate is right, or
several, or those of one kind. It enters the attention as a factor (`ScalingAttention`), and the log odds linearly, with
the candidate's vector and by itself: what statisticians call a random effect of the question.

With `latent_dim` 0 there is no h: the same network is its own deterministic twin.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.latent import DiagonalGaussian
from varitext.layers.attention import BilinearMatch, ScalingAttention
from varitext.layers.dense import MLP, GaussianHead
from varitext.models.answers.network import Encoding
from varitext.models.answers.recurrent import DEFAULT_START, RecurrentNetwork


class QuestionNASM(RecurrentNetwork):
    """Answers ranked by latent attention; h is what the candidates of a question have in common."""

    has_latent = True
    latent_of_question = True
    importance_weighted = True
    training_samples = 8
    fewest_latent_dims = 0

    def __init__(
        self,
        vocabulary_size: int,
        latent_dim: int = 8,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 1,
        dropout: float = 0.4,
        prior_dim: int = 50,
        posterior_dim: int = 50,
        fixed_words: int = 0,
        initialization: str = DEFAULT_START,
    ):
        super().__init__(vocabulary_size, embedding_dim, hidden_dim, layers, dropout, fixed_words, initialization)
        self.has_latent = latent_dim > 0
        self.attention = ScalingAttention(hidden_dim + latent_dim, hidden_dim, self.start.identity)
        self.match = BilinearMatch(hidden_dim + latent_dim, hidden_dim, self.start.identity)
        if not self.has_latent:
            return
        self.intercept = nn.Linear(latent_dim, 1, bias=False)  # w
        self.prior_mlp = MLP(hidden_dim, prior_dim, 2, "tanh")
        self.prior_head = GaussianHead(prior_dim, latent_dim)
        self.read_candidate = MLP(3 * hidden_dim, posterior_dim, 1, "tanh")
        self.read_label = nn.Linear(1, hidden_dim)
        self.posterior_mlp = MLP(hidden_dim + 2 * posterior_dim, posterior_dim, 1, "tanh")
        self.posterior_head = GaussianHead(posterior_dim, latent_dim)

    # The four methods of the framework: an example is a question with its candidates

    def encode(self, batch: PairBatch) -> Encoding:
        return super().encode(batch)._replace(weights=batch.weights)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return self.prior_by_question(encoding)  # [Q, K]

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        prior = self.prior(encoding)
        if not self.has_latent:
            return prior
        seen = self.posterior_mlp(torch.cat([encoding.question, *self._labelled_set(encoding)], 1))
        moved: DiagonalGaussian = self.posterior_head(seen)
        return DiagonalGaussian(prior.mean + moved.mean, prior.log_std + moved.log_std).within_bounds()  # [Q, K]

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return super().log_likelihood(h.index_select(1, encoding.question_of), encoding)  # [S, Q]

    def per_example(self, of_pairs: Tensor, encoding: Encoding) -> Tensor:
        """log prod_i p(y_i | q, a_i, h), [S, Q]."""
        return self._sum(of_pairs.T, encoding).T

    # What a pair's log odds are made of

    def prior_by_question(self, encoding: Encoding) -> DiagonalGaussian:
        if not self.has_latent:
            return super().prior_by_question(encoding)
        p: DiagonalGaussian = self.prior_head(self.prior_mlp(encoding.question))
        return p  # [Q, K]

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        query = self._query(h, encoding)
        logits: Tensor = self.match(query, self.attention(query, encoding.answers))
        return logits + self.intercept(h)[..., 0] if self.has_latent else logits  # [S, P]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor:
        return self.attention.weights(self._query(h, encoding), encoding.answers)  # [S, P, T]

    def inference_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.read_candidate, self.read_label, self.posterior_mlp, self.posterior_head):
            yield from part.parameters()

    def _query(self, h: Tensor, encoding: Encoding) -> Tensor:
        question = encoding.question_by_pair.expand(len(h), -1, -1)
        return torch.cat([question, h], -1)  # [S, P, H + K]

    def _labelled_set(self, encoding: Encoding) -> tuple[Tensor, Tensor]:
        """A question's candidates with their labels, whatever their order: the sum of right ones, the mean of all."""
        label = self.read_label(encoding.labels[:, None])  # [P, H]
        pair = torch.cat([encoding.question_by_pair, encoding.answers.last, label], 1)  # [P, 3H]
        each = self.read_candidate(pair)  # [P, D]
        number = self._sum(torch.ones_like(each[:, :1]), encoding)  # [Q, 1]
        return self._sum(encoding.labels[:, None] * each, encoding), self._sum(each, encoding) / number  # [Q, D]

    def _sum(self, of_pairs: Tensor, encoding: Encoding) -> Tensor:
        """Over the candidates of each question, [P, D] to [Q, D]; each as many as it stands for."""
        weights = 1.0 if encoding.weights is None else encoding.weights[:, None].to(of_pairs)
        total = of_pairs.new_zeros(len(encoding.question), of_pairs.shape[1])
        return total.index_add(0, encoding.question_of, of_pairs * weights)
