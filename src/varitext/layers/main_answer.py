"""The joint likelihood of the labels of a question's candidates: at most one is the main answer m, which is summed out.

    P(m = i) ~ exp(score of i)        P(m = none) ~ exp(score of none)
    P(y | m = i) = [y_i = 1] prod_{j != i} Bernoulli(y_j; sigmoid(also_j))
    P(y | m = none) = [y = 0]

So correct answers exclude each other, except for those that are correct besides the main one. The sum over m is finite
and exact. Questions are padded to the longest: `number` is the number of candidates that each entry represents, and
zero on padding. Dimensions before the questions are arbitrary, for example samples. `log_main_or_none` also takes numpy
arrays (`functions.py`).
"""

from typing import TYPE_CHECKING, Any

from varitext.layers.functions import functions_for

if TYPE_CHECKING:
    from torch import Tensor

LOWEST = -1e9  # log probability of an impossible event; not -inf, whose gradient is NaN


def log_main_or_none(scores: Any, none: Any, number: Any) -> tuple[Any, Any]:
    """log P(m = i), [..., Q, n], -inf on padding, and log P(m = none), [..., Q]; of tensors or of arrays."""
    of = functions_for(scores)
    joint = of.log_softmax(of.concatenate([scores + of.log(number), none[..., None]]))
    return joint[..., :-1], joint[..., -1]


def log_probability_of_labels(
    log_main: "Tensor", log_none: "Tensor", also: "Tensor", labels: "Tensor", number: "Tensor"
) -> "Tensor":
    """log P(y) of every question, [..., Q]; `labels` are true for correct answers, [Q, n]; `also` is [..., Q, n]."""
    of = functions_for(also)
    each = of.logsigmoid(of.where(labels, also, -also))  # [..., Q, n]
    # without the factor of the main answer, which is correct by definition
    by_main = log_main + (number * each).sum(-1, keepdim=True) - each
    some_right = by_main.masked_fill(~labels, LOWEST).logsumexp(-1)
    found: Tensor = of.where(labels.any(-1), some_right, log_none)
    return found


def places(question_of: "Tensor") -> "Tensor":
    """The position of each candidate among those of its question, [P]."""
    sizes = question_of.bincount()
    return question_of.argsort(stable=True).argsort() - (sizes.cumsum(0) - sizes)[question_of]


def side_by_side(of_pairs: "Tensor", question_of: "Tensor") -> "Tensor":
    """Values of candidates, [..., P], padded by question, [..., Q, n]; zero on padding."""
    place = places(question_of)
    n_questions, longest = int(question_of.max()) + 1, int(place.max()) + 1
    empty = of_pairs.new_zeros(*of_pairs.shape[:-1], n_questions * longest)
    filled = empty.index_copy(-1, question_of * longest + place, of_pairs)
    return filled.view(*of_pairs.shape[:-1], n_questions, longest)
