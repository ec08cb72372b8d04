"""Topics as cards: name, size, words with bars, typical documents; the largest first."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from varitext.documents.topic_records import TopicInfo
from varitext.report.drawing.canvas import INCH, Axes, Figure, drawing_style, shortened
from varitext.report.drawing.style import ACCENT, MIDDLE_INK
from varitext.report.escaping import printable

MAX_TOPICS = 24  # in the figure
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
    cards = topic_cards(topics)[:MAX_TOPICS]
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
