"""The parts that models of sentences are built from: word vectors, dropout, attention over states, the match."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from varitext.errors import InputError
from varitext.pair_batches import FIRST_WORD, PADDING, UNKNOWN


class WordEmbedding(nn.Module):
    """A vector per word number; that of padding is zero and stays so.

    The vectors of the last `fixed_words` words of the vocabulary stay as they are given: a buffer, which no optimiser
    ever sees. All others are learned.
    """

    def __init__(self, vocabulary_size: int, embedding_dim: int, fixed_words: int = 0):
        super().__init__()
        learned = FIRST_WORD + vocabulary_size - fixed_words
        self.weight = nn.Parameter(torch.empty(learned, embedding_dim).uniform_(-0.25, 0.25))
        self.register_buffer("fixed", torch.zeros(1 + fixed_words, embedding_dim))  # row 0 for all learned ones
        with torch.no_grad():
            self.weight[PADDING] = 0

    @torch.no_grad()
    def start_from(self, matrix: Tensor) -> None:
        """Begin at these vectors of the vocabulary's words, [V, E]; unknown words begin at their mean."""
        learned, fixed = self.weight[FIRST_WORD:], self.fixed[1:]
        if tuple(matrix.shape) != (len(learned) + len(fixed), learned.shape[1]):
            raise InputError(
                f"the word vectors are {' x '.join(map(str, matrix.shape))}; "
                f"this model needs {len(learned) + len(fixed)} words x {learned.shape[1]} numbers"
            )
        learned.copy_(matrix[: len(learned)])
        fixed.copy_(matrix[len(learned) :])
        self.weight[UNKNOWN] = matrix.mean(0) if len(matrix) else 0

    def forward(self, tokens: Tensor) -> Tensor:
        if len(self.fixed) == 1:
            return nn.functional.embedding(tokens, self.weight, padding_idx=PADDING)  # [..., E]
        first_fixed, numbers = len(self.weight), tokens.flatten()
        vectors = self.fixed.index_select(0, (numbers - (first_fixed - 1)).clamp(min=0))
        places = (numbers < first_fixed).nonzero()[:, 0]  # of learned words: few, so gradients are gathered here alone
        learned = nn.functional.embedding(numbers[places], self.weight, padding_idx=PADDING)
        return vectors.index_copy_(0, places, learned).view(*tokens.shape, self.weight.shape[1])  # [..., E]


class Sentences(NamedTuple):
    """What an LSTM makes of B sentences; zero on padding."""

    states: Tensor  # [B, T, H]   s(i)
    last: Tensor  # [B, H]   s(|sentence|), zero for a sentence of no words
    mask: Tensor  # [B, T]


class Dropout(nn.Module):
    """As `nn.Dropout`, with a mask of random bits: on a CPU drawing one number per element takes longer than using it.

    The share that is dropped is rounded to a 65,536th.
    """

    def __init__(self, share: float):
        super().__init__()
        self.share = share
        self.threshold = round(share * 2**16) - 2**15  # of a 16-bit number, of which this share lies below

    def forward(self, values: Tensor) -> Tensor:
        kept = 2**15 - self.threshold  # of 2^16
        if not self.training or kept == 2**16:
            return values
        bits = torch.empty(values.numel() // 4 + 1, dtype=torch.int64, device=values.device).random_(-(2**63), None)
        mask = bits.view(torch.int16)[: values.numel()].view(values.shape) >= self.threshold
        return values * (mask * (2**16 / kept))


class LatentAttention(nn.Module):
    """An answer as seen by a query (paper, equations 12 to 14); the query is h, or s_q in the deterministic twin.

    alpha(i) ~ exp(W_alpha^T tanh(W_h h + W_s s_a(i))), c = sum_i alpha(i) s_a(i), z_a = tanh(W_a c + W_n s_a(|a|))
    """

    def __init__(self, query_dim: int, hidden_dim: int):
        super().__init__()
        self.from_query = nn.Linear(query_dim, hidden_dim, bias=False)  # W_h
        self.from_state = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_s
        self.score = nn.Linear(hidden_dim, 1, bias=False)  # W_alpha
        self.from_context = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_a
        self.from_last = nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_n

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
        scores = [self.score(torch.tanh(states + one.index_select(0, rows)))[:, 0] for one in queries]
        return torch.stack(scores)  # [S, n]


class BilinearMatch(nn.Module):
    """z_q^T M z_a + b: the log odds that the answer is right (paper, equation 15)."""

    def __init__(self, question_dim: int, answer_dim: int):
        super().__init__()
        limit = math.sqrt(6 / (question_dim + answer_dim))
        self.weight = nn.Parameter(torch.empty(question_dim, answer_dim).uniform_(-limit, limit))  # M
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, question: Tensor, answer: Tensor) -> Tensor:
        """question [P, H], answer [S, P, H] or [P, H]."""
        return (question @ self.weight * answer).sum(-1) + self.bias  # [S, P] or [P]
