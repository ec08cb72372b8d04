"""The joint model of a question's candidates: which one is the main answer, or that none is, summed out exactly.

Right answers exclude each other more than they go together, and many questions have no answer among their candidates.
Probabilities of single candidates cannot express this. Here a question has a latent m, its main answer or none, and a
latent c, the kind of question (one answer, or a list of answers). With the ranker's log odds s_i:

    P(m = none) = sigmoid(b + d log n - e L)        n = sum_i w_i, L = log sum_i w_i exp(a s_i)
    P(m = i)    = (1 - P(m = none)) w_i exp(a s_i - L)
    P(y | m = i) = [y_i = 1] sum_c pi_c prod_{j != i} Bernoulli(y_j; sigmoid(r_c + t_c s_j + log w_j))
    P(y | m = none) = [y = 0]

w_i = min(1, (K / rank of i)^2) is 1 in lists as long as those that the model was fitted on: K is 1.5 times their mean
length. In longer ones, such as search results, candidates at the end hardly count. Their weights sum to less than
2 K, so a thousand more poor candidates add neither to P(none) nor to the number of right answers.

With e = 1, none would be one more candidate with the score b + d log n. But scores tell better which candidate is right
than whether any is, so the two get separate scales.

The sums over m and c are finite, so everything below is exact: no sampling, no bound. The nine parameters are fitted by
maximum likelihood on questions that the ranker was not trained on: the dev questions, and training questions without a
right answer that training left out. These and the dev questions without an answer together get the weight that such
questions have among all questions given. a and t_c stay above zero, so that P(right) falls in the order of the ranking.
A score of minus infinity is a candidate that cannot be right.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varitext.evaluation.conformal import abstention_threshold
from varitext.layers.functions import expit, functions_for
from varitext.layers.main_answer import log_main_or_none, log_probability_of_labels

if TYPE_CHECKING:
    from torch import Tensor

KINDS = 2  # of questions: with one answer, and lists
INITIAL = (1.0, 0.0, 0.5, -1.0, -3.0, 0.3, -1.0, 0.3, 1.0)  # a, b, d, log odds of a list, r_c and t_c of each kind, e
SLOPES = (0, 5, 7)  # which of these are a and t_c
FULL_LENGTHS = 1.5  # mean lengths of a list whose candidates count in full; `python -m lab long_lists` shows the effect
LOWEST_SUM = -50.0  # of L, which would be minus infinity if no candidate can be right
MIN_SLOPE = 1e-3
PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # for which a threshold is stored
PRIOR_STD = 3.0  # of each parameter around its initial value: ends the fit where the likelihood is flat


class ParameterPrior(NamedTuple):
    """A Gaussian prior of the parameters, which decides where there are too few questions to."""

    mean: tuple[float, ...] = INITIAL
    std: tuple[float, ...] = (PRIOR_STD,) * len(INITIAL)


WIDE_PRIOR = ParameterPrior()


class JointPosterior(NamedTuple):
    """The posterior of questions, in the order of their candidates; candidates with equal scores share P(best)."""

    right: np.ndarray  # [P] P(y_i = 1)
    best: np.ndarray  # [P] P(i is the right answer that ranks highest)
    none: np.ndarray  # [Q] P(no candidate is right); with `best` of its candidates it sums to one


@dataclass(frozen=True)
class JointModel:
    """The fitted parameters, in the order of `INITIAL`, and where to abstain."""

    parameters: tuple[float, ...]
    thresholds: dict[str, float | None] = field(default_factory=dict)
    """For each precision of the top candidates: the P(right) below which to abstain."""
    n_questions: int = 0  # that it was fitted on
    n_without_answer: int = 0
    share_without_answer: float | None = None  # of all questions given; None: as among those it was fitted on
    typical_length: float = 9.2  # mean number of candidates of the questions it was fitted on; WikiQA: 9.2

    @classmethod
    def fit(
        cls,
        scores: np.ndarray,
        labels: np.ndarray,
        question_of: np.ndarray,
        share: float | None = None,
        prior: ParameterPrior = WIDE_PRIOR,
    ) -> "JointModel":
        """Fit by maximum likelihood to the ranker's log odds, the labels and the question of each pair, [P].

        `share` is the share of questions without a right answer, if it is known from more questions than these.
        """
        answerable = np.bincount(np.unique(question_of, return_inverse=True)[1], labels == 1) > 0
        weights = question_weights(answerable, share)
        typical_length = len(scores) / len(answerable)
        questions = _side_by_side(scores, labels, question_of, typical_length)
        parameters = _maximum_likelihood(questions, weights, prior)
        model = cls(parameters, typical_length=typical_length)
        right = model.posterior(scores, question_of).right
        first = _first_of_each(scores, question_of)
        top, is_right = right[first], labels[first] == 1
        return replace(
            model,
            thresholds={str(one): abstention_threshold(top, is_right, one, weights) for one in PRECISIONS},
            n_questions=len(answerable),
            n_without_answer=int((~answerable).sum()),
            share_without_answer=share,
        )

    def log_likelihood(self, scores: np.ndarray, labels: np.ndarray, question_of: np.ndarray) -> np.ndarray:
        """log P(all labels) of every question, in nats."""
        import torch  # slow to import, and not needed to rank

        questions = _side_by_side(scores, labels, question_of, self.typical_length).as_tensors()
        return _log_likelihood(torch.tensor(self.parameters, dtype=torch.float64), questions).numpy()  # [Q]

    def posterior(self, scores: np.ndarray, question_of: np.ndarray | None = None) -> JointPosterior:
        """The posterior of candidates, [P], and of their questions; without `question_of` all belong to one."""
        question_of = np.zeros(len(scores), np.int64) if question_of is None else question_of
        order = np.lexsort((np.arange(len(scores)), -scores, question_of))  # each question's candidates, best first
        falling, question = scores[order], question_of[order]
        questions = _side_by_side(falling, np.zeros(len(falling), np.int8), question, self.typical_length)
        right, best, none = _posterior(_parts(np.array(self.parameters), questions))
        shared = _shared(best[questions.real], falling, question)
        return JointPosterior(_put_back(right[questions.real], order), _put_back(shared, order), none)

    def label_distributions(self, scores: np.ndarray, question_of: np.ndarray) -> "list[LabelDistribution]":
        """One for each question, in the order of their numbers; candidates in the order given."""
        questions = _side_by_side(scores, np.zeros(len(scores), np.int8), question_of, self.typical_length)
        part = _parts(np.array(self.parameters), questions)
        main, none, kind, also = np.exp(part.log_main), np.exp(part.log_none), np.exp(part.log_kind), expit(part.also)
        sizes = questions.real.sum(1).tolist()
        return [
            LabelDistribution(main[row, :size], float(none[row]), kind, also[:, row, :size])
            for row, size in enumerate(sizes)
        ]


class LabelDistribution(NamedTuple):
    """P(y) of one question's candidates, in its parts."""

    main: np.ndarray  # [n] P(m = i)
    none: float
    kind: np.ndarray  # [C]
    also: np.ndarray  # [C, n] that a candidate is right beside the main answer

    def sample(self, draws: int, generator: np.random.Generator, answerable: bool = False) -> np.ndarray:
        """Labels drawn jointly, [draws, n]; `answerable`: given that one candidate is right."""
        main = np.append(self.main, 0.0 if answerable else self.none)
        if not main.any():  # every candidate is hopeless, and one is right
            main[:-1] = 1.0
        cumulative = np.cumsum(main)
        chosen = np.searchsorted(cumulative, generator.random(draws) * cumulative[-1], side="right")
        kinds = (generator.random(draws) > self.kind[0]).astype(np.int64)
        labels: np.ndarray = generator.random((draws, len(self.main))) < self.also[kinds]
        without = chosen >= len(self.main)
        labels[without] = False
        labels[np.flatnonzero(~without), chosen[~without]] = True
        return labels.astype(np.int8)


