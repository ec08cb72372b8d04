"""Topics by the values of a column: each of the largest topics by class, or over time, with intervals."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from varitext.documents.model import DocumentModel
from varitext.documents.topic_records import TopicShare
from varitext.evaluation.keywords import DistinctWords
from varitext.evaluation.shares import NO_VALUE
from varitext.report.drawing.charts import Axis, Chart, Curve, Intervals
from varitext.report.drawing.style import ACCENT
from varitext.report.escaping import for_plotly, one_line

MAX_TOPICS = 12
MAX_VALUES = 30  # classes, the most frequent; all others are one
SHOWN_VALUES = 8  # of a topic, those in which it is most frequent
OTHERS = "all others"


class ColumnValues(NamedTuple):
    """A value for each document: of a column, or bins of dates whose names sort in the order of time."""

    column: str
    values: Sequence[object]
    over_time: bool = False


class Breakdown(NamedTuple):
    column: str
    over_time: bool
    charts: list[Chart]
    words: list[DistinctWords]


def breakdown(model: DocumentModel, documents: Any, column: ColumnValues) -> Breakdown | None:
    """None where there is nothing to compare: a single value."""
    values = [one_line(value, 60) if value not in (None, "") else NO_VALUE for value in column.values]
    if not column.over_time:
        values = _frequent(values)
    if len(set(values)) < 2:
        return None
    shares: Sequence[TopicShare] = model.topic_shares(documents, values)
    if column.over_time:  # documents without a date have no place on the line
        shares = [one for one in shares if one.value != NO_VALUE]
    words = [] if column.over_time else model.distinct_words(documents, values)
    return Breakdown(column.column, column.over_time, _charts(shares, column.over_time), words)


def _frequent(values: list[str]) -> list[str]:
    """The rarest are put together if there are too many."""
    common = Counter(values).most_common()
    if len(common) <= MAX_VALUES:
        return values
    kept = {value for value, _ in common[: MAX_VALUES - 1]}
    return [value if value in kept else OTHERS for value in values]


def _charts(shares: Sequence[TopicShare], over_time: bool) -> list[Chart]:
    by_topic: dict[int, list[TopicShare]] = defaultdict(list)
    for share in shares:
        by_topic[share.topic].append(share)
    largest = sorted(by_topic.values(), key=lambda found: -sum(one.documents for one in found))[:MAX_TOPICS]
    reach = 1.05 * max((one.high for found in largest for one in found), default=1.0)
    return [_over_time(found) if over_time else _by_class(found, min(reach, 1.0)) for found in largest]


def _by_class(found: list[TopicShare], reach: float) -> Intervals:
    shown = sorted(found, key=lambda one: -one.share)[:SHOWN_VALUES]
    share, low, high = (np.array([getattr(one, name) for one in shown]) for name in ("share", "low", "high"))
    axis = Axis(one_line(found[0].name, 60), limits=(0, reach), percent=True)
    return Intervals([one.value for one in shown], share, low, high, [ACCENT] * len(shown), _hover(shown), axis, 24)


def _over_time(found: list[TopicShare]) -> Curve:
    share, low, high = (np.array([getattr(one, name) for one in found]) for name in ("share", "low", "high"))
    axes = (
        Axis(one_line(found[0].name, 60), names=[one.value for one in found]),
        Axis("", from_zero=True, percent=True),
    )
    return Curve(
        np.arange(len(found), dtype=float), share, axes, _hover(found), marker=5, interval=(low, high), height=240
    )


def _hover(shown: Sequence[TopicShare]) -> list[str]:
    return [
        f"{for_plotly(one.value)}: {one.share:.1%} [{one.low:.1%}, {one.high:.1%}]<br>"
        f"{one.documents:,} of {one.of:,} documents"
        for one in shown
    ]
