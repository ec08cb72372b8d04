"""Charts as plotly figures, for the report and for notebooks. Plotly is in the extra `report`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from varitext.charts.colours import ACCENT, INK, MIDDLE_INK
from varitext.charts.labels import PlacedName, frame_of
from varitext.charts.records import TITLE, Axis, Bars, Chart, Curve, Intervals, Map, for_plotly

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
GRID = "rgba(128, 136, 148, 0.22)"
CLEAR = "rgba(0,0,0,0)"
NOTEBOOK = 900  # pixels, about the width of a cell
PANEL_GAP = 46  # pixels between panels
HOVER = "%{customdata}<extra></extra>"


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
    marker = {"color": list(chart.colours), "size": 10 if chart.row_height > 26 else 9}
    points = go.Scatter(
        x=chart.values, y=rows, mode="markers", marker=marker, customdata=chart.hover, hovertemplate=HOVER
    )
    lines = [
        go.Scatter(x=[low, high], y=[row, row], mode="lines", line={"color": colour, "width": 2}, hoverinfo="skip")
        for row, low, high, colour in zip(rows, chart.low, chart.high, chart.colours, strict=True)
        if high > low
    ]
    names = {"tickvals": rows, "ticktext": [for_plotly(name) for name in chart.names], "showgrid": False}
    figure = _quiet([*lines, points], chart.height, chart.title)
    figure.update_layout(xaxis=_axis(chart.axis) | {"nticks": 6}, yaxis=names | {"range": [-0.6, len(rows) - 0.4]})
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
    figure = _quiet([line], chart.height, chart.title)
    figure.update_layout(xaxis=_axis(chart.axes[0]), yaxis=_axis(chart.axes[1]))
    if chart.reference is not None:
        (x0, y0), (x1, y1) = chart.reference
        dashed = {"color": MIDDLE_INK, "width": 1, "dash": "dash"}
        figure.add_shape(type="line", x0=x0, y0=y0, x1=x1, y1=y1, line=dashed, layer="below")
    if chart.shaded_until > 0:
        figure.add_vrect(x0=0, x1=chart.shaded_until, fillcolor=MIDDLE_INK, opacity=0.1, line_width=0)
    if (note := chart.note) is not None:
        away = {"ax": 34 if note.right else -34, "ay": -34 if note.above else 34}
        arrow = {"showarrow": True, "arrowhead": 0, "arrowcolor": MIDDLE_INK} | away
        figure.add_annotation(x=note.x, y=note.y, text=for_plotly(note.text), **arrow)
    return figure


def _bars(chart: Bars) -> go.Figure:
    places, marker = list(range(1, len(chart.values) + 1)), {"color": list(chart.colours)}
    bars = go.Bar(x=places, y=list(chart.values), marker=marker, customdata=chart.hover, hovertemplate=HOVER)
    figure = _quiet([bars], chart.height, chart.title)
    x, y = chart.axes
    return figure.update_layout(bargap=0.25, xaxis=_axis(x) | {"showgrid": False}, yaxis=_axis(y))


def _map(chart: Map) -> go.Figure:
    traces = [
        go.Scatter(
            x=chart.places[group.rows, 0],
            y=chart.places[group.rows, 1],
            mode="markers",
            name=for_plotly(group.name),
            marker={"color": group.colour, "size": chart.dot, "opacity": 0.75},
            customdata=[chart.hover[row] for row in group.rows],
            hovertemplate=HOVER,
        )
        for group in chart.groups
    ]
    frame = frame_of(chart.places)
    x = {"visible": False, "range": [frame.left, frame.left + frame.width]}
    y = {"visible": False, "range": [frame.bottom, frame.bottom + frame.height], "scaleanchor": "x"}
    sideways = np.abs(chart.places[:, 0] - frame.left - frame.width / 2).max(initial=0.0)
    return _quiet(traces, chart.height, chart.title).update_layout(
        meta={"reach": 1.05 * float(sideways)},  # from the centre to the outermost dot, for narrow screens
        xaxis=x,
        yaxis=y,
        dragmode="pan",
        hovermode="closest",
        annotations=[_name(spot) for spot in chart.spots],
    )


def _name(spot: PlacedName) -> dict[str, Any]:
    """A name on a map, with a line to its place if it is beside it."""
    text: dict[str, Any] = {"text": for_plotly(spot.name), "font": {"size": 11, "family": FONT, "color": INK}}
    text |= {"borderpad": 1, "bgcolor": "rgba(255,255,255,0.72)"}  # the report has the colours of its page
    if not spot.joined:
        return text | {"x": spot.x, "y": spot.y, "showarrow": False}
    line = {"showarrow": True, "arrowhead": 6, "arrowsize": 0.6, "arrowwidth": 1, "arrowcolor": MIDDLE_INK}
    return text | line | {"x": spot.at_x, "y": spot.at_y, "ax": spot.x, "ay": spot.y, "axref": "x", "ayref": "y"}


# Several charts, trees and matrices


def panel_figure(charts: Sequence[Chart], columns: int) -> go.Figure:
    """Charts side by side, each under its title; fewer per row if their names are long."""
    longest = max((len(name) for chart in charts if isinstance(chart, Intervals) for name in chart.names), default=8)
    gap = (7 * longest + 50) / NOTEBOOK  # of the width
    columns = max(1, min(columns, len(charts), int(0.6 / gap) + 1))
    rows = -(-len(charts) // columns)
    heights = [max(chart.height for chart in charts[at : at + columns]) for at in range(0, len(charts), columns)]
    height = sum(heights) + PANEL_GAP * rows
    titles = [f"<b>{for_plotly(chart.title)}</b>" if chart.title else "" for chart in charts]
    figure = make_subplots(
        rows, columns, subplot_titles=titles, row_heights=heights, vertical_spacing=min(PANEL_GAP / height, 1 / rows),
        horizontal_spacing=min(gap, 0.8 / columns),
    )  # fmt: skip
    for place, chart in enumerate(charts):
        _add_panel(figure, plotly_figure(chart), place // columns + 1, place % columns + 1)
    figure.update_annotations(font={"size": 13, "family": FONT}, xanchor="left")
    for title, place in zip(figure.layout.annotations, (n for n, text in enumerate(titles) if text), strict=True):
        title.x = figure.layout[f"xaxis{place + 1 if place else ''}"].domain[0]
    return figure.update_layout(_quiet([], height).layout).update_layout(margin={"t": PANEL_GAP, "l": 20, "r": 20})


def _add_panel(figure: go.Figure, drawn: go.Figure, row: int, column: int) -> None:
    figure.add_traces(drawn.data, rows=row, cols=column)
    figure.update_xaxes(drawn.layout.xaxis.to_plotly_json(), row=row, col=column)
    figure.update_yaxes(drawn.layout.yaxis.to_plotly_json(), row=row, col=column)
    axes = figure.get_subplot(row, column)
    x, y = (axis.plotly_name.replace("axis", "") for axis in axes)
    for shape in drawn.layout.shapes:
        places = {"xref": x, "yref": f"{y} domain" if "domain" in (shape.yref or "") else y}
        figure.add_shape(shape.to_plotly_json() | places)


def tree_figure(names: Sequence[str], branches: Sequence[tuple[list[float], list[float]]], axis: Axis) -> go.Figure:
    """Names from the top down, joined by branches: corners of lines, with the names at 0, 1, 2, ..."""
    look = {"mode": "lines", "line": {"color": ACCENT, "width": 1.5}, "hoverinfo": "skip"}
    figure = _quiet([go.Scatter(x=x, y=y, **look) for x, y in branches], 20 * len(names) + 70)
    ticks = {"tickvals": [*range(len(names))], "ticktext": [for_plotly(name) for name in names]}
    y = ticks | {"showgrid": False, "range": [len(names) - 0.4, -0.6]}
    return figure.update_layout(xaxis=_axis(axis), yaxis=y)


def matrix_figure(names: Sequence[str], values: np.ndarray, measure: str) -> go.Figure:
    """A symmetric matrix as a heat map, from -1 to 1, in the order given."""
    shown = [for_plotly(name) for name in names]
    places = [*range(len(names))]
    hover = [[f"{one}<br>{other}<br>{measure} {values[i, j]:.2f}" for j, other in enumerate(shown)]
             for i, one in enumerate(shown)]  # fmt: skip
    scale = {"colorscale": "RdBu_r", "zmid": 0, "zmin": -1, "zmax": 1, "colorbar": {"title": measure, "thickness": 12}}
    cells = go.Heatmap(z=values, x=places, y=places, customdata=hover, hovertemplate=HOVER, **scale)
    figure = _quiet([cells], 18 * len(names) + 160)
    ticks = {"tickvals": places, "ticktext": shown, "showgrid": False}
    y = ticks | {"autorange": "reversed", "scaleanchor": "x", "constrain": "domain", "constraintoward": "top"}
    return figure.update_layout(xaxis=ticks | {"tickangle": 60, "constrain": "domain"}, yaxis=y)


# Layout


def _quiet(traces: Sequence[Any], height: int, title: str = "") -> go.Figure:
    """A figure without plotly's template: no frames, a faint grid, the page's font, and the title at the upper left."""
    axis = {"gridcolor": GRID, "zeroline": False, "automargin": True, "title": {"standoff": 10, "font": {"size": 13}}}
    layout = {
        "template": "none",
        "height": height,
        "margin": {"l": 12, "r": 14, "t": 14 + (TITLE if title else 0), "b": 12},
        "title": _heading(title),
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 13, "color": MIDDLE_INK},
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 13}},
        "showlegend": False,
        "xaxis": axis,
        "yaxis": axis,
    }
    return go.Figure(data=list(traces), layout=layout)


def _heading(title: str) -> dict[str, Any]:
    place = {"x": 0, "xref": "container", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 12, "l": 14}}
    return {"text": f"<b>{for_plotly(title)}</b>" if title else "", "font": {"size": 13}} | place


def _axis(axis: Axis) -> dict[str, Any]:
    layout: dict[str, Any] = {"title": {"text": for_plotly(axis.title)}} if axis.title else {}
    layout |= {"range": list(axis.limits)} if axis.limits else {}
    layout |= {"rangemode": "tozero"} if axis.from_zero else {}
    if axis.names:
        places = axis.shown_names()
        layout |= {"tickvals": places, "ticktext": [for_plotly(axis.names[place]) for place in places]}
    return layout | ({"tickformat": ".0%"} if axis.percent else {})
