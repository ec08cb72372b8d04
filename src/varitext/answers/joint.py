"""One joint picture of a question's candidates: which is the main answer, or none, summed out exactly.

Right answers exclude each other more than they go together, and most questions that people ask of a page have no answer
on it. Probabilities of candidates one by one cannot say so. Here a question has a latent m, its main answer or none,
and a latent c, what kind of question it is (one answer, or a list of them). With the ranker's log odds s_i:

    P(m = i)  ~ exp(a s_i)        P(m = none) ~ exp(b + d log n)         n candidates
    P(y | m = i) = [y_i = 1] sum_c pi_c prod_{j != i} Bernoulli(y_j; sigmoid(r_c + t_c s_j))
    P(y | m = none) = [y = 0]

The sums over m and c are finite, so all that follows is exact: no sampling, no bound. Eight numbers, fitted by maximum
likelihood on questions that the ranker was not trained on, answerable or not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import logsigmoid

KINDS = 2  # of questions: those with one answer, and lists
START = (1.0, 0.0, 0.5, -1.0, -3.0, 0.3, -1.0, 0.3)  # a, b, d, log odds of a list, r_c and t_c of each kind
PRIOR_STD = 3.0  # of each number around its start: enough to end the fit where the likelihood is flat


class JointBeliefs(NamedTuple):
    """What the joint picture says of one question, in the order of its candidates."""

    right: np.ndarray  # [n] P(y_i = 1)
    best: np.ndarray  # [n] P(i is the right answer that ranks highest)
    none: float  # P(no candidate is right); with `best` it sums to one


@dataclass(frozen=True)
class JointModel:
    """`parameters` in the order of `START`."""

    parameters: tuple[float, ...]

    @classmethod
    def fit(cls, log_odds: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> "JointModel":
        """By maximum likelihood; all three are of pairs, [P]."""
        groups = list(_questions(log_odds, labels, question_of))
        start = torch.tensor(START, dtype=torch.float64)

        def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
            parameters = torch.tensor(values, dtype=torch.float64, requires_grad=True)
            fit = -torch.stack([_log_likelihood(parameters, *group) for group in groups]).sum()
            loss = fit + 0.5 * (((parameters - start) / PRIOR_STD) ** 2).sum()
            (gradient,) = torch.autograd.grad(loss, parameters)
            return float(loss.detach()), gradient.numpy()

        found = minimize(objective, np.array(START), jac=True, method="L-BFGS-B")
        return cls(tuple(found.x.tolist()))

    def log_likelihood(self, log_odds: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> np.ndarray:
        """log P(all labels) of every question, in nats."""
        parameters = torch.tensor(self.parameters, dtype=torch.float64)
        groups = _questions(log_odds, labels, question_of)
        return np.array([float(_log_likelihood(parameters, *group)) for group in groups])  # [Q]

    def beliefs(self, log_odds: np.ndarray) -> JointBeliefs:
        """Of the candidates of one question, [n]."""
        scores = torch.as_tensor(log_odds, dtype=torch.float64)
        part = _parts(torch.tensor(self.parameters, dtype=torch.float64), scores)
        main, none = part.log_main.exp(), part.log_none.exp()  # [n], []
        kind, also = part.log_kind.exp(), part.also.sigmoid()  # [C], [C, n]
        right = main + (1 - none - main) * (kind[:, None] * also).sum(0)
        return JointBeliefs(right.numpy(), _best(main, kind, also, scores).numpy(), float(none))

    def sample(self, log_odds: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """Labels of one question's candidates, drawn together, [draws, n]."""
        part = _parts(
            torch.tensor(self.parameters, dtype=torch.float64), torch.as_tensor(log_odds, dtype=torch.float64)
        )
        main = torch.cat([part.log_main, part.log_none[None]]).exp().numpy()
        chosen = generator.choice(len(main), draws, p=main / main.sum())
        kinds = generator.choice(KINDS, draws, p=part.log_kind.exp().numpy())
        labels = generator.random((draws, len(log_odds))) < part.also.sigmoid().numpy()[kinds]
        labels[chosen == len(log_odds)] = False
        answered = np.flatnonzero(chosen < len(log_odds))
        labels[answered, chosen[answered]] = True
        return labels.astype(np.int8)


class _Parts(NamedTuple):
    log_main: Tensor  # [n]
    log_none: Tensor  # []
    log_kind: Tensor  # [C]
    also: Tensor  # [C, n] log odds that a candidate is right beside the main answer


def _parts(parameters: Tensor, scores: Tensor) -> _Parts:
    scale, none, by_number, of_list = parameters[:4]
    also = parameters[4:].view(KINDS, 2)
    total = none + by_number * np.log(len(scores))
    joint = torch.cat([scale * scores, total[None]]).log_softmax(0)
    log_kind = torch.stack([logsigmoid(-of_list), logsigmoid(of_list)])
    return _Parts(joint[:-1], joint[-1], log_kind, also[:, :1] + also[:, 1:] * scores)


def _log_likelihood(parameters: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
    part = _parts(parameters, scores)
    if not labels.any():
        return part.log_none
    signed = torch.where(labels, part.also, -part.also)
    each = logsigmoid(signed)  # [C, n] log Bernoulli(y_j)
    # the main answer's own factor is taken out again: that it is right is given
    by_main = part.log_main + each.sum(1, keepdim=True) - each  # [C, n]
    return torch.logsumexp((part.log_kind[:, None] + by_main)[:, labels].flatten(), 0)


def _best(main: Tensor, kind: Tensor, also: Tensor, scores: Tensor) -> Tensor:
    """P(i is right and no higher one is): i is the main answer, or a lower one is and i is right beside it."""
    order = scores.argsort(descending=True, stable=True)
    main, also = main[order], also[:, order]
    higher_wrong = torch.cumprod(torch.cat([torch.ones(KINDS, 1, dtype=also.dtype), 1 - also[:, :-1]], 1), 1)  # [C, n]
    lower = main.flip(0).cumsum(0).flip(0) - main  # [n] P(m is a lower one)
    best = (kind[:, None] * higher_wrong * (main + lower * also)).sum(0)
    return torch.empty_like(best).index_copy(0, order, best)


def _questions(log_odds: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> Iterator[tuple[Tensor, Tensor]]:
    order = np.argsort(question_of, kind="stable")
    cuts = np.flatnonzero(np.diff(question_of[order])) + 1
    for rows in np.split(order, cuts):
        yield torch.as_tensor(log_odds[rows], dtype=torch.float64), torch.as_tensor(labels[rows] == 1)


def abstention_threshold(top: Sequence[float], is_right: Sequence[bool], precision: float) -> float | None:
    """The lowest P(right) of a top candidate at which those at or above it are right in `precision` of cases.

    `top` and `is_right` are of dev questions. None if no threshold reaches it.
    """
    order = np.argsort(-np.asarray(top), kind="stable")
    probability, right = np.asarray(top)[order], np.asarray(is_right, float)[order]
    reached = np.cumsum(right) / np.arange(1, len(right) + 1) >= precision
    last = np.append(probability[1:] < probability[:-1], True)  # equal ones are answered together or not at all
    found = np.flatnonzero(reached & last)
    return float(probability[found[-1]]) if len(found) else None
