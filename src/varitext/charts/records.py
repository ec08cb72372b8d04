"""Charts as plain records, independent of the drawing library; also their text and the training curves.

`plotly_figures.py` draws charts with plotly, `report/drawing.py` with matplotlib. Texts are plain, except hover
texts: plotly reads a little HTML in them, so words from documents are escaped there.
"""

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from varitext.charts.colours import ACCENT, WARM
from varitext.charts.labels import PlacedName

# Text

# Controls, lone surrogates (which no file can hold) and marks that change the direction of the text after them.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def printable(text: str) -> str:
    """The text without characters that a file cannot hold or that change the direction of the text after them."""
    return _UNPRINTABLE.sub(" ", text)


def one_line(text: object, longest: int = 160) -> str:
    """Printable text on one line, cut at a word if it is long."""
    line = " ".join(printable(str(text)).split())
    if len(line) <= longest:
        return line
    start, space, _ = line[:longest].rpartition(" ")
    return (start if space else line[: longest - 1]) + "…"


def for_plotly(text: object) -> str:
    """Escape text where plotly interprets some HTML (<b>, <br>, <a>): names, ticks, annotations, hover texts.

    Quotes stay as they are: plotly decodes `&lt;` and `&amp;`, but shows `&quot;` literally.
    """
    return html.escape(one_line(text), quote=False)


def wrapped_for_plotly(text: object, width: int = 48, lines: int = 4) -> str:
    """As `for_plotly`, on several lines, because plotly does not wrap hover texts."""
    wrapped = textwrap.wrap(one_line(text), width, max_lines=lines, placeholder=" …")
    return "<br>".join(map(for_plotly, wrapped))


# Charts

TITLE = 24  # pixels above a chart


class ColumnValues(NamedTuple):
    """One value per document: from a column, or names of date bins that sort in order of time."""

    column: str
    values: Sequence[object]
    over_time: bool = False


class Axis(NamedTuple):
    title: str = ""
    limits: tuple[float, float] | None = None  # None: chosen to fit the values
    from_zero: bool = False
    percent: bool = False
    names: Sequence[str] = ()  # of 0, 1, 2, ... instead of numbers

    def shown_names(self, most: int = 6) -> list[int]:
        """Indices of the names to show: the first, the last, and some in between."""
        return sorted({round(place) for place in np.linspace(0, len(self.names) - 1, min(most, len(self.names)))})


class Note(NamedTuple):
    """A text with a line to its point."""

    x: float
    y: float
    text: str
    above: bool
    right: bool


class Group(NamedTuple):
    """Documents of one colour."""

    name: str
    rows: np.ndarray
    colour: str


@dataclass(frozen=True, eq=False)
class Intervals:
    """Named rows, the first on top, each with a value and its interval, which is empty if there is none."""

    names: Sequence[str]
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    colours: Sequence[str]
    hover: Sequence[str]
    axis: Axis
    row_height: int = 30
    zero_line: bool = False
    title: str = ""  # above the chart, as in all charts

    @property
    def height(self) -> int:
        return self.row_height * len(self.names) + (62 if self.axis.title else 46) + (TITLE if self.title else 0)


@dataclass(frozen=True, eq=False)
class Curve:
    """Points joined by a line, which is broken where y is NaN."""

    x: np.ndarray
    y: np.ndarray
    axes: tuple[Axis, Axis]
    hover: Sequence[str]
    colour: str = ACCENT
    marker: int = 0  # pixels
    interval: tuple[np.ndarray, np.ndarray] | None = None  # of y: low, high
    reference: tuple[tuple[float, float], tuple[float, float]] | None = None  # a dashed line from point to point
    shaded_until: float = 0.0  # from x = 0
    note: Note | None = None
    title: str = ""
    height: int = 300


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars side by side, numbered from one."""

    values: Sequence[float]
    colours: Sequence[str]
    hover: Sequence[str]
    axes: tuple[Axis, Axis]
    title: str = ""
    height: int = 260


@dataclass(frozen=True, eq=False)
class Map:
    """Dots of several colours with names among them; its axes have no meaning and are not shown."""

    places: np.ndarray  # [D, 2]
    groups: Sequence[Group]
    spots: Sequence[PlacedName] = ()
    hover: Sequence[str] = ()
    dot: float = 5.0  # pixels
    title: str = ""
    height: int = 640


Chart = Intervals | Curve | Bars | Map


# Training curves


class Measure(NamedTuple):
    """A column of the training history, and how to show it."""

    column: str
    title: str
    colour: str
    format: str  # of one value
    kept: str = ""  # "min" or "max" if this measure chose the epoch that was kept
    of_kl: bool = False  # from zero, and shaded while the weight of the KL in the loss was still rising


DOCUMENT_CURVES = (
    Measure("dev_perplexity", "held-out perplexity", ACCENT, ",.1f", kept="min"),
    Measure("dev_elbo_per_word", "log p(X) or its bound, nats per word", ACCENT, ".3f"),
    Measure("dev_kl", "KL, nats per document", WARM, ".2f", of_kl=True),
)
ANSWER_CURVES = (
    Measure("dev_map", "dev MAP", ACCENT, ".4f", kept="max"),
    Measure("dev_log_loss", "dev log loss, nats per pair", ACCENT, ".4f"),
    Measure("dev_kl", "KL, nats per pair", WARM, ".3g", of_kl=True),
    Measure("posterior_prior_gap", "posterior-prior gap, nats per pair", WARM, ".3g", of_kl=True),
)


def training_curves(
    history: Sequence[dict[str, Any]], measures: Sequence[Measure], kept: float | None = None
) -> list[Curve]:
    """One curve per measure that has more than one value in the history.

    `kept` is the value of the epoch that was kept, which need not be the best one.
    """
    curves = []
    for measure in measures:
        epochs, values = _values_by_epoch(history, measure.column)
        if len(epochs) > 1:
            full_weight = next((x for x, r in zip(epochs, history, strict=False) if r.get("kl_weight", 1) >= 1), 0)
            curve = Curve(
                np.array(epochs),
                np.array(values),
                (Axis("epoch"), Axis(from_zero=measure.of_kl)),
                [f"epoch {epoch:.3g}: {value:{measure.format}}" for epoch, value in zip(epochs, values, strict=True)],
                measure.colour,
                marker=5,
                shaded_until=full_weight if measure.of_kl else 0,
                note=_kept_epoch(measure, epochs, values, kept) if measure.kept else None,
                title=measure.title,
            )
            curves.append(curve)
    return curves


def _values_by_epoch(history: Sequence[dict[str, Any]], column: str) -> tuple[list[float], list[float]]:
    """Epochs and values; `partial_fit` counts its epochs from zero again, so they are added up."""
    epochs: list[float] = []
    values: list[float] = []
    before = offset = 0.0
    for record in history:
        epoch = record.get("epoch", before)
        if epoch < before:
            offset += before
        before = epoch
        if column in record:
            epochs.append(offset + before)
            values.append(record[column])
    return epochs, values


def _kept_epoch(measure: Measure, epochs: list[float], values: list[float], kept: float | None) -> Note:
    best = min(values) if measure.kept == "min" else max(values)
    value = kept if kept in values else best
    epoch = epochs[values.index(value)]
    right = epoch < (epochs[0] + epochs[-1]) / 2
    return Note(epoch, value, f"kept: {value:{measure.format}}", above=measure.kept == "min", right=right)
