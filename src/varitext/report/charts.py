"""Charts as plain records, before any library draws them; their colours, their text, and the curves of training.

`page.py` draws them with plotly, `drawing.py` with matplotlib. Texts are plain, except hover texts, in which plotly
reads a little HTML: other people's words are escaped in them.
"""

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

# Text

# Controls, lone surrogates (which no file can hold) and marks that turn the direction of the text after them.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def printable(text: str) -> str:
    """Without what no file can hold or what would turn the direction of the text after it."""
    return _UNPRINTABLE.sub(" ", text)


def one_line(text: object, longest: int = 160) -> str:
    """Printable text on one line, cut at a word if it is long."""
    line = " ".join(printable(str(text)).split())
    if len(line) <= longest:
        return line
    start, space, _ = line[:longest].rpartition(" ")
    return (start if space else line[: longest - 1]) + "…"


def for_plotly(text: object) -> str:
    """Safe where plotly reads a little HTML (<b>, <br>, <a>): names, ticks, annotations, hover texts.

    Quotes stay: plotly knows `&lt;` and `&amp;` but would show `&quot;` as it stands.
    """
    return html.escape(one_line(text), quote=False)


def wrapped_for_plotly(text: object, width: int = 48, lines: int = 4) -> str:
    """The same on several lines: plotly does not wrap hover texts itself."""
    wrapped = textwrap.wrap(one_line(text), width, max_lines=lines, placeholder=" …")
    return "<br>".join(map(for_plotly, wrapped))


def for_script(json_text: str) -> str:
    """JSON inside a <script> element: without these three characters no tag or comment can begin or end in it."""
    return json_text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


# Colours

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
INK = "#30363d"  # on white
MIDDLE_INK = "#717882"  # readable on white and on near-black; the page swaps in its own ink
ACCENT = "#3f7cd6"
WARM = "#d9772e"
FAINT = "#8b929c"

# Ten hues, each strong and then light: neighbours in the list differ in hue, all are mid-tones.
PALETTE = (
    *("#3b6fd4", "#d9722e", "#2e9a5b", "#cf4452", "#8459c9", "#1496a8", "#b8901c", "#c94f94", "#6f8a26", "#94694d"),
    *("#7fa3ee", "#f0a878", "#74c69b", "#ee8b93", "#b79ae6", "#6cc7d4", "#dcc05f", "#e791c0", "#a8c063", "#c4a084"),
)


# Charts


class Axis(NamedTuple):
    title: str = ""
    limits: tuple[float, float] | None = None  # else what the values need
    from_zero: bool = False
    percent: bool = False
    names: Sequence[str] = ()  # of 0, 1, 2 and so on, in place of numbers


def shown_names(axis: Axis, most: int = 6) -> list[int]:
    """Which of the names find room: the first, the last, and some between."""
    return sorted({round(place) for place in np.linspace(0, len(axis.names) - 1, min(most, len(axis.names)))})


class Note(NamedTuple):
    """A text with a line to its point, above it or below, on its right or on its left."""

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


class NamedSpot(NamedTuple):
    name: str
    x: float
    y: float


class ColumnValues(NamedTuple):
    """A value for each document: of a column, or bins of dates whose names sort in the order of time."""

    column: str
    values: Sequence[object]
    over_time: bool = False


@dataclass(frozen=True, eq=False)
class Intervals:
    """Named rows from the top down: a value each, and its interval, which is empty where there is none."""

    names: Sequence[str]
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    colours: Sequence[str]
    hover: Sequence[str]
    axis: Axis
    row_height: int = 30
    zero_line: bool = False

    @property
    def height(self) -> int:
        return self.row_height * len(self.names) + (62 if self.axis.title else 46)


@dataclass(frozen=True, eq=False)
class Curve:
    """Points joined by a line, with what helps to read it."""

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
    height: int = 300


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars side by side, numbered from one."""

    values: Sequence[float]
    colours: Sequence[str]
    hover: Sequence[str]
    axes: tuple[Axis, Axis]
    height: int = 260


@dataclass(frozen=True, eq=False)
class Map:
    """Dots of several colours, and names written among them; its axes have no meaning and are not shown."""

    places: np.ndarray  # [D, 2]
    groups: Sequence[Group]
    spots: Sequence[NamedSpot] = ()
    hover: Sequence[str] = ()
    dot: float = 5.0  # pixels
    title: str = ""
    height: int = 640


Chart = Intervals | Curve | Bars | Map


# Training curves

History = Sequence[dict[str, Any]]


class Measure(NamedTuple):
    """A column of the history, and how it is shown."""

    column: str
    axis: str
    colour: str
    format: str  # of one value
    kept: str = ""  # "min" or "max" where a round was kept for the sake of it
    of_kl: bool = False  # from zero, and shaded while the KL's weight in the loss was still rising


DOCUMENT_CURVES = (
    Measure("dev_perplexity", "held-out perplexity", ACCENT, ",.1f", kept="min"),
    Measure("dev_elbo_per_word", "log p(X) or its bound, nats per word", ACCENT, ".3f"),
    Measure("dev_kl", "KL, nats per document", WARM, ".2f", of_kl=True),
)
ANSWER_CURVES = (
    Measure("dev_map", "dev MAP", ACCENT, ".4f", kept="max"),
    Measure("dev_log_loss", "dev log loss, nats per pair", ACCENT, ".4f"),
    Measure("dev_kl", "KL, nats per pair", WARM, ".3g", of_kl=True),
    Measure("posterior_prior_gap", "posterior less prior path, nats", WARM, ".3g", of_kl=True),
)


def answer_measures(has_latent: bool) -> tuple[Measure, ...]:
    """Without a latent there is no KL, and one path."""
    return ANSWER_CURVES if has_latent else tuple(one for one in ANSWER_CURVES if not one.of_kl)


def training_curves(history: History, measures: Sequence[Measure], kept: float | None = None) -> list[Curve]:
    """One for each measure that the history has more than one value of.

    `kept` is the value of the round that was kept, where that may not be the best one.
    """
    curves = [(measure, values_by_epoch(history, measure.column)) for measure in measures]
    return [_training_curve(measure, *values, history, kept) for measure, values in curves if len(values[0]) > 1]


def values_by_epoch(history: History, column: str) -> tuple[list[float], list[float]]:
    """Epochs and values; `partial_fit` counts its epochs from the start, so they are added up."""
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


def _training_curve(
    measure: Measure, epochs: list[float], values: list[float], history: History, kept: float | None
) -> Curve:
    full_weight = next((x for x, r in zip(epochs, history, strict=False) if r.get("kl_weight", 1) >= 1), 0)
    return Curve(
        np.array(epochs),
        np.array(values),
        (Axis("epoch"), Axis(measure.axis, from_zero=measure.of_kl)),
        [f"epoch {epoch:.3g}: {value:{measure.format}}" for epoch, value in zip(epochs, values, strict=True)],
        measure.colour,
        marker=5,
        shaded_until=full_weight if measure.of_kl else 0,
        note=_kept(measure, epochs, values, kept) if measure.kept else None,
    )


def _kept(measure: Measure, epochs: list[float], values: list[float], kept: float | None) -> Note:
    best = min(values) if measure.kept == "min" else max(values)
    value = kept if kept in values else best
    epoch = epochs[values.index(value)]
    right = epoch < (epochs[0] + epochs[-1]) / 2
    return Note(epoch, value, f"kept: {value:{measure.format}}", above=measure.kept == "min", right=right)
