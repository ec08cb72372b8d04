"""The map of the documents: near each other when their posterior means point the same way."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from varitext.documents.topic_records import TopicInfo
from varitext.evaluation.map_layout import lay_out
from varitext.report.documents.map_names import middle_of, place_apart
from varitext.report.documents.sample import DocumentSample
from varitext.report.drawing.charts import Group, Map
from varitext.report.drawing.style import FAINT, PALETTE
from varitext.report.escaping import for_plotly, one_line, wrapped_for_plotly

MAX_GROUPS = len(PALETTE)
MAX_NAMES = 24  # that find room on the map
OTHERS = "all others"


def topic_map(sample: DocumentSample, topics: Sequence[TopicInfo], seed: int = 0) -> Map:
    """The map, coloured by topic, with the names of the most frequent ones written on it."""
    groups = topic_groups(sample, topics)
    return _map(lay_out(sample.mean, seed), groups, [group.name for group in groups][:MAX_NAMES], sample, topics)


def label_map(sample: DocumentSample, topics: Sequence[TopicInfo], places: np.ndarray) -> Map | None:
    """The same places coloured by label; None if there are no labels."""
    if sample.labels is None:
        return None
    groups = colour_groups(sample.labels)
    return _map(places, groups, [group.name for group in groups if group.name != OTHERS], sample, topics)


def topic_groups(sample: DocumentSample, topics: Sequence[TopicInfo]) -> list[Group]:
    """The documents by topic, the most frequent first; colours come again if there are more topics."""
    frequent = [place for place, _ in Counter(sample.topic.tolist()).most_common()]
    return [
        Group(one_line(topics[place].name, 60), np.flatnonzero(sample.topic == place), PALETTE[row % len(PALETTE)])
        for row, place in enumerate(frequent)
    ]


def colour_groups(names: tuple[str, ...]) -> list[Group]:
    """The documents by name in alphabetical order; the rarest names share one colour if there are too many."""
    frequent = [name for name, _ in Counter(names).most_common(MAX_GROUPS + 1)]
    kept = sorted(frequent if len(frequent) <= MAX_GROUPS else frequent[: MAX_GROUPS - 1])
    every = np.array(names, dtype=object)
    groups = [Group(name, np.flatnonzero(every == name), PALETTE[place]) for place, name in enumerate(kept)]
    others = np.flatnonzero(~np.isin(every, kept)) if len(every) else np.zeros(0, int)
    return [Group(OTHERS, others, FAINT), *groups] if len(others) else groups


def _map(
    places: np.ndarray,
    groups: list[Group],
    named: Sequence[str],
    sample: DocumentSample,
    topics: Sequence[TopicInfo],
) -> Map:
    spots = [middle_of(group.name, places[group.rows]) for group in groups if group.name in named]
    hover = [_hover(row, sample, topics[sample.topic[row]].name) for row in range(len(sample))]
    return Map(places, groups, place_apart(spots, places), hover, dot=5 if len(sample) > 500 else 8)


def _hover(row: int, sample: DocumentSample, topic: str) -> str:
    label = f"{for_plotly(sample.labels[row])} · " if sample.labels else ""
    lines = [f"<b>{label}{for_plotly(one_line(topic, 60))}</b>"]
    if sample.titles and sample.titles[row]:
        lines.append(wrapped_for_plotly(sample.titles[row]))
    lines.append(f"<i>{wrapped_for_plotly(', '.join(sample.document_keywords[row]))}</i>")
    return "<br>".join(lines)