def _maximum_likelihood(given: "_Questions", weights: np.ndarray, prior: ParameterPrior) -> tuple[float, ...]:
    import torch  # slow to import, and not needed to rank
    from scipy.optimize import minimize

    questions, weight_of = given.as_tensors(), torch.from_numpy(weights)
    mean, std = (torch.tensor(values, dtype=torch.float64) for values in prior)

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        parameters = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        log_likelihood = (weight_of * _log_likelihood(parameters, questions)).sum()
        loss = 0.5 * (((parameters - mean) / std) ** 2).sum() - log_likelihood
        (gradient,) = torch.autograd.grad(loss, parameters)
        return float(loss.detach()), gradient.numpy()

    bounds = [(MIN_SLOPE if place in SLOPES else None, None) for place in range(len(INITIAL))]
    found = minimize(objective, np.array(prior.mean), jac=True, method="L-BFGS-B", bounds=bounds)
    return tuple(found.x.tolist())


class _Questions(NamedTuple):
    """Q questions side by side, padded to the longest: arrays, or tensors for a fit."""

    scores: Any  # [Q, n]   zero on padding
    labels: Any  # [Q, n]   false on padding
    weights: Any  # [Q, n]   w; zero on padding
    real: Any  # [Q, n]

    def as_tensors(self) -> "_Questions":
        import torch  # slow to import, and not needed to rank

        return _Questions(*map(torch.from_numpy, self))


