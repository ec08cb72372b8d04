"""Charts drawn by plotly, for the page: quiet, transparent, on light and on dark paper."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from varitext.report.drawing.charts import Axis, Bars, Chart, Curve, Intervals, Map, shown_names
from varitext.report.drawing.style import FONT, MIDDLE_INK
from varitext.report.escaping import for_plotly

GRID = "rgba(128, 136, 148, 0.22)"
HOVER = "%{customdata}<extra></extra>"
DASHED = {"color": MIDDLE_INK, "width": 1, "dash": "dash"}


def plotly_figure(chart: Chart) -> go.Figure:
    match chart:
        case Intervals():
            return _intervals(chart)
        case Curve():
            return _curve(chart)
        case Bars():
            return _bars(chart)
        case Map():
            return _map(chart)


def _intervals(chart: Intervals) -> go.Figure:
    rows = list(range(len(chart.names)))[::-1]
    points = go.Scatter(
        x=chart.values,
        y=rows,
        mode="markers",
        marker={"color": list(chart.colours), "size": 10 if chart.row_height > 26 else 9},
        customdata=chart.hover,
        hovertemplate=HOVER,
    )
    lines = [
        go.Scatter(x=[low, high], y=[row, row], mode="lines", line={"color": colour, "width": 2}, hoverinfo="skip")
        for row, low, high, colour in zip(rows, chart.low, chart.high, chart.colours, strict=True)
        if high > low
    ]
    figure = _quiet([*lines, points], chart.height)
    figure.update_layout(
        xaxis=_axis(chart.axis) | {"nticks": 6},
        yaxis={
            "tickvals": rows,
            "ticktext": [for_plotly(name) for name in chart.names],
            "showgrid": False,
            "range": [-0.6, len(rows) - 0.4],
        },
    )
    if chart.zero_line:
        figure.add_vline(x=0, line={"color": MIDDLE_INK, "width": 1})
    return figure


def _curve(chart: Curve) -> go.Figure:
    line = go.Scatter(
        x=chart.x,
        y=chart.y,
        mode="lines+markers" if chart.marker else "lines",
        line={"color": chart.colour, "width": 2},
        marker={"color": chart.colour, "size": chart.marker},
        customdata=chart.hover,
        hovertemplate=HOVER,
    )
    if chart.interval is not None:
        low, high = chart.interval
        errors = {"array": np.maximum(high - chart.y, 0), "arrayminus": np.maximum(chart.y - low, 0)}
        line.update(error_y=errors | {"color": chart.colour, "thickness": 2, "width": 0})
    figure = _quiet([line], chart.height)
    figure.update_layout(xaxis=_axis(chart.axes[0]), yaxis=_axis(chart.axes[1]))
    if chart.reference is not None:
        (x0, y0), (x1, y1) = chart.reference
        figure.add_shape(type="line", x0=x0, y0=y0, x1=x1, y1=y1, line=DASHED, layer="below")
    if chart.shaded_until > 0:
        figure.add_vrect(x0=0, x1=chart.shaded_until, fillcolor=MIDDLE_INK, opacity=0.1, line_width=0)
    if (note := chart.note) is not None:
        arrow = {
            "showarrow": True,
            "arrowhead": 0,
            "arrowcolor": MIDDLE_INK,
            "ax": 34 if note.right else -34,
            "ay": -34 if note.above else 34,
        }
        figure.add_annotation(x=note.x, y=note.y, text=for_plotly(note.text), **arrow)
    return figure


def _bars(chart: Bars) -> go.Figure:
    bars = go.Bar(
        x=list(range(1, len(chart.values) + 1)),
        y=list(chart.values),
        marker={"color": list(chart.colours)},
        customdata=chart.hover,
        hovertemplate=HOVER,
    )
    figure = _quiet([bars], chart.height)
    x, y = chart.axes
    figure.update_layout(bargap=0.25, xaxis=_axis(x) | {"showgrid": False}, yaxis=_axis(y))
    return figure


def _map(chart: Map) -> go.Figure:
    traces = []
    for group in chart.groups:
        x, y = chart.places[group.rows].T
        trace = go.Scatter(
            x=x,
            y=y,
            mode="markers",
            name=for_plotly(group.name),
            marker={"color": group.colour, "size": chart.dot, "opacity": 0.75},
            customdata=[chart.hover[row] for row in group.rows],
            hovertemplate=HOVER,
        )
        traces.append(trace)
    look = {"showarrow": False, "font": {"size": 11, "family": FONT}}
    names = [{"x": spot.x, "y": spot.y, "text": for_plotly(spot.name)} | look for spot in chart.spots]
    bare = {"visible": False}
    figure = _quiet(traces, chart.height)
    figure.update_layout(xaxis=bare, yaxis=bare | {"scaleanchor": "x"}, dragmode="pan", hovermode="closest")
    return figure.update_layout(annotations=names)


def _quiet(traces: Sequence[go.Scatter | go.Bar], height: int) -> go.Figure:
    """A figure without plotly's template: no frames, faint grid, the page's font."""
    axis = {"gridcolor": GRID, "zeroline": False, "automargin": True, "title": {"standoff": 10, "font": {"size": 13}}}
    return go.Figure(
        data=list(traces),
        layout={
            "template": "none",
            "height": height,
            "margin": {"l": 12, "r": 14, "t": 14, "b": 12},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT, "size": 13, "color": MIDDLE_INK},
            "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 13}},
            "showlegend": False,
            "xaxis": axis,
            "yaxis": axis,
        },
    )


def _axis(axis: Axis) -> dict[str, Any]:
    layout: dict[str, Any] = {"title": {"text": for_plotly(axis.title)}} if axis.title else {}
    layout |= {"range": list(axis.limits)} if axis.limits else {}
    layout |= {"rangemode": "tozero"} if axis.from_zero else {}
    if axis.names:
        places = shown_names(axis)
        layout |= {"tickvals": places, "ticktext": [for_plotly(axis.names[place]) for place in places]}
    return layout | ({"tickformat": ".0%"} if axis.percent else {})
