"""Two sentences side by side: soft alignment of their words, and windows of words pooled by attention.

All words of a batch stand one after another, [n, H], without padding: `Words` says which sentence each belongs to.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Words(NamedTuple):
    """The words of B sentences, one after another."""

    vectors: Tensor  # [n, H]
    mask: Tensor  # [B, T] true on real words: where they stand when padded

    @property
    def sentence(self) -> Tensor:
        """Which sentence each word belongs to."""
        return self.mask.nonzero()[:, 0]  # [n]

    def padded(self, outside: float = 0.0) -> Tensor:
        flat = self.vectors.new_full((self.mask.numel(), self.vectors.shape[1]), outside)
        flat = flat.index_copy(0, self.mask.flatten().nonzero()[:, 0], self.vectors)
        return flat.view(*self.mask.shape, -1)  # [B, T, H]


def soft_alignment(questions: Words, answers: Words, same: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """For every word the mean of the other sentence's words, weighed by the softmax of their inner products.

    Row i of both is one pair. `same` [B, Tq, Ta] is added to the inner products. Of the question's words [n, H], of
    the answer's [m, H]; zero where the other sentence has no words.
    """
    question, answer = questions.padded(), answers.padded()  # [B, Tq, H], [B, Ta, H]
    scores = torch.bmm(question, answer.transpose(1, 2)) / math.sqrt(question.shape[2])  # [B, Tq, Ta]
    if same is not None:
        scores = scores + same
    lowest = torch.finfo(scores.dtype).min  # not -inf: a sentence of no words would give NaN
    by_answer = scores.masked_fill(~answers.mask[:, None], lowest).softmax(2) * answers.mask[:, None]
    by_question = scores.masked_fill(~questions.mask[:, :, None], lowest).softmax(1) * questions.mask[:, :, None]
    of_question = torch.bmm(by_answer, answer)  # [B, Tq, H]
    of_answer = torch.bmm(by_question.transpose(1, 2), question)  # [B, Ta, H]
    return of_question[questions.mask], of_answer[answers.mask]


class Windows(nn.Module):
    """Linear maps of the windows around every word, of each of the odd `widths`; what lies outside is zero."""

    def __init__(self, input_dim: int, maps: int, widths: Sequence[int]):
        super().__init__()
        self.widths, self.reach = tuple(widths), max(widths) // 2
        self.weights = nn.ParameterList(
            torch.empty(width, input_dim, maps).uniform_(-1, 1) / math.sqrt(width * input_dim) for width in widths
        )
        self.bias = nn.Parameter(torch.zeros(len(self.widths) * maps))

    def forward(self, words: Words) -> Tensor:
        """[n, maps of all widths]: all sentences on one line with gaps between, so that padding costs nothing."""
        places = torch.arange(len(words.vectors), device=words.mask.device) + self.reach * (1 + words.sentence)
        length = len(places) + self.reach * (1 + len(words.mask))
        line = words.vectors.new_zeros(length, words.vectors.shape[1]).index_copy(0, places, words.vectors)
        return torch.cat([self._of_width(line, weight)[places] for weight in self.weights], 1) + self.bias

    def _of_width(self, line: Tensor, weight: Tensor) -> Tensor:
        """The windows centred on every place of the line; those that hang over its ends are zero."""
        width, inner = len(weight), len(line) - len(weight) + 1
        if inner < 1:
            return line.new_zeros(len(line), weight.shape[2])
        mapped = sum((line[shift : shift + inner] @ weight[shift] for shift in range(width)), line.new_zeros(()))
        return nn.functional.pad(mapped, (0, 0, width // 2, width // 2))


class AttentionPooling(nn.Module):
    """One vector of a sentence: the mean of its words' vectors, each weighed by the softmax of a score of its own."""

    def __init__(self, input_dim: int):
        super().__init__()
        self.score = nn.Linear(input_dim, 1, bias=False)

    def weights(self, words: Words) -> Tensor:
        """They sum to one over a sentence's words, and are zero on padding."""
        scores = words._replace(vectors=self.score(words.vectors)).padded(torch.finfo(words.vectors.dtype).min)[..., 0]
        return scores.softmax(1) * words.mask  # [B, T]

    def forward(self, words: Words, weights: Tensor) -> Tensor:
        """With the `weights` of these words."""
        weights = weights[words.mask]  # [n]
        pooled = words.vectors.new_zeros(len(words.mask), words.vectors.shape[1])
        return pooled.index_add(0, words.sentence, weights[:, None] * words.vectors)  # [B, H]
