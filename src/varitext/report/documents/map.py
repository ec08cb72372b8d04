"""The map of the documents: near each other when their posterior means point the same way."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from varitext.documents.model import Topic
from varitext.evaluation.map_layout import lay_out
from varitext.evaluation.topics import strongest_topics
from varitext.report.documents.map_names import NamedSpot, annotations, middle_of, regions
from varitext.report.documents.sample import ShownDocuments
from varitext.report.drawing.style import FAINT, PALETTE, quiet_figure
from varitext.report.escaping import for_plotly, wrapped_for_plotly

MOST_GROUPS = len(PALETTE)
OTHERS = "all others"


class Group(NamedTuple):
    """Documents of one colour."""

    name: str
    rows: np.ndarray
    colour: str


def document_map(shown: ShownDocuments, topics: list[Topic], seed: int = 0) -> go.Figure:
    """The map, coloured by label, or by strongest topic where there are no labels."""
    places = lay_out(shown.mean, seed)
    groups = colour_groups(shown.labels or strongest_topics(shown.mean, topics))
    figure = quiet_figure([_trace(group, places, shown) for group in groups], height=640)
    bare = {"visible": False}
    figure.update_layout(
        xaxis=bare,
        yaxis=bare | {"scaleanchor": "x"},
        dragmode="pan",
        hovermode="closest",
        annotations=annotations(_names(groups, places, shown, seed), places),
    )
    return figure


def colour_groups(names: tuple[str, ...]) -> list[Group]:
    """The documents by name in alphabetical order; the rarest names share one colour if there are too many."""
    frequent = [name for name, _ in Counter(names).most_common(MOST_GROUPS + 1)]
    kept = sorted(frequent if len(frequent) <= MOST_GROUPS else frequent[: MOST_GROUPS - 1])
    every = np.array(names, dtype=object)
    groups = [Group(name, np.flatnonzero(every == name), PALETTE[place]) for place, name in enumerate(kept)]
    others = np.flatnonzero(~np.isin(every, kept)) if len(every) else np.zeros(0, int)
    return [Group(OTHERS, others, FAINT), *groups] if len(others) else groups


def _trace(group: Group, places: np.ndarray, shown: ShownDocuments) -> go.Scatter:
    x, y = places[group.rows].T
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        name=for_plotly(group.name),
        marker={"color": group.colour, "size": 5 if len(shown) > 500 else 8, "opacity": 0.75},
        customdata=[_hover(row, shown) for row in group.rows],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover(row: int, shown: ShownDocuments) -> str:
    lines = []
    if shown.labels:
        lines.append(f"<b>{for_plotly(shown.labels[row])}</b>")
    if shown.titles and shown.titles[row]:
        lines.append(wrapped_for_plotly(shown.titles[row]))
    lines.append(f"<i>{wrapped_for_plotly(', '.join(shown.telling_words[row]))}</i>")
    return "<br>".join(lines)


def _names(groups: list[Group], places: np.ndarray, shown: ShownDocuments, seed: int) -> list[NamedSpot]:
    """Labels are written where they lie. Topics overlap, so without labels the regions of the map get words."""
    if shown.labels is None:
        return regions(places, shown.telling_words, seed)
    return [middle_of(group.name, places[group.rows]) for group in groups if group.name != OTHERS]
