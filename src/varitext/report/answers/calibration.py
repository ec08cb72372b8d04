"""Do probabilities mean what they say, and is it worth listening when the model is unsure?"""

import numpy as np
import plotly.graph_objects as go

from varitext.evaluation.calibration import ReliabilityCurve, reliability_curve, risk_coverage
from varitext.report.answers.evaluated import JudgedAnswers, is_best
from varitext.report.drawing.style import ACCENT, MIDDLE_INK, WARM, quiet_figure

BINS = 10
FEWEST_ANSWERS = 10  # of a curve's first point: below, a single answer decides
HEIGHT = 380
NORMAL_95 = 1.96


def reliability_of_right(judged: JudgedAnswers) -> go.Figure:
    """Of the probability of being right: all pairs, by tenths of the probability."""
    curve = reliability_curve(judged.probability, judged.questions.labels, BINS, "equal-width")
    return _reliability(curve, "probability of being right", "share that is right", ACCENT)


def reliability_of_best(judged: JudgedAnswers) -> go.Figure:
    """Of the probability of being best, which is given that an answer is right: questions without one are left out."""
    has_right = (np.bincount(judged.questions.groups, judged.questions.labels) > 0)[judged.questions.groups]
    curve = reliability_curve(judged.best[has_right], is_best(judged)[has_right], BINS, "equal-width")
    return _reliability(curve, "probability of being best", "share that is best", WARM)


def risk_curve(judged: JudgedAnswers) -> go.Figure:
    """Wrong first answers among those that are kept, when the questions with the least sure ones are withheld."""
    curve = risk_coverage(judged.top.confidence, judged.top.right)
    first = min(FEWEST_ANSWERS, len(curve.risk)) - 1
    line = go.Scatter(
        x=curve.coverage[first:],
        y=curve.risk[first:],
        mode="lines",
        line={"color": ACCENT, "width": 2},
        hovertemplate="surest %{x:.0%} of the questions: %{y:.1%} wrong<extra></extra>",
    )
    figure = quiet_figure([line], height=300)
    figure.update_layout(
        xaxis={"title": {"text": "questions answered, surest first"}, "range": [0, 1.02], "tickformat": ".0%"},
        yaxis={"title": {"text": "first answer is wrong"}, "rangemode": "tozero", "tickformat": ".0%"},
    )
    figure.add_hline(y=curve.at(1.0), line={"color": MIDDLE_INK, "width": 1, "dash": "dash"})
    return figure


def wilson_interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval of a share of `count` draws: honest near 0 and 1, where plus or minus is not."""
    squared = NORMAL_95**2 / count
    middle = (share + squared / 2) / (1 + squared)
    half = NORMAL_95 * np.sqrt(share * (1 - share) / count + squared / (4 * count)) / (1 + squared)
    return middle - half, middle + half


def _reliability(curve: ReliabilityCurve, said: str, found: str, colour: str) -> go.Figure:
    low, high = wilson_interval(curve.share_right, curve.count)
    edge = min(1.05 * float(max(curve.mean_probability.max(), high.max())), 1.03)
    honest = go.Scatter(x=[0, edge], y=[0, edge], mode="lines", hoverinfo="skip")
    honest.update(line={"color": MIDDLE_INK, "width": 1, "dash": "dash"})
    points = go.Scatter(
        x=curve.mean_probability,
        y=curve.share_right,
        mode="lines+markers",
        line={"color": colour, "width": 1.5},
        marker={"color": colour, "size": 8},
        error_y={
            "array": np.maximum(high - curve.share_right, 0),
            "arrayminus": np.maximum(curve.share_right - low, 0),
            "color": colour,
            "thickness": 2,
            "width": 0,
        },
        customdata=curve.count,
        hovertemplate="said %{x:.3f}, found %{y:.3f} in %{customdata} pairs<extra></extra>",
    )
    figure = quiet_figure([honest, points], HEIGHT)
    around = [-0.03 * edge, edge]
    figure.update_layout(
        xaxis={"title": {"text": said}, "range": around}, yaxis={"title": {"text": found}, "range": around}
    )
    return figure
