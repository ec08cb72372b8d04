"""Charts drawn by matplotlib, for files."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

from varitext.report.drawing.canvas import INCH, dots, drawing_style, shortened, text_width
from varitext.report.drawing.charts import Axis, Bars, Chart, Curve, Group, Intervals, Map, shown_names
from varitext.report.drawing.style import INK, MIDDLE_INK
from varitext.report.escaping import printable

PANEL_WIDTH = 520.0
TITLE_SIZE, TITLE_HEIGHT = 16, 44
LEGEND_SIZE, LEGEND_LINE = 12, 19.0
GAP = 12.0
DASHED: dict[str, Any] = {"color": MIDDLE_INK, "linewidth": 1, "linestyle": (0, (5, 4))}
ROOM = 0.05  # of the values' range, on each side


def chart_figure(title: str, charts: Sequence[Chart], width: float = PANEL_WIDTH, columns: int = 2) -> Figure:
    """The charts as panels, side by side; below, what the colours of a map mean."""
    columns = min(columns, len(charts))
    heights = [max(chart.height for chart in charts[at : at + columns]) for at in range(0, len(charts), columns)]
    groups = next((chart.groups for chart in charts if isinstance(chart, Map)), ())
    whole = columns * (width + GAP) + GAP
    per_line = _names_per_line(groups, whole)
    height = TITLE_HEIGHT + sum(heights) + GAP * len(heights) + LEGEND_LINE * -(-len(groups) // per_line)
    with drawing_style():
        figure = Figure(
            (whole / INCH, height / INCH),
            layout=ConstrainedLayoutEngine(w_pad=GAP / INCH, h_pad=GAP / INCH),
            label=title,
        )
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        for place, chart in enumerate(charts):
            _draw(chart, figure.add_subplot(grid[divmod(place, columns)]))
        words = shortened(printable(title), TITLE_SIZE, whole - 4 * GAP)
        figure.suptitle(words, x=GAP / whole, ha="left", fontsize=TITLE_SIZE, fontweight="bold")
        if groups:
            _legend(figure, groups, per_line)
    return figure


def _draw(chart: Chart, axes: Axes) -> None:
    match chart:
        case Intervals():
            _draw_intervals(chart, axes)
        case Curve():
            _draw_curve(chart, axes)
        case Bars():
            _draw_bars(chart, axes)
        case Map():
            _draw_map(chart, axes)


def _draw_intervals(chart: Intervals, axes: Axes) -> None:
    rows = np.arange(len(chart.names))
    axes.hlines(rows, chart.low, chart.high, colors=list(chart.colours), linewidth=2)
    for row, value, colour in zip(rows, chart.values, chart.colours, strict=True):
        axes.plot(value, row, "o", color=colour, markersize=9)
    axes.set_yticks(rows, [printable(name) for name in chart.names])
    axes.set_ylim(len(rows) - 0.4, -0.6)  # from the top down
    axes.grid(visible=False, axis="y")
    if chart.zero_line:
        axes.axvline(0, color=MIDDLE_INK, linewidth=1)
    _label(axes, "x", chart.axis, np.concatenate([chart.low, chart.high]))


def _draw_curve(chart: Curve, axes: Axes) -> None:
    low, high = chart.interval or (chart.y, chart.y)
    if chart.shaded_until > 0:
        axes.axvspan(0, chart.shaded_until, color=MIDDLE_INK, alpha=0.1, linewidth=0)
    if chart.reference is not None:
        axes.plot(*np.transpose(chart.reference), **DASHED)
    if chart.interval is not None:
        axes.vlines(chart.x, low, high, colors=chart.colour, linewidth=2)
    axes.plot(chart.x, chart.y, "o-" if chart.marker else "-", color=chart.colour, markersize=chart.marker)
    if (note := chart.note) is not None:
        look: dict[str, Any] = {"fontsize": 12, "ha": "center", "arrowprops": {"arrowstyle": "-", "color": MIDDLE_INK}}
        away = (34 if note.right else -34, 34 if note.above else -34)
        axes.annotate(printable(note.text), (note.x, note.y), away, textcoords="offset points", **look)
    _label(axes, "x", chart.axes[0], chart.x)
    _label(axes, "y", chart.axes[1], np.concatenate([low, high]))


def _draw_bars(chart: Bars, axes: Axes) -> None:
    axes.bar(np.arange(1, len(chart.values) + 1), chart.values, width=0.75, color=list(chart.colours))
    axes.grid(visible=False, axis="x")
    axes.margins(x=0.01)
    axes.set(xlabel=chart.axes[0].title, ylabel=chart.axes[1].title)


def _draw_map(chart: Map, axes: Axes) -> None:
    (left, bottom), (right, top) = chart.places.min(0), chart.places.max(0)
    room = ROOM * max(right - left, top - bottom, 1e-9)
    axes.set(xlim=(left - room, right + room), ylim=(bottom - room, top + room), title=printable(chart.title))
    axes.set_aspect("equal", anchor="N")
    axes.set_axis_off()
    for group in chart.groups:
        dots(axes, chart.places[group.rows], chart.dot, group.colour, 0.75)
    look = {"facecolor": "white", "alpha": 0.72, "linewidth": 0, "boxstyle": "square,pad=0.1"}
    for spot in chart.spots:
        axes.text(spot.x, spot.y, printable(spot.name), fontsize=11, ha="center", va="center", bbox=look)


def _label(axes: Axes, which: str, axis: Axis, values: np.ndarray) -> None:
    """The axis's title, its limits, and ticks at round numbers."""
    low, high = float(np.min(values, initial=np.inf)), float(np.max(values, initial=-np.inf))
    if axis.from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = ROOM * (high - low) or 0.5 * abs(high) or 0.5
    limits = axis.limits or (low if axis.from_zero and low == 0 else low - room, high + room)
    ticks = PercentFormatter(1, decimals=0) if axis.percent else StrMethodFormatter("{x:,.6g}")
    drawn = axes.xaxis if which == "x" else axes.yaxis
    drawn.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    drawn.set_major_formatter(ticks)
    if axis.names:
        places = shown_names(axis)
        drawn.set_ticks(places, [printable(axis.names[place]) for place in places])
    drawn.set_label_text(printable(axis.title))
    (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)


def _names_per_line(groups: Sequence[Group], width: float) -> int:
    longest = max((text_width(printable(group.name), LEGEND_SIZE) for group in groups), default=0.0)
    return max(1, int(width // (longest + 44)))


def _legend(figure: Figure, groups: Sequence[Group], columns: int) -> None:
    handles = [Line2D([], [], color=group.colour, marker="o", markersize=9, linestyle="") for group in groups]
    names = [printable(group.name) for group in groups]
    look = {"labelcolor": INK, "handletextpad": 0.2, "columnspacing": 1.5, "borderpad": 0}
    figure.legend(handles, names, loc="outside lower left", ncols=columns, fontsize=LEGEND_SIZE, **look)
