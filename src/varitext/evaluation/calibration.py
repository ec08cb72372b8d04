"""Calibration of probabilities: log loss, Brier score, expected calibration error, and risk under abstention.

log loss      -1/n sum [y log p + (1 - y) log(1 - p)]
Brier          1/n sum (p - y)^2
ECE            sum_bins  n_b/n |mean p in b - share of right in b|
risk(k/n)      expected errors among the k answers of highest confidence, over k; ties in expectation over their orders

Probabilities are clipped at the machine epsilon of their type before the logarithm, as in scikit-learn. Certain and
right costs nothing; certain and wrong costs 16 nats as float32, 36 as float64, and is counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError
from varitext.evaluation.columns import binary_labels, merge_ties, numbers, question_index, same_length
from varitext.records import DictRecord

BINNINGS = ("equal-mass", "equal-width")
NONE_BINS = 10  # questions are few: with more bins, chance is all that is measured
CHANCE_DRAWS = 200


class ReliabilityCurve(NamedTuple):
    """One entry per bin that has a candidate. Bin b is (lower, upper], the first one [lower, upper]."""

    lower: np.ndarray
    upper: np.ndarray
    mean_probability: np.ndarray
    share_right: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # of candidates; a curve needs no tuple.count

    @property
    def expected_error(self) -> float:
        gaps = np.abs(self.mean_probability - self.share_right)
        return float(self.count @ gaps / self.count.sum())


class RiskCoverage(NamedTuple):
    """The share of wrong answers among those kept when the least confident are withheld."""

    coverage: np.ndarray  # 1/n, 2/n, ..., 1
    risk: np.ndarray

    @property
    def area(self) -> float:
        """Mean risk over all coverages: AURC; lower is better."""
        return float(self.risk.mean())

    def at(self, coverage: float) -> float:
        """The risk when this share of the answers is kept, or the next larger share that is possible."""
        return float(self.risk[np.searchsorted(self.coverage, coverage * (1 - 1e-12))])


class TopAnswers(NamedTuple):
    """The best answer of each question; where several are tied, `right` is their share of right ones."""

    question_ids: np.ndarray
    confidence: np.ndarray
    right: np.ndarray


@dataclass(frozen=True)
class CalibrationRecord(DictRecord):
    """Calibration over pairs of question and candidate; the risks, which come last, over each question's top answer."""

    log_loss: float
    brier: float
    ece: float
    ece_binning: str
    ece_bin_edges: tuple[float, ...]  # fewer bins than requested if probabilities are tied
    share_right: float
    mean_probability: float
    n_certain_and_wrong: int
    risk: float  # the share of wrong top answers
    risk_of_surer_half: float  # the same among the half of the questions whose top answer is most probable
    risk_coverage_area: float


def calibration_record(
    probabilities: ArrayLike, labels: ArrayLike, question_ids: ArrayLike, bins: int = 15, binning: str = "equal-mass"
) -> CalibrationRecord:
    values, right = _checked(probabilities, labels)
    curve = reliability_curve(values, right, bins, binning)
    top = top_answers(values, right, question_ids)
    risk = risk_coverage(top.confidence, top.right)
    return CalibrationRecord(
        log_loss=log_loss(probabilities, labels),
        brier=brier_score(values, right),
        ece=curve.expected_error,
        ece_binning=binning,
        ece_bin_edges=(float(curve.lower[0]), *curve.upper.tolist()),
        share_right=float(right.mean()),
        mean_probability=float(values.mean()),
        n_certain_and_wrong=int((np.abs(values - right) == 1).sum()),
        risk=risk.at(1.0),
        risk_of_surer_half=risk.at(0.5),
        risk_coverage_area=risk.area,
    )


class NoAnswerCalibration(NamedTuple):
    """P(none of the candidates is right), over questions."""

    share_without_answer: float
    mean_probability_none: float  # equal to the share, if the model is right on average
    none_log_loss: float
    none_ece: float  # over `NONE_BINS` bins of equally many questions
    none_ece_by_chance: float  # what a model with true probabilities would get on as many questions, on average


