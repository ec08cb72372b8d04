"""Do probabilities mean what they say, and is it worth listening when the model is unsure?"""

import numpy as np

from varitext.evaluation.calibration import ReliabilityCurve, reliability_curve, risk_coverage
from varitext.report.answers.evaluated import EvaluatedAnswers, is_best
from varitext.report.drawing.charts import Axis, Curve
from varitext.report.drawing.style import ACCENT, WARM

BINS = 10
MIN_ANSWERS = 10  # of a curve's first point: below, a single answer decides
NORMAL_95 = 1.96


def reliability_of_right(evaluated: EvaluatedAnswers) -> ReliabilityCurve:
    """Of the probability of being right: all pairs, by tenths of the probability."""
    return reliability_curve(evaluated.probability, evaluated.questions.labels, BINS, "equal-width")


def reliability_of_best(evaluated: EvaluatedAnswers) -> ReliabilityCurve:
    """Of the probability of being best, which is given that an answer is right: questions without one are left out."""
    questions = evaluated.questions
    has_right = (np.bincount(questions.groups, questions.labels) > 0)[questions.groups]
    return reliability_curve(evaluated.best[has_right], is_best(evaluated)[has_right], BINS, "equal-width")


def calibration_charts(evaluated: EvaluatedAnswers) -> list[Curve]:
    return [
        _reliability(reliability_of_right(evaluated), "right", ACCENT),
        _reliability(reliability_of_best(evaluated), "best", WARM),
    ]


def risk_curve(evaluated: EvaluatedAnswers) -> Curve:
    """Wrong first answers among those that are kept, when the questions with the least sure ones are withheld."""
    curve = risk_coverage(evaluated.top.confidence, evaluated.top.right)
    first, risk = min(MIN_ANSWERS, len(curve.risk)) - 1, curve.at(1.0)
    coverage, wrong = curve.coverage[first:], curve.risk[first:]
    return Curve(
        coverage,
        wrong,
        (
            Axis("questions answered, surest first", (0, 1.02), percent=True),
            Axis("first answer is wrong", from_zero=True, percent=True),
        ),
        [f"surest {x:.0%} of the questions: {y:.1%} wrong" for x, y in zip(coverage, wrong, strict=True)],
        reference=((0, risk), (1.02, risk)),
    )


def wilson_interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval of a share of `count` draws: honest near 0 and 1, where plus or minus is not."""
    squared = NORMAL_95**2 / count
    middle = (share + squared / 2) / (1 + squared)
    half = NORMAL_95 * np.sqrt(share * (1 - share) / count + squared / (4 * count)) / (1 + squared)
    return middle - half, middle + half


def _reliability(curve: ReliabilityCurve, what: str, colour: str) -> Curve:
    said, found = curve.mean_probability, curve.share_right
    low, high = wilson_interval(found, curve.count)
    edge = min(1.05 * float(max(said.max(), high.max())), 1.03)
    limits = (-0.03 * edge, edge)
    pairs = zip(said, found, curve.count, strict=True)
    return Curve(
        said,
        found,
        (Axis(f"probability of being {what}", limits), Axis(f"share that is {what}", limits)),
        [f"said {x:.3f}, found {y:.3f} in {count:,} pairs" for x, y, count in pairs],
        colour,
        marker=8,
        interval=(low, high),
        reference=((0, 0), (edge, edge)),
        height=380,
    )
