"""The map of the documents: near each other when their posterior means point the same way."""

from collections import Counter

import numpy as np

from varitext.evaluation.map_layout import lay_out
from varitext.evaluation.topics import Topic, strongest_topics
from varitext.report.documents.map_names import middle_of, place_apart, regions
from varitext.report.documents.sample import DocumentSample
from varitext.report.drawing.charts import Group, Map, NamedSpot
from varitext.report.drawing.style import FAINT, PALETTE
from varitext.report.escaping import for_plotly, wrapped_for_plotly

MOST_GROUPS = len(PALETTE)
OTHERS = "all others"


def document_map(sample: DocumentSample, topics: list[Topic], seed: int = 0) -> Map:
    """The map, coloured by label, or by strongest topic where there are no labels."""
    places = lay_out(sample.mean, seed)
    groups = colour_groups(sample.labels or strongest_topics(sample.mean, topics))
    spots = place_apart(_names(groups, places, sample, seed), places)
    hover = [_hover(row, sample) for row in range(len(sample))]
    return Map(places, groups, spots, hover, dot=5 if len(sample) > 500 else 8)


def colour_groups(names: tuple[str, ...]) -> list[Group]:
    """The documents by name in alphabetical order; the rarest names share one colour if there are too many."""
    frequent = [name for name, _ in Counter(names).most_common(MOST_GROUPS + 1)]
    kept = sorted(frequent if len(frequent) <= MOST_GROUPS else frequent[: MOST_GROUPS - 1])
    every = np.array(names, dtype=object)
    groups = [Group(name, np.flatnonzero(every == name), PALETTE[place]) for place, name in enumerate(kept)]
    others = np.flatnonzero(~np.isin(every, kept)) if len(every) else np.zeros(0, int)
    return [Group(OTHERS, others, FAINT), *groups] if len(others) else groups


def _hover(row: int, sample: DocumentSample) -> str:
    lines = []
    if sample.labels:
        lines.append(f"<b>{for_plotly(sample.labels[row])}</b>")
    if sample.titles and sample.titles[row]:
        lines.append(wrapped_for_plotly(sample.titles[row]))
    lines.append(f"<i>{wrapped_for_plotly(', '.join(sample.telling_words[row]))}</i>")
    return "<br>".join(lines)


def _names(groups: list[Group], places: np.ndarray, sample: DocumentSample, seed: int) -> list[NamedSpot]:
    """Labels are written where they lie. Topics overlap, so without labels the regions of the map get words."""
    if sample.labels is None:
        return regions(places, sample.telling_words, seed)
    return [middle_of(group.name, places[group.rows]) for group in groups if group.name != OTHERS]
