"""Charts of a document model: map, topics, topic shares by column, example posteriors and latent dimensions."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from varitext.charts.colours import ACCENT, FAINT, PALETTE, neighbour_colours
from varitext.charts.labels import densest_place, frame_of, place_names
from varitext.charts.records import (
    Axis,
    Bars,
    Chart,
    ColumnValues,
    Curve,
    Group,
    Intervals,
    Map,
    for_plotly,
    one_line,
    wrapped_for_plotly,
)
from varitext.corpora.dates import all_bins
from varitext.corpora.sharded_counts import Counts, blocks_of
from varitext.documents.fitting import ACTIVE, FittedDocuments
from varitext.documents.posterior import Posterior
from varitext.documents.topic_model import TreeMerge
from varitext.documents.topic_records import Records, TopicInfo, TopicShare
from varitext.errors import InputError
from varitext.evaluation.keywords import DistinctWords, document_keywords
from varitext.evaluation.latent_dimensions import LatentDimension, words_towards
from varitext.evaluation.shares import NO_VALUE, Bins

OTHERS = "all others"
NAME_LENGTH = 60  # characters of a topic's name or a label on a chart


class TopicModel(Protocol):
    """What charts need from a `DocumentModel`."""

    seed: int
    fitted_: FittedDocuments

    def count(self, X: Any) -> Counts: ...
    def posterior(self, X: Any) -> Posterior: ...
    def topics(self) -> Records[TopicInfo]: ...
    def topic_memberships(self, X: Any) -> np.ndarray: ...
    def topic_shares(self, X: Any, values: Sequence[object], bins: Bins = None) -> Records[TopicShare]: ...
    def distinct_words(self, X: Any, values: Sequence[object]) -> list[DistinctWords]: ...
    def topic_tree(self) -> list[TreeMerge]: ...


# Sample

MAX_DOCUMENTS = 4000  # a browser moves them smoothly, and t-SNE lays them out in seconds
NO_LABEL = "no label"


@dataclass(frozen=True)
class DocumentSample:
    """The documents that the charts show, one row each; `of` is the number of all documents."""

    mean: np.ndarray  # [D, K]
    std: np.ndarray  # [D, K]
    memberships: np.ndarray  # [D, topics]
    lengths: np.ndarray  # [D], known words
    keywords: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...] | None
    titles: tuple[str, ...] | None
    of: int

    @property
    def topic(self) -> np.ndarray:
        """The most probable topic of each document, as an index into the model's topics.  [D]"""
        return np.asarray(self.memberships.argmax(1))

    def __len__(self) -> int:
        return len(self.mean)


def choose_documents(
    model: TopicModel,
    documents: Any,
    labels: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    most: int = MAX_DOCUMENTS,
    posterior: Posterior | None = None,
) -> DocumentSample:
    """Draw at most `most` documents that have a known word, with the model's seed; their order is kept.

    `posterior` is the posterior of all documents, if it is known already.
    """
    counts = model.count(documents)  # once: counting texts is slower than everything below
    for name, column in (("labels", labels), ("titles", titles)):
        if column is not None and len(column) != counts.shape[0]:
            raise InputError(f"{len(column)} {name} given for {counts.shape[0]} documents")
    rows = np.flatnonzero(np.concatenate([block.getnnz(1) > 0 for block in blocks_of(counts)]))
    if not len(rows):
        raise InputError("No document has a word that the model knows: nothing to show")
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(model.seed).choice(rows, most, replace=False))
    sample = counts[rows]
    own = model.posterior(sample) if posterior is None else Posterior(posterior.mean[rows], posterior.std[rows])
    log_frequencies = model.fitted_.network.word_log_frequencies.cpu().numpy()
    return DocumentSample(
        mean=own.mean,
        std=own.std,
        memberships=model.topic_memberships(own),
        lengths=np.asarray(sample.sum(1)).ravel(),
        keywords=document_keywords(sample, log_frequencies, model.fitted_.vocabulary.words),
        labels=None if labels is None else tuple(_value(labels[row], NO_LABEL) for row in rows.tolist()),
        titles=None if titles is None else tuple(one_line(titles[row]) for row in rows.tolist()),
        of=counts.shape[0],
    )