def no_answer_calibration(probability: np.ndarray, has_none: np.ndarray) -> NoAnswerCalibration:
    """The calibration of P(none) over questions, [Q]."""
    generator = np.random.default_rng(0)
    drawn = generator.random((CHANCE_DRAWS, len(probability))) < probability
    values, right = _checked(probability, has_none.astype(np.int8))
    by_chance = [curve.expected_error for curve in _curves(values, drawn, NONE_BINS, "equal-mass")]
    return NoAnswerCalibration(
        float(has_none.mean()),
        float(probability.mean()),
        log_loss(probability, right),
        expected_calibration_error(probability, right, NONE_BINS),
        float(np.mean(by_chance)),
    )


def log_loss(probabilities: ArrayLike, labels: ArrayLike) -> float:
    given = np.asarray(probabilities)
    epsilon = np.finfo(given.dtype if given.dtype.kind == "f" else float).eps
    values, right = _checked(probabilities, labels)
    of_what_happened = np.where(right == 1, values, 1 - values)
    return float(-np.log(np.clip(of_what_happened, epsilon, 1)).mean())


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    values, right = _checked(probabilities, labels)
    return float(np.square(values - right).mean())


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = 15, binning: str = "equal-mass"
) -> float:
    return reliability_curve(probabilities, labels, bins, binning).expected_error


def reliability_curve(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = 15, binning: str = "equal-mass"
) -> ReliabilityCurve:
    """Equal-mass bins end at quantiles of the probabilities, equal-width bins at 1/bins, 2/bins, ..., 1.

    Equal probabilities always share a bin, so that the order of rows does not matter; bins can then differ in mass.
    """
    values, right = _checked(probabilities, labels)
    return next(_curves(values, right[None], bins, binning))


def risk_coverage(confidence: ArrayLike, right: ArrayLike) -> RiskCoverage:
    """`right` is 0 or 1, or the chance of being right, for each answer."""
    confidence, right = numbers(confidence, "confidences"), _within_0_and_1(right, "values of right")
    same_length(confidences=confidence, right=right)
    confidence = merge_ties(confidence)
    order = np.argsort(-confidence, kind="stable")
    _, group = np.unique(-confidence[order], return_inverse=True)
    errors = (np.bincount(group, 1 - right[order]) / np.bincount(group))[group]  # every order of tied answers at once
    kept = np.arange(1, len(errors) + 1)
    return RiskCoverage(kept / len(errors), np.cumsum(errors) / kept)


def top_answers(scores: ArrayLike, labels: ArrayLike, question_ids: ArrayLike) -> TopAnswers:
    """For `risk_coverage` over questions: the probability of the best answer, and whether it is right."""
    scores, right = numbers(scores, "scores"), binary_labels(labels)
    ids, question = question_index(question_ids)
    same_length(scores=scores, labels=right, question_ids=question)
    scores = merge_ties(scores, question)
    best = np.full(len(ids), -np.inf)
    np.maximum.at(best, question, scores)
    top = scores == best[question]
    return TopAnswers(ids, best, np.bincount(question, top * right) / np.bincount(question, top))


# Inside


def _checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    values, right = _within_0_and_1(probabilities, "probabilities"), binary_labels(labels)
    same_length(probabilities=values, labels=right)
    return values, right


def _within_0_and_1(values: ArrayLike, name: str) -> np.ndarray:
    values = numbers(values, name)
    outside = np.flatnonzero((values < 0) | (values > 1))
    if len(outside):
        raise InputError(f"{name} lie between 0 and 1; row {outside[0]} has {values[outside[0]]:g}")
    return values


def _curves(values: np.ndarray, right: np.ndarray, bins: int, binning: str) -> Iterator[ReliabilityCurve]:
    """One curve for every row of labels, [S, P], of the same probabilities, [P]; these are sorted into bins once."""
    merged = merge_ties(values)
    if binning not in BINNINGS or bins < 1:
        raise InputError(f"bins are at least one and {' or '.join(BINNINGS)}, not {bins} and {binning!r}")
    last_rows = -(-np.arange(1, bins + 1) * len(values) // bins) - 1  # ceil(n b / bins) - 1
    equal_mass = binning == "equal-mass"
    upper = np.unique(np.sort(merged)[last_rows]) if equal_mass else np.arange(1, bins + 1) / bins
    bin_of = np.searchsorted(upper, merged)  # the first bin whose upper edge is not below
    count = np.bincount(bin_of, minlength=len(upper))
    used, lower = count > 0, np.concatenate([[0.0], upper[:-1]])
    said, *happened = (np.bincount(bin_of, column, len(upper))[used] / count[used] for column in (values, *right))
    for share in happened:
        yield ReliabilityCurve(lower[used], upper[used], said, share, count[used])
