"""Attention over a sentence's words given a latent, and the bilinear match of two sentences."""

import math

import torch
from torch import Tensor, nn

from varitext.layers.words import Sentences


class LatentAttention(nn.Module):
    """An answer as seen by a query (paper, equations 12 to 14); the query is h, or s_q in the deterministic twin.

    alpha(i) ~ exp(W_alpha^T tanh(W_h h + W_s s_a(i))), c = sum_i alpha(i) s_a(i), z_a = tanh(W_a c + W_n s_a(|a|))

    Half of `identity` times the identity is added to each of W_a and W_n at the start.
    """

    def __init__(self, query_dim: int, hidden_dim: int, identity: float = 0.0):
        super().__init__()
        self.from_query = nn.Linear(query_dim, hidden_dim, bias=False)  # W_h
        self.from_state = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_s
        self.score = nn.Linear(hidden_dim, 1, bias=False)  # W_alpha
        self.from_context = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_a
        self.from_last = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_n
        with torch.no_grad():
            for weight in (self.from_context.weight, self.from_last.weight):
                weight += identity / 2 * torch.eye(hidden_dim)

    def forward(self, query: Tensor, answers: Sentences) -> Tensor:
        """z_a for queries [S, P, K]."""
        weights = self.weights(query, answers)  # [S, P, T]
        context = torch.bmm(weights.transpose(0, 1), answers.states).transpose(0, 1)  # [S, P, H]
        return torch.tanh(self.from_context(context) + self.from_last(answers.last))  # [S, P, H]

    def weights(self, query: Tensor, answers: Sentences) -> Tensor:
        """alpha: for every sample it sums to one over an answer's words, and is zero on padding."""
        scores = self._scores(query, answers)  # [S, n]
        mask = answers.mask.expand(len(query), *answers.mask.shape)  # [S, P, T]
        lowest = torch.finfo(scores.dtype).min  # not -inf: an answer of no words would give NaN
        padded = scores.new_full(mask.shape, lowest).masked_scatter(mask, scores)
        return torch.softmax(padded, -1) * mask  # [S, P, T]

    def _scores(self, query: Tensor, answers: Sentences) -> Tensor:
        """Only for the n real words of all answers: the tanh is what attention costs."""
        places = answers.mask.flatten().nonzero()[:, 0]  # [n]
        rows = places // answers.mask.shape[1]  # [n] the answer of each word
        states = self.from_state(answers.states.flatten(0, 1).index_select(0, places))  # [n, H]
        queries = self.from_query(query)  # [S, P, H]
        # one sample at a time: S times n times H numbers at once would leave the cache
        scores = [self.score(self._together(states, one.index_select(0, rows)))[:, 0] for one in queries]
        return torch.stack(scores)  # [S, n]

    def _together(self, states: Tensor, queries: Tensor) -> Tensor:
        return torch.tanh(states + queries)  # [n, H]


class ScalingAttention(LatentAttention):
    """The same with the query as a factor: alpha(i) ~ exp(W_alpha^T ((1 + W_h h) * W_s s_a(i))).

    In the paper's sum a query moves all words of an answer much alike, and the softmax takes out what they share. Here
    it says which units of a state count.
    """

    def _together(self, states: Tensor, queries: Tensor) -> Tensor:
        return states * (1 + queries)  # [n, H]


class BilinearMatch(nn.Module):
    """z_q^T M z_a + b: the log odds that the answer is right (paper, equation 15).

    `identity` times the identity is added to M at the start.
    """

    def __init__(self, question_dim: int, answer_dim: int, identity: float = 0.0):
        super().__init__()
        limit = math.sqrt(6 / (question_dim + answer_dim))
        uniform = torch.empty(question_dim, answer_dim).uniform_(-limit, limit)
        self.weight = nn.Parameter(uniform + identity * torch.eye(question_dim, answer_dim))  # M
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, question: Tensor, answer: Tensor) -> Tensor:
        """question [P, H] or [S, P, H], answer [S, P, H] or [P, H]."""
        return (question @ self.weight * answer).sum(-1) + self.bias  # [S, P] or [P]