def _value(value: object, missing: str) -> str:
    return (one_line(value, NAME_LENGTH) if value is not None else "") or missing


# Map

MAX_GROUPS = len(PALETTE)


def document_map(sample: DocumentSample, topics: Sequence[TopicInfo], places: np.ndarray, groups: list[Group]) -> Map:
    """The documents coloured by group, with the name of each group at the densest place of its documents."""
    frame, named = frame_of(places), [group for group in groups if group.name != OTHERS]
    anchors = np.array([densest_place(places[group.rows], frame) for group in named]).reshape(-1, 2)
    spots = place_names([group.name for group in named], anchors, places)
    hover = [_document_hover(row, sample, topics[sample.topic[row]].name) for row in range(len(sample))]
    return Map(places, groups, spots, hover, dot=5 if len(sample) > 500 else 8)


def topic_groups(sample: DocumentSample, topics: Sequence[TopicInfo], places: np.ndarray) -> list[Group]:
    """The documents by topic, the most frequent first; topics that touch on the map differ in colour."""
    frequent = [place for place, _ in Counter(sample.topic.tolist()).most_common()]
    rows = [np.flatnonzero(sample.topic == place) for place in frequent]
    names = [one_line(topics[place].name, NAME_LENGTH) for place in frequent]
    order = np.argsort(frequent)[
        np.searchsorted(np.sort(frequent), sample.topic)
    ]  # each document's index in `frequent`
    return [*map(Group, names, rows, neighbour_colours(places, order, len(frequent)))]


def label_groups(names: tuple[str, ...]) -> list[Group]:
    """The documents by label in alphabetical order; the rarest labels share one colour if there are too many."""
    frequent = [name for name, _ in Counter(names).most_common(MAX_GROUPS + 1)]
    kept = sorted(frequent if len(frequent) <= MAX_GROUPS else frequent[: MAX_GROUPS - 1])
    every = np.array(names, dtype=object)
    groups = [Group(name, np.flatnonzero(every == name), PALETTE[place]) for place, name in enumerate(kept)]
    others = np.flatnonzero(~np.isin(every, kept)) if len(every) else np.zeros(0, int)
    return [Group(OTHERS, others, FAINT), *groups] if len(others) else groups


def _document_hover(row: int, sample: DocumentSample, topic: str) -> str:
    label = f"{for_plotly(sample.labels[row])} · " if sample.labels else ""
    lines = [f"<b>{label}{for_plotly(one_line(topic, NAME_LENGTH))}</b>"]
    if sample.titles and sample.titles[row]:
        lines.append(wrapped_for_plotly(sample.titles[row]))
    lines.append(f"<i>{wrapped_for_plotly(', '.join(sample.keywords[row]))}</i>")
    return "<br>".join(lines)


# Topics

MAX_CARDS = 24  # in the figure


class TopicCard(NamedTuple):
    topic: TopicInfo
    relative: float  # size, relative to the largest topic
    bars: list[tuple[str, float, float]]  # word, weight, weight relative to the strongest word


def topic_cards(topics: Sequence[TopicInfo]) -> list[TopicCard]:
    """The largest topic first."""
    largest = max((topic.share for topic in topics), default=0.0) or 1.0
    cards = []
    for topic in sorted(topics, key=lambda topic: -topic.documents):
        strongest = max(topic.weights, default=0.0) or 1.0
        bars = [(word, weight, weight / strongest) for word, weight in zip(topic.words, topic.weights, strict=True)]
        cards.append(TopicCard(topic, topic.share / largest, bars))
    return cards


