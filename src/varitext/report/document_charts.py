"""Charts of a document model: map, topics, topic shares by column, example posteriors and latent dimensions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.sharded_counts import blocks_of
from varitext.documents.model import DocumentModel
from varitext.documents.task import ACTIVE
from varitext.documents.topic_records import TopicInfo, TopicShare
from varitext.errors import InputError
from varitext.evaluation.keywords import DistinctWords, document_keywords
from varitext.evaluation.latent_dimensions import LatentDimension, words_towards
from varitext.evaluation.map_layout import lay_out
from varitext.evaluation.shares import NO_VALUE
from varitext.report.charts import (
    ACCENT,
    FAINT,
    MIDDLE_INK,
    PALETTE,
    Axis,
    Bars,
    Chart,
    ColumnValues,
    Curve,
    Group,
    Intervals,
    Map,
    NamedSpot,
    for_plotly,
    one_line,
    printable,
    wrapped_for_plotly,
)
from varitext.report.drawing import INCH, Axes, Figure, drawing_style, shortened

# Sample

MAX_DOCUMENTS = 4000  # what a browser moves smoothly and t-SNE lays out in seconds
NO_LABEL = "no label"


@dataclass(frozen=True)
class DocumentSample:
    """One row per document; `of` says how many there are in all."""

    mean: np.ndarray  # [D, K]
    std: np.ndarray  # [D, K]
    memberships: np.ndarray  # [D, topics]
    lengths: np.ndarray  # [D], known words
    document_keywords: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...] | None
    titles: tuple[str, ...] | None
    of: int

    @property
    def topic(self) -> np.ndarray:
        """The most probable topic of each, as a place in the model's list.  [D]"""
        return np.asarray(self.memberships.argmax(1))

    def __len__(self) -> int:
        return len(self.mean)


def choose_documents(
    model: DocumentModel,
    documents: Any,
    labels: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    most: int = MAX_DOCUMENTS,
) -> DocumentSample:
    """At most `most` documents that have a known word, drawn with the model's seed and kept in their order."""
    counts = model.count(documents)  # once: counting texts is slower than everything below
    for name, column in (("labels", labels), ("titles", titles)):
        if column is not None and len(column) != counts.shape[0]:
            raise InputError(f"there are {len(column)} {name} for {counts.shape[0]} documents")
    has_words = np.concatenate([block.getnnz(1) > 0 for block in blocks_of(counts)])
    if not has_words.any():
        raise InputError("no document has a word that the model knows: there is nothing to show")
    rows = _sample(np.flatnonzero(has_words), most, model.seed)
    sample = counts[rows]
    posterior = model.posterior(sample)
    log_frequencies = model.fitted_.network.word_log_frequencies.cpu().numpy()
    return DocumentSample(
        mean=posterior.mean,
        std=posterior.std,
        memberships=model.memberships_of(posterior),
        lengths=np.asarray(sample.sum(1)).ravel(),
        document_keywords=document_keywords(sample, log_frequencies, model.fitted_.vocabulary.words),
        labels=None if labels is None else tuple(_label(labels[row]) for row in rows),
        titles=None if titles is None else tuple(one_line(titles[row]) for row in rows),
        of=counts.shape[0],
    )


