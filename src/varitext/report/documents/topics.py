"""Topics as ranked words with bars, those with the highest KL first."""

from typing import Any, NamedTuple

from varitext.evaluation.topics import Topic
from varitext.report.drawing.canvas import INCH, Axes, Figure, drawing_style, shortened
from varitext.report.drawing.style import ACCENT, MIDDLE_INK
from varitext.report.escaping import printable

MOST_TOPICS = 24
COLUMNS, CARD_WIDTH, LINE = 4, 230, 20  # of the figure: cards in a row, pixels
WORD_SIZE = 12


class WordBar(NamedTuple):
    word: str
    weight: float
    share: float  # of the strongest word's weight


class TopicCard(NamedTuple):
    """A topic, and how much of the information (KL) in a document's vector is on its dimension."""

    topic: Topic
    share: float  # of all topics together
    relative: float  # to the topic with the highest KL
    bars: list[WordBar]


def topic_cards(topics: list[Topic], most: int = MOST_TOPICS) -> list[TopicCard]:
    """The first topics, which have the highest KL."""
    total = sum(topic.kl for topic in topics) or 1.0
    largest = max((topic.kl for topic in topics), default=0.0) or 1.0
    return [TopicCard(topic, topic.kl / total, topic.kl / largest, _bars(topic)) for topic in topics[:most]]


def topic_figure(topics: list[Topic]) -> Figure:
    """The cards as a picture."""
    cards = topic_cards(topics)
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
    """A line of one unit each: the topic's number and share, then its words."""
    lines = range(1, len(card.bars) + 1)
    axes.set(xlim=(0, 1), ylim=(len(card.bars) + 1, 0))
    axes.set_axis_off()
    axes.barh(lines, [0.8 * bar.share for bar in card.bars], height=0.86, color="#dbe6f8")
    axes.barh([0, 0], [0.34, 0.34 * card.relative], height=0.28, left=0.42, color=["#e6e8eb", ACCENT], clip_on=False)
    axes.text(0, 0, f"Topic {card.topic.number}", fontsize=13, fontweight="bold", va="center")
    right: dict[str, Any] = {"ha": "right", "va": "center", "color": MIDDLE_INK, "fontsize": 11}
    axes.text(1, 0, f"{card.share:.1%}", **right)
    for line, bar in zip(lines, card.bars, strict=True):
        axes.text(
            0.02, line, shortened(printable(bar.word), WORD_SIZE, 0.65 * CARD_WIDTH), fontsize=WORD_SIZE, va="center"
        )
        axes.text(1, line, f"{bar.weight:.2f}", **right)


def _bars(topic: Topic) -> list[WordBar]:
    strongest = max((abs(weight) for weight in topic.weights), default=0.0) or 1.0
    words = zip(topic.words, topic.weights, strict=True)
    return [WordBar(word, weight, max(weight, 0) / strongest) for word, weight in words]