def topic_charts(topics: Sequence[TopicInfo], most: int = MAX_CARDS) -> list[Intervals]:
    """The words of the largest topics with p(word | topic)."""
    charts = []
    for topic, *_ in topic_cards(topics)[:most]:
        weights, words = np.array(topic.weights), [one_line(word, 24) for word in topic.words]
        about = f"{topic.share:.1%}" + ("" if topic.stability is None else f", stability {topic.stability:.2f}")
        title, hover = f"{one_line(topic.name, 40)} ({about})", [for_plotly(word) for word in topic.words]
        reach = float(weights.max(initial=1e-9))
        colours, axis = [ACCENT] * len(weights), Axis(limits=(-0.03 * reach, 1.06 * reach))
        charts.append(Intervals(words, weights, 0 * weights, weights, colours, hover, axis, row_height=20, title=title))
    return charts


# Topics by the values of a column

MAX_SHARE_CHARTS = 12
MAX_VALUES = 30  # classes shown; all but the most frequent are combined
SHOWN_VALUES = 8  # values shown for a topic: those in which it is most frequent


class Breakdown(NamedTuple):
    column: str
    over_time: bool
    charts: list[Chart]
    words: list[DistinctWords]


def breakdown(
    model: TopicModel, documents: Any, column: ColumnValues, posterior: Posterior | None = None
) -> Breakdown | None:
    """The largest topics by the values of a column, or over time; None if there is only one value.

    `posterior` is the posterior of the documents, if it is known already.
    """
    values = [_value(value, NO_VALUE) for value in column.values]
    if not column.over_time:
        values = _frequent(values)
    if len(set(values)) < 2:
        return None
    shares = [
        one
        for one in model.topic_shares(documents if posterior is None else posterior, values)
        if not (column.over_time and one.value == NO_VALUE)
    ]
    words = [] if column.over_time else model.distinct_words(documents, values)
    return Breakdown(column.column, column.over_time, share_charts(shares, column.over_time), words)


def _frequent(values: list[str]) -> list[str]:
    """The values, the rarest of them combined if there are too many."""
    common = Counter(values).most_common()
    if len(common) <= MAX_VALUES:
        return values
    kept = {value for value, _ in common[: MAX_VALUES - 1]}
    return [value if value in kept else OTHERS for value in values]


def share_charts(shares: Sequence[TopicShare], over_time: bool, most: int = MAX_SHARE_CHARTS) -> list[Chart]:
    """Charts of the largest topics; periods without documents are gaps."""
    by_topic: dict[int, list[TopicShare]] = defaultdict(list)
    for share in shares:
        by_topic[share.topic].append(share)
    largest = sorted(by_topic.values(), key=lambda found: -sum(one.documents for one in found))[:most]
    reach = min(1.05 * max((one.high for found in largest for one in found), default=1.0), 1.0)
    if over_time:
        periods = all_bins([one.value for one in largest[0]]) if largest else []
        return [_chart_over_time(found, periods) for found in largest]
    return [_chart_by_value(sorted(found, key=lambda one: -one.share)[:SHOWN_VALUES], reach) for found in largest]


def _chart_by_value(found: list[TopicShare], reach: float) -> Intervals:
    """The chart of one topic; the axis begins left of zero, so that dots at zero do not cover the names."""
    share, low, high = np.array([(one.share, one.low, one.high) for one in found]).T
    axis, colours = Axis(limits=(-0.03 * reach, reach), percent=True), [ACCENT] * len(found)
    names, hover = [one.value for one in found], [_share_hover(one) for one in found]
    return Intervals(names, share, low, high, colours, hover, axis, row_height=24, title=_title(found))


def _chart_over_time(found: list[TopicShare], periods: Sequence[str]) -> Curve:
    by_period = {one.value: one for one in found}
    shown = [by_period.get(period) for period in periods]
    nothing = (np.nan, np.nan, np.nan)
    share, low, high = np.array([(one.share, one.low, one.high) if one else nothing for one in shown]).T
    hover = [_share_hover(one) if one else "" for one in shown]
    axes = (Axis(names=periods), Axis(from_zero=True, percent=True))
    x, interval = np.arange(len(periods), dtype=float), (low, high)
    return Curve(x, share, axes, hover, marker=5, interval=interval, title=_title(found), height=240)


