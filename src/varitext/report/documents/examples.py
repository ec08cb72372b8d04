"""A few documents, short to long, with their posterior: where each lies on its strongest dimensions, and how surely."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from varitext.documents.model import Topic
from varitext.evaluation.topics import end_of_topic
from varitext.report.documents.sample import ShownDocuments
from varitext.report.drawing.style import ACCENT, MIDDLE_INK, quiet_figure
from varitext.report.escaping import for_plotly

LENGTHS = (0.08, 0.4, 0.7, 0.96)  # quantiles: the spread of the posterior is seen to shrink with the length
DIMENSIONS = 7


class Example(NamedTuple):
    row: int
    title: str
    label: str | None
    words: int
    telling_words: tuple[str, ...]


def choose_examples(shown: ShownDocuments, quantiles: Sequence[float] = LENGTHS) -> list[Example]:
    """The documents at these quantiles of length, shortest first."""
    by_length = np.argsort(shown.lengths, kind="stable")
    places = sorted({round(quantile * (len(shown) - 1)) for quantile in quantiles})
    return [_example(int(by_length[place]), shown) for place in places]


def posterior_spread(example: Example, shown: ShownDocuments, topics: list[Topic], reach: float) -> go.Figure:
    """Posterior mean and standard deviation on the dimensions where the document lies farthest from the prior.

    A dimension's sign is arbitrary, so each row is named by the end it leans to and drawn towards the right.
    `reach` is the right edge of the axis, the same for all examples so that they can be compared.
    """
    mean, std = shown.mean[example.row], shown.std[example.row]
    by_number = {topic.number: topic for topic in topics}
    strongest = np.argsort(-np.abs(mean), kind="stable")[:DIMENSIONS][::-1].tolist()
    rows = list(range(len(strongest)))
    points = go.Scatter(
        x=np.abs(mean[strongest]),
        y=rows,
        mode="markers",
        marker={"color": ACCENT, "size": 9},
        error_x={"array": std[strongest], "color": ACCENT, "thickness": 2, "width": 0},
        customdata=std[strongest],
        hovertemplate="%{x:.2f} ± %{customdata:.2f}<extra></extra>",
    )
    figure = quiet_figure([points], height=46 + 26 * len(rows))
    names = [for_plotly(", ".join(end_of_topic(by_number[k], mean[k])[:3])) for k in strongest]
    figure.update_layout(
        xaxis={"range": [min(0.0, -0.1 * reach), reach], "nticks": 6},
        yaxis={"tickvals": rows, "ticktext": names, "showgrid": False, "range": [-0.6, len(rows) - 0.4]},
    )
    figure.add_vline(x=0, line={"color": MIDDLE_INK, "width": 1})
    return figure


def common_reach(examples: list[Example], shown: ShownDocuments) -> float:
    rows = [example.row for example in examples]
    return float((np.abs(shown.mean[rows]) + shown.std[rows]).max(initial=1.0)) * 1.05


def _example(row: int, shown: ShownDocuments) -> Example:
    told = shown.telling_words[row]
    title = (shown.titles[row] if shown.titles else "") or ", ".join(told)
    label = shown.labels[row] if shown.labels else None
    return Example(row, title, label, round(float(shown.lengths[row])), told)
