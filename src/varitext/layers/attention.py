"""Attention: over a sentence's words given a query, between the words of two sentences, and the bilinear match."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.layers.words import Sentences


class LatentAttention(nn.Module):
    """Encode an answer given a query (paper, equations 12 to 14): h, or s_q in a network without the latent variable.

    alpha(i) ~ exp(W_alpha^T tanh(W_h h + W_s s_a(i))), c = sum_i alpha(i) s_a(i), z_a = tanh(W_a c + W_n s_a(|a|))
    """

    def __init__(self, query_dim: int, hidden_dim: int):
        super().__init__()
        self.from_query = nn.Linear(query_dim, hidden_dim, bias=False)  # W_h
        self.from_state = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_s
        self.score = nn.Linear(hidden_dim, 1, bias=False)  # W_alpha
        self.from_context = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_a
        self.from_last = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_n

    @torch.no_grad()
    def start_at_last_state(self) -> None:
        """Initialize so that z_a is about the last state, to which attention adds what it learns to find."""
        self.from_context.weight.mul_(0.3)
        nn.init.eye_(self.from_last.weight)

    def forward(self, query: Tensor, answers: Sentences) -> Tensor:
        """z_a for queries [S, P, K]."""
        weights = self.weights(query, answers)  # [S, P, T]
        context = torch.bmm(weights.transpose(0, 1), answers.states).transpose(0, 1)  # [S, P, H]
        return torch.tanh(self.from_context(context) + self.from_last(answers.last))  # [S, P, H]

    def weights(self, query: Tensor, answers: Sentences) -> Tensor:
        """alpha, [S, P, T]: sums to one over an answer's words, and is zero on padding."""
        scores = self._scores(query, answers)  # [S, n]
        mask = answers.mask.expand(len(query), *answers.mask.shape)  # [S, P, T]
        lowest = torch.finfo(scores.dtype).min  # not -inf: an answer without words would give NaN
        padded = scores.new_full(mask.shape, lowest).masked_scatter(mask, scores)
        return torch.softmax(padded, -1) * mask  # [S, P, T]

    def _scores(self, query: Tensor, answers: Sentences) -> Tensor:
        """Scores of the n real words of all answers, without padding: the tanh dominates the cost."""
        places = answers.mask.flatten().nonzero()[:, 0]  # [n]
        rows = places // answers.mask.shape[1]  # [n] the answer of each word
        states = self.from_state(answers.states.flatten(0, 1).index_select(0, places))  # [n, H]
        queries = self.from_query(query)  # [S, P, H]
        # one sample at a time: S n H numbers at once would not fit the cache
        scores = [self.score(self._together(states, one.index_select(0, rows)))[:, 0] for one in queries]
        return torch.stack(scores)  # [S, n]

    def _together(self, states: Tensor, queries: Tensor) -> Tensor:
        return torch.tanh(states + queries)  # [n, H]


class ScalingAttention(LatentAttention):
    """`LatentAttention` with the query as a factor: alpha(i) ~ exp(W_alpha^T ((1 + W_h h) * W_s s_a(i))).

    In the paper's sum a query shifts all words of an answer by similar amounts, which the softmax cancels. Here the
    query weights the units of each state.
    """

    def _together(self, states: Tensor, queries: Tensor) -> Tensor:
        return states * (1 + queries)  # [n, H]


class BilinearMatch(nn.Module):
    """z_q^T M z_a + b: the log odds that the answer is right (paper, equation 15)."""

    def __init__(self, question_dim: int, answer_dim: int):
        super().__init__()
        limit = math.sqrt(6 / (question_dim + answer_dim))
        self.weight = nn.Parameter(torch.empty(question_dim, answer_dim).uniform_(-limit, limit))  # M
        self.bias = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def start_as_inner_product(self) -> None:
        """Initialize near 2 z_q^T z_a - 2: few answers are right."""
        self.weight.mul_(0.3).add_(2 * torch.eye(*self.weight.shape))
        self.bias.fill_(-2)

    def forward(self, question: Tensor, answer: Tensor) -> Tensor:
        """question [P, H] or [S, P, H], answer [S, P, H] or [P, H]."""
        return (question @ self.weight * answer).sum(-1) + self.bias  # [S, P] or [P]


