"""Scales for drawn plots: from values to pixels, with ticks at round numbers."""

import math
from html import unescape
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from varitext.report.drawing.shapes import width_of

TICKS = 6  # about
PADDING = 0.04  # of the values' range, on each side
TICK_SIZE = 11.0


class Tick(NamedTuple):
    value: float
    label: str


class Axis(NamedTuple):
    """One axis of a plot: which values it shows, and where."""

    low: float
    high: float
    start: float  # pixels at `low`
    end: float
    ticks: tuple[Tick, ...]
    title: str
    grid: bool

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def between(self, start: float, end: float) -> "Axis":
        return self._replace(start=start, end=end)

    @property
    def label_width(self) -> float:
        return max((width_of(tick.label, TICK_SIZE) for tick in self.ticks), default=0.0)


def axis_for(layout: go.layout.XAxis | go.layout.YAxis, values: np.ndarray) -> Axis:
    """The axis that plotly would show for these values, not placed yet."""
    low, high = layout.range or _range_of(values, layout.rangemode == "tozero")
    hidden = layout.visible is False
    ticks = () if hidden else _ticks(layout, low, high)
    title = unescape(layout.title.text or "")
    return Axis(float(low), float(high), 0.0, 1.0, ticks, title, grid=not hidden and layout.showgrid is not False)


def round_ticks(low: float, high: float, number: int = TICKS) -> tuple[Tick, ...]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / number
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))
    multiples = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return tuple(Tick(step * multiple, f"{round(step * multiple, 12):,.6g}") for multiple in multiples)


def _range_of(values: np.ndarray, from_zero: bool) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    low, high = (min(low, 0.0), max(high, 0.0)) if from_zero else (low, high)
    room = PADDING * (high - low) or 0.5 * abs(high) or 0.5
    return low - (0.0 if from_zero and low == 0 else room), high + room


def _ticks(layout: go.layout.XAxis | go.layout.YAxis, low: float, high: float) -> tuple[Tick, ...]:
    if layout.tickvals is None:
        shown = round_ticks(low, high)
        if layout.tickformat and layout.tickformat.endswith("%"):
            return tuple(Tick(tick.value, f"{tick.value:.0%}") for tick in shown)
        return shown
    labels = layout.ticktext or layout.tickvals
    return tuple(Tick(float(value), unescape(str(label))) for value, label in zip(layout.tickvals, labels, strict=True))