def _side_by_side(
    log_odds_of: np.ndarray, labels: np.ndarray, question_of: np.ndarray, typical_length: float
) -> _Questions:
    """Questions in the order of their numbers; candidates in the order given."""
    order = np.argsort(question_of, kind="stable")
    _, sizes = np.unique(question_of, return_counts=True)
    real = np.arange(sizes.max()) < sizes[:, None]
    scores, right, weights = np.zeros(real.shape), np.zeros(real.shape, bool), np.zeros(real.shape)
    scores[real], right[real] = log_odds_of[order], labels[order] == 1
    weights[real] = _weights_by_rank(log_odds_of, question_of, FULL_LENGTHS * typical_length)[order]
    return _Questions(scores, right, weights, real)


def _weights_by_rank(scores: np.ndarray, question_of: np.ndarray, full: float) -> np.ndarray:
    """w, [P]; candidates with equal scores have the same weight."""
    order = np.lexsort((-scores, question_of))
    _, first, sizes = np.unique(question_of[order], return_index=True, return_counts=True)
    ranks = np.arange(1, len(scores) + 1) - np.repeat(first, sizes)
    weights = _shared(np.minimum(1.0, (full / ranks) ** 2), scores[order], question_of[order])
    return _put_back(weights, order)


class _Parts(NamedTuple):
    """Arrays, or tensors for a fit."""

    log_main: Any  # [Q, n]
    log_none: Any  # [Q]
    log_kind: Any  # [C]
    also: Any  # [C, Q, n] log odds that a candidate is right beside the main answer


def _parts(parameters: "np.ndarray | Tensor", questions: _Questions) -> _Parts:
    of = functions_for(parameters)
    scale, none, by_number, of_list = parameters[:4]
    also, by_scores = parameters[4:8].reshape(KINDS, 2, 1, 1), parameters[8]
    scores, weights = scale * questions.scores, questions.weights
    total = of.logsumexp(scores + of.log(weights)).clip(LOWEST_SUM)  # [Q]   L
    score_of_none = none + by_number * of.log(weights.sum(1)) + (1 - by_scores) * total  # [Q]
    log_main, log_none = log_main_or_none(scores, score_of_none, weights)
    log_kind = of.stack([of.logsigmoid(-of_list), of.logsigmoid(of_list)])
    log_weights = of.log(of.where(questions.real, weights, 1.0))
    return _Parts(log_main, log_none, log_kind, also[:, 0] + also[:, 1] * questions.scores + log_weights)


def _log_likelihood(parameters: "Tensor", questions: _Questions) -> "Tensor":
    """log P(y) of every question, [Q]."""
    part, number = _parts(parameters, questions), questions.real.double()
    by_kind = log_probability_of_labels(part.log_main, part.log_none, part.also, questions.labels, number)  # [C, Q]
    found: Tensor = (part.log_kind[:, None] + by_kind).logsumexp(0)
    return found


def _posterior(part: _Parts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P(right) and P(best), [Q, n], and P(none), [Q], of candidates in falling order.

    i is the best if it is the main answer and no higher one is right beside it, or if a lower one is the main answer
    and i is the highest that is right beside that.
    """
    main, none = np.exp(part.log_main), np.exp(part.log_none)
    kind, also = np.exp(part.log_kind)[:, None, None], expit(part.also)  # [C, 1, 1], [C, Q, n]
    right = main + (1 - none[:, None] - main).clip(0) * (kind * also).sum(0)
    higher_wrong = np.cumprod(np.concatenate([np.ones_like(also[..., :1]), 1 - also[..., :-1]], -1), -1)
    lower = main[:, ::-1].cumsum(1)[:, ::-1] - main  # [Q, n] P(m is a lower one)
    best = (kind * higher_wrong * (main + lower * also)).sum(0)
    return right, np.minimum(best, right), none  # both are the same sum for the top one: ignore rounding


def _shared(best: np.ndarray, falling: np.ndarray, question: np.ndarray) -> np.ndarray:
    """Candidates with equal scores have no order: each gets the mean of their P(best)."""
    new = np.ones(len(falling), bool)
    new[1:] = (falling[1:] != falling[:-1]) | (question[1:] != question[:-1])
    group = np.cumsum(new) - 1
    return np.asarray((np.bincount(group, best) / np.bincount(group))[group])


def _put_back(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    back = np.empty_like(values)
    back[order] = values
    return back


def question_weights(answerable: np.ndarray, share: float | None) -> np.ndarray:
    """Weights of questions: those without a right answer get this `share` of the total; answerable ones weigh 1."""
    n_with, n_without = int(answerable.sum()), int((~answerable).sum())
    if share is None or not (n_with and n_without and 0 < share < 1):
        return np.ones(len(answerable))
    return np.where(answerable, 1.0, n_with * share / (1 - share) / n_without)


def _first_of_each(scores: np.ndarray, question_of: np.ndarray) -> np.ndarray:
    """Where the highest score of each question is, [Q]."""
    order = np.lexsort((-scores, question_of))
    return np.asarray(order[np.unique(question_of[order], return_index=True)[1]])
