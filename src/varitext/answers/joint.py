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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import logsigmoid

from varitext.answers.calibration import log_odds

PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # for which a threshold is kept
KINDS = 2  # of questions: those with one answer, and lists
START = (1.0, 0.0, 0.5, -1.0, -3.0, 0.3, -1.0, 0.3)  # a, b, d, log odds of a list, r_c and t_c of each kind
LOWEST = -1e9  # a log probability of what cannot be
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
    def fit(cls, scores: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> "JointModel":
        """By maximum likelihood. Log odds of the ranker, labels, and whose candidate each is, [P]."""
        questions = _side_by_side(scores, labels, question_of)
        start = torch.tensor(START, dtype=torch.float64)

        def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
            parameters = torch.tensor(values, dtype=torch.float64, requires_grad=True)
            loss = 0.5 * (((parameters - start) / PRIOR_STD) ** 2).sum() - _log_likelihood(parameters, questions).sum()
            (gradient,) = torch.autograd.grad(loss, parameters)
            return float(loss.detach()), gradient.numpy()

        found = minimize(objective, np.array(START), jac=True, method="L-BFGS-B")
        return cls(tuple(found.x.tolist()))

    def log_likelihood(self, scores: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> np.ndarray:
        """log P(all labels) of every question, in nats."""
        parameters = torch.tensor(self.parameters, dtype=torch.float64)
        return _log_likelihood(parameters, _side_by_side(scores, labels, question_of)).numpy()  # [Q]

    def beliefs(self, scores: np.ndarray) -> JointBeliefs:
        """Of the candidates of one question, [n]."""
        part = self._of_one(scores)
        main, none = part.log_main[0].exp(), part.log_none[0].exp()  # [n], []
        kind, also = part.log_kind.exp(), part.also[:, 0].sigmoid()  # [C], [C, n]
        right = main + (1 - none - main) * (kind[:, None] * also).sum(0)
        best = _best(main, kind, also, torch.as_tensor(scores))
        return JointBeliefs(right.numpy(), best.numpy(), float(none))

    def sample(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """Labels of one question's candidates, drawn together, [draws, n]."""
        part = self._of_one(scores)
        main = torch.cat([part.log_main[0], part.log_none]).exp().numpy()
        chosen = generator.choice(len(main), draws, p=main / main.sum())
        kinds = generator.choice(KINDS, draws, p=part.log_kind.exp().numpy())
        labels = generator.random((draws, len(scores))) < part.also[:, 0].sigmoid().numpy()[kinds]
        labels[chosen == len(scores)] = False
        answered = np.flatnonzero(chosen < len(scores))
        labels[answered, chosen[answered]] = True
        return labels.astype(np.int8)

    def _of_one(self, scores: np.ndarray) -> "_Parts":
        none_known = np.zeros(len(scores), np.int8)
        questions = _side_by_side(scores, none_known, none_known)
        return _parts(torch.tensor(self.parameters, dtype=torch.float64), questions)


@dataclass(frozen=True)
class JointPicture:
    """A joint model, and where to abstain: what a ranker keeps of its dev questions."""

    parameters: tuple[float, ...]
    thresholds: dict[str, float | None]
    """For a share of answered questions whose top candidate is right: the P(right) below which to abstain."""
    n_questions: int
    n_without_answer: int

    @classmethod
    def fit(cls, probability: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> "JointPicture":
        scores = log_odds(probability)
        model = JointModel.fit(scores, labels, question_of)
        top, is_right, answerable = [], [], 0
        for number in np.unique(question_of):
            rows = question_of == number
            first = int(np.argmax(scores[rows]))
            top.append(float(model.beliefs(scores[rows]).right[first]))
            is_right.append(bool(labels[rows][first] == 1))
            answerable += bool(labels[rows].any())
        thresholds = {str(one): abstention_threshold(top, is_right, one) for one in PRECISIONS}
        return cls(model.parameters, thresholds, len(top), len(top) - answerable)

    @property
    def model(self) -> JointModel:
        return JointModel(self.parameters)


class _Questions(NamedTuple):
    """Q questions side by side, padded to the longest."""

    scores: Tensor  # [Q, n]   zero on padding
    labels: Tensor  # [Q, n]   false on padding
    real: Tensor  # [Q, n]


def _side_by_side(log_odds_of: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> _Questions:
    """In the order of the numbers of questions."""
    order = np.argsort(question_of, kind="stable")
    _, sizes = np.unique(question_of, return_counts=True)
    real = np.arange(sizes.max()) < sizes[:, None]
    scores, right = np.zeros(real.shape), np.zeros(real.shape, bool)
    scores[real], right[real] = log_odds_of[order], labels[order] == 1
    return _Questions(*map(torch.from_numpy, (scores, right, real)))


class _Parts(NamedTuple):
    log_main: Tensor  # [Q, n]
    log_none: Tensor  # [Q]
    log_kind: Tensor  # [C]
    also: Tensor  # [C, Q, n] log odds that a candidate is right beside the main answer


def _parts(parameters: Tensor, questions: _Questions) -> _Parts:
    scale, none, by_number, of_list = parameters[:4]
    also = parameters[4:].view(KINDS, 2, 1, 1)
    score_of_none = none + by_number * questions.real.sum(1).double().log()  # [Q]
    scores = (scale * questions.scores).masked_fill(~questions.real, -torch.inf)
    joint = torch.cat([scores, score_of_none[:, None]], 1).log_softmax(1)
    log_kind = torch.stack([logsigmoid(-of_list), logsigmoid(of_list)])
    return _Parts(joint[:, :-1], joint[:, -1], log_kind, also[:, 0] + also[:, 1] * questions.scores)


def _log_likelihood(parameters: Tensor, questions: _Questions) -> Tensor:
    """log P(y) of every question, [Q]."""
    part = _parts(parameters, questions)
    each = logsigmoid(torch.where(questions.labels, part.also, -part.also)) * questions.real  # [C, Q, n]
    # the main answer's own factor is taken out again: that it is right is given
    by_main = part.log_kind[:, None, None] + part.log_main + each.sum(2, keepdim=True) - each
    by_main = by_main.masked_fill(~questions.labels, LOWEST)  # not -inf, whose gradient is NaN
    some_right = by_main.permute(1, 0, 2).flatten(1).logsumexp(1)
    return torch.where(questions.labels.any(1), some_right, part.log_none)


def _best(main: Tensor, kind: Tensor, also: Tensor, scores: Tensor) -> Tensor:
    """P(i is right and no higher one is): i is the main answer, or a lower one is and i is right beside it."""
    order = scores.argsort(descending=True, stable=True)
    main, also = main[order], also[:, order]
    higher_wrong = torch.cumprod(torch.cat([torch.ones(KINDS, 1, dtype=also.dtype), 1 - also[:, :-1]], 1), 1)  # [C, n]
    lower = main.flip(0).cumsum(0).flip(0) - main  # [n] P(m is a lower one)
    best = (kind[:, None] * higher_wrong * (main + lower * also)).sum(0)
    return torch.empty_like(best).index_copy(0, order, best)


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
