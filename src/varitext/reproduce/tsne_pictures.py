"""The maps of `tsne` as files: one SVG that any page can show, and one HTML file that names documents' newsgroups."""

import numpy as np

from varitext.report.charts import PALETTE, Group, Map
from varitext.report.drawing import chart_figure, svg_text
from varitext.reproduce.document_fits import titles
from varitext.reproduce.engine import Record

PANEL = 460  # pixels: the width and height of one map
TITLE = "t-SNE of the test documents, coloured by newsgroup"


def svg_of(records: list[Record]) -> str:
    """The maps of the first seed side by side, and what the colours mean."""
    maps = [_map(record) for record in _first_seed(records)]
    return svg_text(chart_figure(TITLE, maps, PANEL, columns=len(maps)))


def _map(record: Record) -> Map:
    found = record["result"]
    places, labels = np.stack([found["x"], found["y"]], 1).astype(float), np.array(found["labels"])
    groups = [
        Group(name, np.flatnonzero(labels == number), _colour(number))
        for number, name in enumerate(found["newsgroups"])
    ]
    return Map(places, groups, dot=3.4, title=titles()[record["settings"]["model"]], height=PANEL)


def html_of(records: list[Record]) -> str:
    """The same maps, to zoom into; whole in itself, so it opens offline."""
    from plotly.subplots import make_subplots

    records = _first_seed(records)
    figure = make_subplots(1, len(records), subplot_titles=[titles()[one["settings"]["model"]] for one in records])
    for column, record in enumerate(records, start=1):
        found = record["result"]
        labels, x, y = (np.array(found[name]) for name in ("labels", "x", "y"))
        for number, name in enumerate(found["newsgroups"]):
            figure.add_scattergl(
                x=x[labels == number],
                y=y[labels == number],
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                marker={"color": _colour(number), "size": 4, "opacity": 0.7},
                row=1,
                col=column,
            )
    figure.update_xaxes(visible=False).update_yaxes(visible=False)
    figure.update_layout(template="none", title=TITLE)
    return str(figure.to_html(include_plotlyjs=True, full_html=True, div_id="maps"))


def _first_seed(records: list[Record]) -> list[Record]:
    seed = min(record["settings"]["seed"] for record in records)
    return [record for record in records if record["settings"]["seed"] == seed]


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]
