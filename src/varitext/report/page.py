"""The report's page: one HTML file from a template, with its tiles and tables, and charts drawn by plotly.

The content security policy allows the two scripts of the page by their hashes and no address at all, so that even a
mistake in escaping could neither run nor fetch anything.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

import varitext
from varitext.answers.ranker import AnswerRanker
from varitext.corpora import Documents, QuestionAnswers
from varitext.documents.model import DocumentModel
from varitext.files import sha256_of
from varitext.report.charts import (
    MIDDLE_INK,
    Axis,
    Bars,
    Chart,
    Curve,
    Intervals,
    Map,
    for_plotly,
    one_line,
    printable,
)


def render(template: str, **context: object) -> str:
    """The whole page; every text of the context is escaped and stripped of control characters."""
    plotly = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")  # as the browser will read and hash it
    script = _own_file("page.js")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "line": one_line,
        "plotly": lambda chart: Markup(for_script(plotly_figure(chart).to_json())),
    }
    return environment.get_template(template).render(
        **context,
        version=varitext.__version__,
        style=Markup(_own_file("page.css")),
        scripts=[Markup(plotly), Markup(script)],
        hashes=[_source_hash(plotly), _source_hash(script)],
    )


def _printable(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def for_script(json_text: str) -> str:
    """JSON inside a `<script>` element: without these three characters no tag or comment can begin or end in it."""
    return json_text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _own_file(name: str) -> str:
    return files("varitext.report").joinpath("templates", name).read_text(encoding="utf-8")


def _source_hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


# Tiles and tables

MAX_FILES = 20
MODEL_FILES = ("config.json", "weights.safetensors", "vocabulary.txt")


class Tile(NamedTuple):
    """A number with its name and an explanation."""

    name: str
    value: str
    note: str


def provenance(
    record: dict[str, Any],
    model: DocumentModel | AnswerRanker,
    source: Documents | QuestionAnswers | None,
    folder: Path | None,
) -> dict[str, dict[str, Any]]:
    """Tables by their headings: the whole record, all settings, and the hashes of corpus and model files."""
    kinds = {
        "setting": model.get_params(deep=False),
        "training": model.fitted_.training,
        "network": model.fitted_.architecture,
    }
    settings = {f"{kind}: {name}": value for kind, values in kinds.items() for name, value in values.items()}
    sources = () if source is None or len(source.files) > MAX_FILES else source.files
    paths = [folder / name for name in MODEL_FILES] if folder else []
    hashes = {f"corpus: {file.name}": file.sha256 for file in sources}
    hashes |= {f"model: {path.name}": sha256_of(path) for path in paths if path.is_file()}
    tables = {"Evaluation record": record, "Settings": settings, "Files (SHA-256)": hashes}
    return {heading: values for heading, values in tables.items() if values}


def fitted_in(seconds: float, seed: int) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"in {f'{minutes} min {rest} s' if minutes else f'{seconds:.1f} s'}, seed {seed}"


def why_stopped(stopped: str, measure: str) -> str:
    """`measure` is what early stopping watched."""
    reasons = {
        "finished": "all epochs completed",
        "fitted": "not trained in epochs",
        "early": f"{measure} no longer improved",
        "time": "time limit reached",
        "interrupted": "interrupted; the best model so far was kept",
        "diverged": "training diverged; the best model so far was kept",
    }
    return reasons.get(stopped, stopped)


# Charts

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
GRID = "rgba(128, 136, 148, 0.22)"
CLEAR = "rgba(0,0,0,0)"
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
    figure = _quiet([*lines, points], chart.height)
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
    figure = _quiet([line], chart.height)
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
    figure = _quiet([bars], chart.height)
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
    look = {"showarrow": False, "font": {"size": 11, "family": FONT}}
    names = [{"x": spot.x, "y": spot.y, "text": for_plotly(spot.name)} | look for spot in chart.spots]
    bare = {"visible": False}
    return _quiet(traces, chart.height).update_layout(
        xaxis=bare, yaxis=bare | {"scaleanchor": "x"}, dragmode="pan", hovermode="closest", annotations=names
    )


def _quiet(traces: Sequence[go.Scatter | go.Bar], height: int) -> go.Figure:
    """A figure without plotly's template: no frames, a faint grid, the page's font."""
    axis = {"gridcolor": GRID, "zeroline": False, "automargin": True, "title": {"standoff": 10, "font": {"size": 13}}}
    layout = {
        "template": "none",
        "height": height,
        "margin": {"l": 12, "r": 14, "t": 14, "b": 12},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 13, "color": MIDDLE_INK},
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 13}},
        "showlegend": False,
        "xaxis": axis,
        "yaxis": axis,
    }
    return go.Figure(data=list(traces), layout=layout)


def _axis(axis: Axis) -> dict[str, Any]:
    layout: dict[str, Any] = {"title": {"text": for_plotly(axis.title)}} if axis.title else {}
    layout |= {"range": list(axis.limits)} if axis.limits else {}
    layout |= {"rangemode": "tozero"} if axis.from_zero else {}
    if axis.names:
        places = axis.shown_names()
        layout |= {"tickvals": places, "ticktext": [for_plotly(axis.names[place]) for place in places]}
    return layout | ({"tickformat": ".0%"} if axis.percent else {})