class Words(NamedTuple):
    """The words of B sentences, one after another and without padding."""

    vectors: Tensor  # [n, H]
    mask: Tensor  # [B, T] true on real words: their positions when padded

    @property
    def sentence(self) -> Tensor:
        return self.mask.nonzero()[:, 0]  # [n]

    def padded(self, outside: float = 0.0) -> Tensor:
        flat = self.vectors.new_full((self.mask.numel(), self.vectors.shape[1]), outside)
        flat = flat.index_copy(0, self.mask.flatten().nonzero()[:, 0], self.vectors)
        return flat.view(*self.mask.shape, -1)  # [B, T, H]


def soft_alignment(questions: Words, answers: Words) -> tuple[Tensor, Tensor]:
    """For every word, the mean of the other sentence's words, weighted by the softmax of their inner products.

    Row i of both is one pair. Returns [n, H] for the question's words and [m, H] for the answer's; zero if the other
    sentence has no words.
    """
    question, answer = questions.padded(), answers.padded()  # [B, Tq, H], [B, Ta, H]
    scores = torch.bmm(question, answer.transpose(1, 2)) / math.sqrt(question.shape[2])  # [B, Tq, Ta]
    lowest = torch.finfo(scores.dtype).min  # not -inf: a sentence without words would give NaN
    by_answer = scores.masked_fill(~answers.mask[:, None], lowest).softmax(2) * answers.mask[:, None]
    by_question = scores.masked_fill(~questions.mask[:, :, None], lowest).softmax(1) * questions.mask[:, :, None]
    of_question = torch.bmm(by_answer, answer)  # [B, Tq, H]
    of_answer = torch.bmm(by_question.transpose(1, 2), question)  # [B, Ta, H]
    return of_question[questions.mask], of_answer[answers.mask]


class Windows(nn.Module):
    """Linear maps of the windows around every word, for each of the odd `widths`; words outside are zero."""

    def __init__(self, input_dim: int, maps: int, widths: Sequence[int]):
        super().__init__()
        self.widths, self.reach = tuple(widths), max(widths) // 2
        self.weights = nn.ParameterList(
            torch.empty(width, input_dim, maps).uniform_(-1, 1) / math.sqrt(width * input_dim) for width in widths
        )
        self.bias = nn.Parameter(torch.zeros(len(self.widths) * maps))

    def forward(self, words: Words) -> Tensor:
        """[n, maps of all widths]. Sentences are laid out in one line with gaps between, so padding costs nothing."""
        places = torch.arange(len(words.vectors), device=words.mask.device) + self.reach * (1 + words.sentence)
        length = len(places) + self.reach * (1 + len(words.mask))
        line = words.vectors.new_zeros(length, words.vectors.shape[1]).index_copy(0, places, words.vectors)
        return torch.cat([self._of_width(line, weight)[places] for weight in self.weights], 1) + self.bias

    def _of_width(self, line: Tensor, weight: Tensor) -> Tensor:
        """The windows centred on every place of the line; those that extend beyond its ends are zero."""
        width, inner = len(weight), len(line) - len(weight) + 1
        if inner < 1:
            return line.new_zeros(len(line), weight.shape[2])
        mapped = sum((line[shift : shift + inner] @ weight[shift] for shift in range(width)), line.new_zeros(()))
        return nn.functional.pad(mapped, (0, 0, width // 2, width // 2))


class AttentionPooling(nn.Module):
    """One vector per sentence: the mean of its words' vectors, weighted by the softmax of their scores."""

    def __init__(self, input_dim: int):
        super().__init__()
        self.score = nn.Linear(input_dim, 1, bias=False)

    def weights(self, words: Words) -> Tensor:
        """Weights [B, T] that sum to one over a sentence's words, and are zero on padding."""
        scores = words._replace(vectors=self.score(words.vectors)).padded(torch.finfo(words.vectors.dtype).min)[..., 0]
        return scores.softmax(1) * words.mask  # [B, T]

    def forward(self, words: Words, weights: Tensor) -> Tensor:
        """The weighted mean, [B, H], given the `weights` of these words."""
        weights = weights[words.mask]  # [n]
        pooled = words.vectors.new_zeros(len(words.mask), words.vectors.shape[1])
        return pooled.index_add(0, words.sentence, weights[:, None] * words.vectors)  # [B, H]
