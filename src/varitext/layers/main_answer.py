"""The joint likelihood of the labels of a question's candidates: at most one is the main answer m, which is summed out.

    P(m = i) ~ exp(score of i)        P(m = none) ~ exp(score of none)
    P(y | m = i) = [y_i = 1] prod_{j != i} Bernoulli(y_j; sigmoid(also_j))
    P(y | m = none) = [y = 0]

So correct answers exclude each other, except for those that are correct besides the main one. The sum over m is finite
and exact. Questions are padded to the longest: `number` is the number of candidates that each entry represents, and
zero on padding. Dimensions before the questions are arbitrary, for example samples.
"""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

LOWEST = -1e9  # log probability of an impossible event; not -inf, whose gradient is NaN


def log_main_or_none(scores: Tensor, none: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
    """log P(m = i), [..., Q, n], -inf on padding, and log P(m = none), [..., Q]."""
    joint = torch.cat([scores + number.log(), none[..., None]], -1).log_softmax(-1)
    return joint[..., :-1], joint[..., -1]


def log_probability_of_labels(
    log_main: Tensor, log_none: Tensor, also: Tensor, labels: Tensor, number: Tensor
) -> Tensor:
    """log P(y) of every question, [..., Q]; `labels` are true for correct answers, [Q, n]; `also` is [..., Q, n]."""
    each = logsigmoid(torch.where(labels, also, -also))  # [..., Q, n]
    # without the factor of the main answer, which is correct by definition
    by_main = log_main + (number * each).sum(-1, keepdim=True) - each
    some_right = by_main.masked_fill(~labels, LOWEST).logsumexp(-1)
    return torch.where(labels.any(-1), some_right, log_none)


def places(question_of: Tensor) -> Tensor:
    """The position of each candidate among those of its question, [P]."""
    order = question_of.argsort(stable=True)
    sizes = question_of.bincount()
    first = (sizes.cumsum(0) - sizes)[question_of[order]]
    return torch.empty_like(question_of).index_put((order,), torch.arange(len(order)).to(order) - first)


def side_by_side(of_pairs: Tensor, question_of: Tensor) -> Tensor:
    """Values of candidates, [..., P], padded by question, [..., Q, n]; zero on padding."""
    place = places(question_of)
    n_questions, longest = int(question_of.max()) + 1, int(place.max()) + 1
    empty = of_pairs.new_zeros(*of_pairs.shape[:-1], n_questions * longest)
    filled = empty.index_copy(-1, question_of * longest + place, of_pairs)
    return filled.view(*of_pairs.shape[:-1], n_questions, longest)
