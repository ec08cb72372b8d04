"""The maps of `tsne` as files: one SVG that any page can show, and one HTML file that names documents' newsgroups.

In the SVG a newsgroup is one path of round dots, `M12.3 4.5h0`: a few bytes per document.
"""

from html import escape

import numpy as np

from varitext.experiments.document_fits import titles
from varitext.experiments.runs import Record

PANEL = 460  # pixels: the width and height of one map
MARGIN = 20
LINE = 18
LEGEND_COLUMNS = 4
FONT = "system-ui, sans-serif"


def svg_of(records: list[Record]) -> str:
    """The maps of the first seed side by side, and what the colours mean."""
    records = _first_seed(records)
    names = records[0]["result"]["newsgroups"]
    panels = [_panel(record, place * (PANEL + MARGIN)) for place, record in enumerate(records)]
    rows = -(-len(names) // LEGEND_COLUMNS)
    width, height = len(records) * (PANEL + MARGIN) - MARGIN, 2 * LINE + PANEL + MARGIN + rows * LINE
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="{FONT}" '
            'font-size="12" fill="#717882">',
            "<title>t-SNE of the test documents, coloured by newsgroup</title>",
            *panels,
            *_legend(names, width, 2 * LINE + PANEL + MARGIN),
            "</svg>\n",
        ]
    )


def _panel(record: Record, left: int) -> str:
    """One map in a square, as large as it fits."""
    found = record["result"]
    places = np.stack([found["x"], found["y"]], 1).astype(float)  # [D, 2]
    low, size = places.min(0), max(float(np.ptp(places, axis=0).max()), 1e-9)
    spots = (places - low) / size * PANEL  # [D, 2]
    spots[:, 1] = PANEL - spots[:, 1]  # an SVG counts from the top
    labels = np.array(found["labels"])
    paths = [_dots(spots[labels == number], _colour(number)) for number in range(len(found["newsgroups"]))]
    title = f'<text y="{-LINE // 2}" font-size="15">{escape(titles()[record["settings"]["model"]])}</text>'
    look = 'fill="none" stroke-linecap="round" stroke-width="3.4" stroke-opacity="0.7"'
    return f'<g transform="translate({left} {2 * LINE})">{title}<g {look}>\n' + "\n".join(paths) + "\n</g></g>"


def _dots(spots: np.ndarray, colour: str) -> str:
    steps = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in spots)
    return f'<path stroke="{colour}" d="{steps}"/>'


def _legend(names: list[str], width: int, top: int) -> list[str]:
    lines = []
    for number, name in enumerate(names):
        x, y = number % LEGEND_COLUMNS * width / LEGEND_COLUMNS, top + number // LEGEND_COLUMNS * LINE
        dot = f'<circle cx="{x + 6:.0f}" cy="{y:.0f}" r="5" fill="{_colour(number)}"/>'
        lines.append(f'{dot}<text x="{x + 16:.0f}" y="{y + 4:.0f}">{escape(name)}</text>')
    return lines


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
    figure.update_layout(template="none", title="t-SNE of the test documents, coloured by newsgroup")
    return str(figure.to_html(include_plotlyjs=True, full_html=True, div_id="maps"))


def _first_seed(records: list[Record]) -> list[Record]:
    seed = min(record["settings"]["seed"] for record in records)
    return [record for record in records if record["settings"]["seed"] == seed]


def _colour(number: int) -> str:
    from varitext.report.drawing.style import PALETTE

    return PALETTE[number % len(PALETTE)]
