"""Charts as plain records: what is drawn and how it is labelled, before any library draws it.

`interactive.py` draws them with plotly, for the page; `static.py` with matplotlib, for files. Texts are plain, but for
hover texts, in which plotly reads a little HTML: other people's words are escaped in them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from varitext.report.drawing.style import ACCENT


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