def _sample(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _label(value: object) -> str:
    return (one_line(value, 60) if value is not None else "") or NO_LABEL


# Map

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
    hover = [_map_hover(row, sample, topics[sample.topic[row]].name) for row in range(len(sample))]
    return Map(places, groups, place_apart(spots, places), hover, dot=5 if len(sample) > 500 else 8)


def _map_hover(row: int, sample: DocumentSample, topic: str) -> str:
    label = f"{for_plotly(sample.labels[row])} · " if sample.labels else ""
    lines = [f"<b>{label}{for_plotly(one_line(topic, 60))}</b>"]
    if sample.titles and sample.titles[row]:
        lines.append(wrapped_for_plotly(sample.titles[row]))
    lines.append(f"<i>{wrapped_for_plotly(', '.join(sample.document_keywords[row]))}</i>")
    return "<br>".join(lines)


FRAME_SHAPE = 1.65  # width of the picture by its height
CHARACTER_WIDTH, LINE_HEIGHT = 0.011, 0.03  # of the names, as shares of the picture's height


def middle_of(name: str, places: np.ndarray) -> NamedSpot:
    """The name at the middle of its documents; the median, because strays lie far out."""
    x, y = np.median(places, axis=0).tolist()
    return NamedSpot(name, x, y)


def place_apart(spots: Iterable[NamedSpot], places: np.ndarray) -> list[NamedSpot]:
    """From the top down, each moved down where it would cover one already written."""
    width, height = np.ptp(places, axis=0) if len(places) else (1.0, 1.0)
    frame = max(float(width) / FRAME_SHAPE, float(height), 1e-9)  # the height of the picture, in the map's units
    written: list[NamedSpot] = []
    for spot in sorted(spots, key=lambda spot: -spot.y):
        while any(_covers(spot, other, frame) for other in written):
            spot = spot._replace(y=spot.y - 0.005 * frame)
        written.append(spot)
    return written


def _covers(one: NamedSpot, other: NamedSpot, frame: float) -> bool:
    width = 0.5 * CHARACTER_WIDTH * (len(one.name) + len(other.name))
    return abs(one.x - other.x) < width * frame and abs(one.y - other.y) < LINE_HEIGHT * frame


# Topics

MAX_CARDS = 24  # in the figure
COLUMNS, CARD_WIDTH, LINE = 4, 230, 20  # of the figure: cards in a row, pixels
WORD_SIZE, NAME_SIZE = 12, 12.5


class WordBar(NamedTuple):
    word: str
    weight: float
    share: float  # of the strongest word's weight


class TopicCard(NamedTuple):
    topic: TopicInfo
    relative: float  # size, to the largest topic
    bars: list[WordBar]


def topic_cards(topics: Sequence[TopicInfo]) -> list[TopicCard]:
    by_size = sorted(topics, key=lambda topic: -topic.documents)
    largest = max((topic.share for topic in topics), default=0.0) or 1.0
    return [TopicCard(topic, topic.share / largest, _bars(topic)) for topic in by_size]


def topic_figure(topics: Sequence[TopicInfo]) -> Figure:
    """The first cards as a picture."""
    cards = topic_cards(topics)[:MAX_CARDS]
    columns = max(1, min(COLUMNS, len(cards)))
    rows = -(-len(cards) // columns)
    height = LINE * (max((len(card.bars) for card in cards), default=0) + 2)
    with drawing_style():
        figure = Figure((columns * CARD_WIDTH / INCH, rows * height / INCH), label="Topics")
        for place, card in enumerate(cards):
            row, column = divmod(place, columns)
            frame = ((column + 0.06) / columns, 1 - (row + 1) / rows, 0.88 / columns, (1 - LINE / height) / rows)
            _draw_card(card, figure.add_axes(frame))
    return figure


def _draw_card(card: TopicCard, axes: Axes) -> None:
    """A line of one unit each: the topic's name and share, then its words."""
    lines = range(1, len(card.bars) + 1)
    axes.set(xlim=(0, 1), ylim=(len(card.bars) + 1, 0))
    axes.set_axis_off()
    axes.barh(lines, [0.8 * bar.share for bar in card.bars], height=0.86, color="#dbe6f8")
    axes.barh([0.45, 0.45], [1, card.relative], height=0.12, color=["#e6e8eb", ACCENT], clip_on=False)
    name = shortened(printable(card.topic.name), NAME_SIZE, 0.72 * CARD_WIDTH)
    axes.text(0, 0, name, fontsize=NAME_SIZE, fontweight="bold", va="center")
    right: dict[str, Any] = {"ha": "right", "va": "center", "color": MIDDLE_INK, "fontsize": 11}
    axes.text(1, 0, f"{card.topic.share:.1%}", **right)
    for line, bar in zip(lines, card.bars, strict=True):
        axes.text(
            0.02, line, shortened(printable(bar.word), WORD_SIZE, 0.65 * CARD_WIDTH), fontsize=WORD_SIZE, va="center"
        )
        axes.text(1, line, f"{bar.weight:.3f}", **right)


def _bars(topic: TopicInfo) -> list[WordBar]:
    strongest = max(topic.weights, default=0.0) or 1.0
    words = zip(topic.words, topic.weights, strict=True)
    return [WordBar(word, weight, weight / strongest) for word, weight in words]


# Topics by the values of a column

MAX_SHARE_CHARTS = 12
MAX_VALUES = 30  # classes, the most frequent; all others are one
SHOWN_VALUES = 8  # of a topic, those in which it is most frequent


class Breakdown(NamedTuple):
    column: str
    over_time: bool
    charts: list[Chart]
    words: list[DistinctWords]


def breakdown(model: DocumentModel, documents: Any, column: ColumnValues) -> Breakdown | None:
    """None where there is nothing to compare: a single value."""
    values = [one_line(value, 60) if value not in (None, "") else NO_VALUE for value in column.values]
    if not column.over_time:
        values = _frequent(values)
    if len(set(values)) < 2:
        return None
    shares: Sequence[TopicShare] = model.topic_shares(documents, values)
    if column.over_time:  # documents without a date have no place on the line
        shares = [one for one in shares if one.value != NO_VALUE]
    words = [] if column.over_time else model.distinct_words(documents, values)
    return Breakdown(column.column, column.over_time, _charts(shares, column.over_time), words)


def _frequent(values: list[str]) -> list[str]:
    """The rarest are put together if there are too many."""
    common = Counter(values).most_common()
    if len(common) <= MAX_VALUES:
        return values
    kept = {value for value, _ in common[: MAX_VALUES - 1]}
    return [value if value in kept else OTHERS for value in values]


def _charts(shares: Sequence[TopicShare], over_time: bool) -> list[Chart]:
    by_topic: dict[int, list[TopicShare]] = defaultdict(list)
    for share in shares:
        by_topic[share.topic].append(share)
    largest = sorted(by_topic.values(), key=lambda found: -sum(one.documents for one in found))[:MAX_SHARE_CHARTS]
    reach = 1.05 * max((one.high for found in largest for one in found), default=1.0)
    return [_over_time(found) if over_time else _by_class(found, min(reach, 1.0)) for found in largest]


def _by_class(found: list[TopicShare], reach: float) -> Intervals:
    shown = sorted(found, key=lambda one: -one.share)[:SHOWN_VALUES]
    share, low, high = (np.array([getattr(one, name) for one in shown]) for name in ("share", "low", "high"))
    axis = Axis(one_line(found[0].name, 60), limits=(0, reach), percent=True)
    return Intervals(
        [one.value for one in shown], share, low, high, [ACCENT] * len(shown), _share_hover(shown), axis, 24
    )


def _over_time(found: list[TopicShare]) -> Curve:
    share, low, high = (np.array([getattr(one, name) for one in found]) for name in ("share", "low", "high"))
    axes = (
        Axis(one_line(found[0].name, 60), names=[one.value for one in found]),
        Axis("", from_zero=True, percent=True),
    )
    return Curve(
        np.arange(len(found), dtype=float), share, axes, _share_hover(found), marker=5, interval=(low, high), height=240
    )


def _share_hover(shown: Sequence[TopicShare]) -> list[str]:
    return [
        f"{for_plotly(one.value)}: {one.share:.1%} [{one.low:.1%}, {one.high:.1%}]<br>"
        f"{one.documents:,} of {one.of:,} documents"
        for one in shown
    ]


# Examples

LENGTHS = (0.08, 0.4, 0.7, 0.96)  # quantiles: the spread of the posterior is seen to shrink with the length
DIMENSIONS = 7
LEAST_PROBABILITY, MAX_EXAMPLE_TOPICS = 0.05, 3  # of the topics shown for a document


class Example(NamedTuple):
    row: int
    title: str
    label: str | None
    words: int
    topics: list[tuple[str, float]]  # name and probability


def choose_examples(
    sample: DocumentSample, topics: Sequence[TopicInfo], quantiles: Sequence[float] = LENGTHS
) -> list[Example]:
    """The documents at these quantiles of length, shortest first."""
    by_length = np.argsort(sample.lengths, kind="stable")
    places = sorted({round(quantile * (len(sample) - 1)) for quantile in quantiles})
    return [_example(int(by_length[place]), sample, topics) for place in places]


def posterior_spread(
    example: Example, sample: DocumentSample, dimensions: list[LatentDimension], axis: Axis
) -> Intervals | None:
    """Posterior mean and standard deviation on the dimensions where the document lies farthest from the prior.

    A dimension's sign is arbitrary, so each row is named by the end it leans to and drawn towards the right. Dimensions
    whose interval covers zero are left out; None if that leaves nothing.
    """
    mean, std = sample.mean[example.row], sample.std[example.row]
    by_number = {dimension.number: dimension for dimension in dimensions}
    strongest = np.argsort(-np.abs(mean), kind="stable")[:DIMENSIONS]
    strongest = strongest[np.abs(mean[strongest]) > std[strongest]].tolist()
    if not strongest:
        return None
    values, spread = np.abs(mean[strongest]), std[strongest]
    return Intervals(
        [", ".join(words_towards(by_number[k], mean[k])[:3]) for k in strongest],
        values,
        values - spread,
        values + spread,
        [ACCENT] * len(strongest),
        [f"{value:.2f} ± {width:.2f}" for value, width in zip(values, spread, strict=True)],
        axis,
        row_height=26,
        zero_line=True,
    )


def common_axis(examples: list[Example], sample: DocumentSample) -> Axis:
    """The same for all examples, so that they can be compared."""
    rows = [example.row for example in examples]
    reach = float((np.abs(sample.mean[rows]) + sample.std[rows]).max(initial=1.0)) * 1.05
    return Axis(limits=(-0.1 * reach, reach))


def _example(row: int, sample: DocumentSample, topics: Sequence[TopicInfo]) -> Example:
    title = (sample.titles[row] if sample.titles else "") or ", ".join(sample.document_keywords[row])
    label = sample.labels[row] if sample.labels else None
    probable = np.argsort(-sample.memberships[row], kind="stable")[:MAX_EXAMPLE_TOPICS]
    named = [(topics[place].name, float(sample.memberships[row, place])) for place in probable]
    shown = named[:1] + [one for one in named[1:] if one[1] >= LEAST_PROBABILITY]
    return Example(row, title, label, round(float(sample.lengths[row])), shown)


# Latent dimensions


def latent_units(topics: list[LatentDimension]) -> Bars:
    """One bar per latent unit, in the order of `topics`."""
    return Bars(
        [topic.kl for topic in topics],
        [ACCENT if topic.kl > ACTIVE else FAINT for topic in topics],
        [_dimension_hover(topic) for topic in topics],
        (Axis("latent units, by KL"), Axis("KL, nats per document", from_zero=True)),
    )


def active_units(topics: list[LatentDimension]) -> int:
    return sum(topic.kl > ACTIVE for topic in topics)


def _dimension_hover(topic: LatentDimension) -> str:
    return f"unit {topic.number}<br><i>{for_plotly(', '.join(topic.words[:6]))}</i><br>{topic.kl:.3f} nats"