def _title(found: list[TopicShare]) -> str:
    return one_line(found[0].name, NAME_LENGTH)


def _share_hover(one: TopicShare) -> str:
    numbers = f"{one.share:.1%} [{one.low:.1%}, {one.high:.1%}]"
    return f"{for_plotly(one.value)}: {numbers}<br>{one.documents:,} of {one.of:,} documents"


# Examples

LENGTHS = (0.08, 0.4, 0.7, 0.96)  # quantiles: the posterior narrows as documents get longer
DIMENSIONS = 7
LEAST_PROBABILITY, MAX_EXAMPLE_TOPICS = 0.05, 3  # for a topic to be shown for a document, and how many are


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


def _example(row: int, sample: DocumentSample, topics: Sequence[TopicInfo]) -> Example:
    title = (sample.titles[row] if sample.titles else "") or ", ".join(sample.keywords[row])
    label = sample.labels[row] if sample.labels else None
    probable = np.argsort(-sample.memberships[row], kind="stable")[:MAX_EXAMPLE_TOPICS]
    named = [(topics[place].name, float(sample.memberships[row, place])) for place in probable]
    shown = named[:1] + [one for one in named[1:] if one[1] >= LEAST_PROBABILITY]
    return Example(row, title, label, round(float(sample.lengths[row])), shown)


def common_axis(examples: list[Example], sample: DocumentSample) -> Axis:
    """The same axis for all examples, so that they can be compared."""
    rows = [example.row for example in examples]
    reach = float((np.abs(sample.mean[rows]) + sample.std[rows]).max(initial=1.0)) * 1.05
    return Axis(limits=(-0.1 * reach, reach))


def posterior_spread(
    example: Example, sample: DocumentSample, dimensions: list[LatentDimension], axis: Axis, title: str = ""
) -> Intervals | None:
    """Posterior mean and standard deviation on the dimensions where the document lies farthest from the prior.

    A dimension's sign is arbitrary, so each row is named by the end that the document leans towards and drawn to the
    right. Dimensions whose interval covers zero are left out; None if none remain.
    """
    mean, std = sample.mean[example.row], sample.std[example.row]
    by_number = {dimension.number: dimension for dimension in dimensions}
    strongest = np.argsort(-np.abs(mean), kind="stable")[:DIMENSIONS]
    strongest = strongest[np.abs(mean[strongest]) > std[strongest]].tolist()
    if not strongest:
        return None
    names = [", ".join(words_towards(by_number[k], mean[k])[:3]) for k in strongest]
    values, spread = np.abs(mean[strongest]), std[strongest]
    hover = [f"{value:.2f} ± {width:.2f}" for value, width in zip(values, spread, strict=True)]
    colours = [ACCENT] * len(strongest)
    low, high = values - spread, values + spread
    return Intervals(names, values, low, high, colours, hover, axis, 26, zero_line=True, title=title)


# Latent dimensions


def dimension_chart(dimensions: list[LatentDimension]) -> Bars:
    """The KL of each latent dimension, in the order given. A dimension near zero carries no information."""
    hover = [
        f"dimension {one.number}<br><i>{for_plotly(', '.join(one.words[:6]))}</i><br>{one.kl:.3f} nats"
        for one in dimensions
    ]
    colours = [ACCENT if one.kl > ACTIVE else FAINT for one in dimensions]
    axes = (Axis("latent dimensions, by KL"), Axis("KL, nats per document", from_zero=True))
    return Bars([one.kl for one in dimensions], colours, hover, axes)


def active_dimensions(dimensions: list[LatentDimension]) -> int:
    return sum(one.kl > ACTIVE for one in dimensions)
