"""Plotly's figures as drawings, so that a saved figure and the page's are one: the same traces, axes and notes.

It knows what the figures of the report are made of: lines, markers with error bars, bars, shaded spans, notes.
"""

from collections.abc import Iterable, Sequence
from html import unescape
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from varitext.report.drawing.axes import TICK_SIZE, Axis, axis_for
from varitext.report.drawing.shapes import Drawing, shortened, width_of
from varitext.report.drawing.style import ACCENT, MIDDLE_INK

PANEL_WIDTH = 520.0
TITLE_HEIGHT = 40.0
GAP = 26.0
LEGEND_LINE = 18.0
GRID = "#dfe2e6"
TEXT_INK = "#30363d"


class Frame(NamedTuple):
    left: float
    top: float
    width: float
    height: float


def plot(title: str, figures: Sequence[go.Figure], width: float = PANEL_WIDTH, columns: int = 2) -> Drawing:
    """The figures as panels, side by side; a legend below where their traces have names."""
    columns = min(columns, len(figures))
    rows = [figures[start : start + columns] for start in range(0, len(figures), columns)]
    heights = [max(float(figure.layout.height) for figure in row) for row in rows]
    legend = [trace for figure in figures for trace in figure.data if trace.name]
    whole = columns * width + (columns + 1) * GAP
    per_line = max(1, int((whole - 2 * GAP) // _legend_width(legend)))
    height = TITLE_HEIGHT + sum(heights) + GAP * len(rows) + LEGEND_LINE * -(-len(legend) // per_line)
    drawing, top = Drawing(whole, height, title), TITLE_HEIGHT
    drawing.text(GAP, 26, shortened(title, 16, whole - 2 * GAP), 16, "bold")
    for row, row_height in zip(rows, heights, strict=True):
        for place, figure in enumerate(row):
            _draw_panel(drawing, figure, Frame(GAP + place * (width + GAP), top, width, row_height))
        top += row_height + GAP
    _draw_legend(drawing, legend, per_line, top)
    return drawing


def _draw_panel(drawing: Drawing, figure: go.Figure, frame: Frame) -> None:
    x, y = (axis_for(layout, values) for layout, values in zip(_layouts(figure), _values(figure.data), strict=True))
    x, y = _placed(x, y, frame, equal=figure.layout.yaxis.scaleanchor is not None)
    _draw_axes(drawing, x, y)
    for shape in figure.layout.shapes:
        _draw_shape(drawing, shape, x, y)
    for trace in figure.data:
        (_draw_bars if trace.type == "bar" else _draw_scatter)(drawing, trace, x, y)
    for note in figure.layout.annotations:
        _draw_note(drawing, note, x, y)


def _layouts(figure: go.Figure) -> tuple[go.layout.XAxis, go.layout.YAxis]:
    return figure.layout.xaxis, figure.layout.yaxis


def _values(traces: Iterable[go.Scatter | go.Bar]) -> tuple[np.ndarray, np.ndarray]:
    """All that the axes must hold, ends of error bars and of bars included."""
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for trace in traces:
        for one, name in zip(found, ("x", "y"), strict=True):
            below, above = _error_ends(trace, name)
            one += [below, above]
            if trace.type == "bar":
                along = name == _length_axis(trace)
                one.append(np.zeros(1) if along else np.concatenate([below - 0.6, above + 0.6]))
    return tuple(np.concatenate(one) if one else np.zeros(0) for one in found)


def _error_ends(trace: go.Scatter | go.Bar, name: str) -> tuple[np.ndarray, np.ndarray]:
    values, error = _numbers(trace[name]), trace[f"error_{name}"]
    if error.array is None:
        return values, values
    above = _numbers(error.array)
    return values - (above if error.arrayminus is None else _numbers(error.arrayminus)), values + above


def _placed(x: Axis, y: Axis, frame: Frame, equal: bool) -> tuple[Axis, Axis]:
    left = frame.left + (y.label_width + 8 if y.ticks else 0) + (22 if y.title else 0)
    bottom = frame.top + frame.height - (20 if x.ticks else 4) - (20 if x.title else 0)
    x, y = x.between(left, frame.left + frame.width - 8), y.between(bottom, frame.top + 8)
    if equal:  # one unit is as long across as it is up
        unit = min((x.end - x.start) / (x.high - x.low), (y.start - y.end) / (y.high - y.low))
        x = x.between(*_around((x.start + x.end) / 2, unit * (x.high - x.low)))
        y = y.between(*_around((y.start + y.end) / 2, -unit * (y.high - y.low)))
    return x, y


def _around(middle: float, length: float) -> tuple[float, float]:
    return middle - length / 2, middle + length / 2


def _draw_axes(drawing: Drawing, x: Axis, y: Axis) -> None:
    for tick in x.ticks:
        if x.grid:
            drawing.line([(x.at(tick.value), y.start), (x.at(tick.value), y.end)], GRID)
        drawing.text(x.at(tick.value), y.start + 16, tick.label, TICK_SIZE, anchor="middle", fill=MIDDLE_INK)
    for tick in y.ticks:
        if y.grid:
            drawing.line([(x.start, y.at(tick.value)), (x.end, y.at(tick.value))], GRID)
        drawing.text(x.start - 6, y.at(tick.value) + 4, tick.label, TICK_SIZE, anchor="end", fill=MIDDLE_INK)
    if x.title:
        drawing.text((x.start + x.end) / 2, y.start + 35, x.title, 12, anchor="middle", fill=TEXT_INK)
    if y.title:
        left, middle = x.start - y.label_width - 16, (y.start + y.end) / 2
        drawing.text(left, middle, y.title, 12, anchor="middle", fill=TEXT_INK, turned=True)


def _draw_scatter(drawing: Drawing, trace: go.Scatter, x: Axis, y: Axis) -> None:
    points = [(x.at(a), y.at(b)) for a, b in zip(_numbers(trace.x), _numbers(trace.y), strict=True)]
    if not points:
        return
    if "lines" in trace.mode:
        dashes = "5 4" if trace.line.dash in ("dash", "dot") else ""
        drawing.line(points, trace.line.color or ACCENT, trace.line.width or 2, dashes=dashes)
    _draw_errors(drawing, trace, x, y)
    if "markers" not in trace.mode:
        return
    colours = _of_each(trace.marker.color or trace.line.color or ACCENT, len(points))
    opacity = 1.0 if trace.marker.opacity is None else trace.marker.opacity
    for colour in dict.fromkeys(colours):
        chosen = [point for point, its in zip(points, colours, strict=True) if its == colour]
        drawing.dots(chosen, (trace.marker.size or 6) / 2, colour, opacity)


def _draw_bars(drawing: Drawing, trace: go.Bar, x: Axis, y: Axis) -> None:
    across, along = (y, x) if trace.orientation == "h" else (x, y)
    places, lengths = (_numbers(trace[name]) for name in (("y", "x") if trace.orientation == "h" else ("x", "y")))
    half = 0.38 * abs(across.at(1) - across.at(0))
    zero = along.at(0)
    for place, length, colour in zip(places, lengths, _of_each(trace.marker.color, len(places)), strict=True):
        first, size = min(zero, along.at(length)), abs(along.at(length) - zero)
        middle = across.at(place) - half
        box = (first, middle, size, 2 * half) if trace.orientation == "h" else (middle, first, 2 * half, size)
        drawing.rectangle(*box, colour)
    _draw_errors(drawing, trace, x, y)


def _draw_errors(drawing: Drawing, trace: go.Scatter | go.Bar, x: Axis, y: Axis) -> None:
    for name, axis, other in (("x", x, y), ("y", y, x)):
        if trace[f"error_{name}"].array is None:
            continue
        colour = trace[f"error_{name}"].color or ACCENT
        crossing = _numbers(trace["y" if name == "x" else "x"])
        for place, low, high in zip(crossing, *_error_ends(trace, name), strict=True):
            ends = [(axis.at(low), other.at(place)), (axis.at(high), other.at(place))]
            drawing.line(ends if name == "x" else [(b, a) for a, b in ends], colour, 2)


def _draw_shape(drawing: Drawing, shape: go.layout.Shape, x: Axis, y: Axis) -> None:
    """A span of x, or a line across or up, from end to end."""
    across = "domain" in (shape.xref or "")
    low, high = (x.start, x.end) if across else (x.at(shape.x0), x.at(shape.x1))
    bottom, top = (y.at(shape.y0), y.at(shape.y1)) if across else (y.start, y.end)
    if shape.type == "rect":
        drawing.rectangle(low, top, high - low, bottom - top, shape.fillcolor, shape.opacity)
    else:
        dashes = "5 4" if shape.line.dash else ""
        drawing.line([(low, bottom), (high, top)], shape.line.color, shape.line.width or 1, dashes=dashes)


def _draw_note(drawing: Drawing, note: go.layout.Annotation, x: Axis, y: Axis) -> None:
    left, top = x.at(note.x), y.at(note.y)
    words, size = unescape(note.text), note.font.size or 12
    if note.showarrow:
        drawing.line([(left, top), (left + note.ax, top + note.ay)], MIDDLE_INK)
        left, top = left + note.ax, top + note.ay + (-4 if note.ay < 0 else size)
    half = width_of(words, size) / 2
    left = min(max(left, x.start + half), x.end - half)
    drawing.rectangle(left - half, top - size, 2 * half, 1.35 * size, "white", 0.72)
    drawing.text(left, top, words, size, anchor="middle", fill=TEXT_INK)


def _draw_legend(drawing: Drawing, traces: list[go.Scatter], per_line: int, top: float) -> None:
    for number, trace in enumerate(traces):
        row, column = divmod(number, per_line)
        left, line = GAP + column * _legend_width(traces), top + row * LEGEND_LINE
        drawing.dots([(left + 5, line - 4)], 5, trace.marker.color or trace.line.color or ACCENT)
        drawing.text(left + 15, line, unescape(trace.name), 12, fill=TEXT_INK)


def _legend_width(traces: list[go.Scatter]) -> float:
    return max((width_of(unescape(trace.name), 12) for trace in traces), default=0.0) + 34


def _length_axis(trace: go.Bar) -> str:
    return "x" if trace.orientation == "h" else "y"


def _of_each(colour: str | Sequence[str], number: int) -> list[str]:
    return [colour] * number if isinstance(colour, str) else list(colour)


def _numbers(values: object) -> np.ndarray:
    return np.zeros(0) if values is None else np.asarray(values, float)
