"""NASM with a question-level latent: all candidates of a question share one h.

    prior              p(h | q) = N(mean(q), diag(std(q)^2))            learned, from the question alone
    inference network  q(h | q, a_1 y_1, ..., a_n y_n): p(h | q) shifted by a sum over all candidates with their labels
    generative model   one candidate is the main answer m, or none is, with the log odds l_i of candidate i
                           l_i = [s_q; h]^T M z_a(a_i, q, h) + w^T h + b
                           p(m = i | h) ~ exp(l_i),   p(m = none | h) ~ n^c exp(u^T [s_q; h] + d)    n candidates
                       and another is right beside it with probability sigmoid(r + t l_j + v^T h), t > 0;
                       m is summed out exactly: p(y_1, ..., y_n | q, a, h) (`layers/main_answer.py`)
    KL                 KL(q || p) per question, in closed form (`latent/gaussian.py::diagonal_gaussian_kl`);
                       training maximises the importance-weighted bound (`latent/bound.py::Draws`) with 8 samples

The paper's NASM has an h for every pair: a single label is not worth its KL, and the posterior collapses. Here h is
what the labels of a question have in common beyond its words: whether any candidate is right, or several, or those of
one kind. It scales the attention (`ScalingAttention`) and enters the log odds linearly, with the candidate's vector and
on its own: a random effect of the question.

Given h, right answers exclude each other, which m expresses and a shared h cannot. `logits` are the l_i. Since t > 0,
P(right | h) of a question's candidates falls in their order. With `latent_dim=0` it is the same network without the
latent variable.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.latent import DiagonalGaussian
from varitext.layers.attention import BilinearMatch, ScalingAttention
from varitext.layers.dense import MLP, GaussianHead
from varitext.layers.main_answer import log_main_or_none, log_probability_of_labels, side_by_side
from varitext.models.answers.network import Encoding
from varitext.models.answers.recurrent import FORGET_BIAS, RecurrentNetwork

ALSO_LEVEL, ALSO_SLOPE, BY_NUMBER = -3.0, 0.3, 0.5  # initial r, t and c, as in `answers/joint.py`


class QuestionNASM(RecurrentNetwork):
    """Answers ranked by latent attention; h is what the candidates of a question have in common."""

    has_latent = True
    latent_of_question = True
    estimator = "importance_weighted"
    training_samples = 8
    learns_from = "all"  # the likelihood includes questions without a right answer
    fewest_latent_dims = 0
    fewest_passes, patience = 8, 5

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
        initialization: str = FORGET_BIAS,
    ):
        super().__init__(vocabulary_size, embedding_dim, hidden_dim, layers, dropout, fixed_words, initialization)
        self.has_latent = latent_dim > 0
        self.attention = ScalingAttention(hidden_dim + latent_dim, hidden_dim)
        self.match = BilinearMatch(hidden_dim + latent_dim, hidden_dim)
        self.initialize()
        self.none = nn.Linear(hidden_dim + latent_dim, 1)  # u, d
        self.by_number = nn.Parameter(torch.tensor(BY_NUMBER))  # c
        self.also_level = nn.Parameter(torch.tensor(ALSO_LEVEL))  # r
        self.also_log_slope = nn.Parameter(torch.tensor(math.log(ALSO_SLOPE)))  # log t
        if not self.has_latent:
            return
        self.intercept = nn.Linear(latent_dim, 1, bias=False)  # w
        self.also_by_latent = nn.Linear(latent_dim, 1, bias=False)  # v
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
        logits = self.logits(h.index_select(1, encoding.question_of), encoding)  # [S, P]
        scores, also, labels, number = (
            side_by_side(of_pairs, encoding.question_of)
            for of_pairs in (logits, self.also(logits, h, encoding), encoding.labels == 1, self._number(encoding))
        )  # [S, Q, n], [S, Q, n], [Q, n], [Q, n]
        log_main, log_none = log_main_or_none(scores, self.score_of_none(h, encoding), number)
        return log_probability_of_labels(log_main, log_none, also, labels, number)  # [S, Q]

    # Parts of the likelihood of a question's labels, beside `logits`

    def score_of_none(self, h: Tensor, encoding: Encoding) -> Tensor:
        """A linear function of the question and h, plus c log n, [S, Q], for h of shape [S, Q, K]."""
        number = self._sum(torch.ones_like(encoding.labels[:, None]), encoding)[:, 0]  # [Q]
        query = torch.cat([encoding.question.expand(len(h), -1, -1), h], -1)  # [S, Q, H + K]
        of_question: Tensor = self.none(query)[..., 0]
        return of_question + self.by_number * number.log()

    def also(self, logits: Tensor, h: Tensor, encoding: Encoding) -> Tensor:
        """The log odds that a candidate is right beside the main answer, [S, P], for h of shape [S, Q, K]."""
        also = self.also_level + self.also_log_slope.exp() * logits
        if self.has_latent:
            also = also + self.also_by_latent(h)[..., 0].index_select(1, encoding.question_of)
        return also

    # Parts of a pair's log odds

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
        """A question's candidates with their labels, independent of their order: sum of right ones, mean of all."""
        label = self.read_label(encoding.labels[:, None])  # [P, H]
        pair = torch.cat([encoding.question_by_pair, encoding.answers.last, label], 1)  # [P, 3H]
        each = self.read_candidate(pair)  # [P, D]
        number = self._sum(torch.ones_like(each[:, :1]), encoding)  # [Q, 1]
        return self._sum(encoding.labels[:, None] * each, encoding), self._sum(each, encoding) / number  # [Q, D]

    def _sum(self, of_pairs: Tensor, encoding: Encoding) -> Tensor:
        """Over the candidates of each question, [P, D] to [Q, D]; each weighted by the number it stands for."""
        total = of_pairs.new_zeros(len(encoding.question), of_pairs.shape[1])
        return total.index_add(0, encoding.question_of, of_pairs * self._number(encoding)[:, None])

    def _number(self, encoding: Encoding) -> Tensor:
        """How many candidates each stands for, [P]."""
        labels, weights = encoding.labels, encoding.weights
        return torch.ones_like(labels) if weights is None else weights.to(labels)
