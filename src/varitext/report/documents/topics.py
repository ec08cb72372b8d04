"""Topics as ranked words with bars, the ones that carry most first."""

from typing import NamedTuple

from varitext.documents.model import Topic
from varitext.report.drawing.shapes import Drawing, shortened
from varitext.report.drawing.style import ACCENT, MIDDLE_INK
from varitext.report.escaping import for_html

MOST_TOPICS = 24
OPPOSITE_WORDS = 5
COLUMNS, CARD_WIDTH, LINE = 4, 230.0, 20.0  # of the drawing: cards in a row, pixels


class Carried(NamedTuple):
    """A topic, and what it carries of the information in a document's vector."""

    topic: Topic
    share: float  # of all topics together
    relative: float  # to the topic that carries most


def carried_shares(topics: list[Topic], most: int = MOST_TOPICS) -> list[Carried]:
    """The first topics, which carry most."""
    total = sum(topic.kl for topic in topics) or 1.0
    largest = max((topic.kl for topic in topics), default=0.0) or 1.0
    return [Carried(topic, topic.kl / total, topic.kl / largest) for topic in topics[:most]]


def topic_cards(topics: list[Topic], most: int = MOST_TOPICS) -> str:
    """One card per topic: its words, how strong each is, and how much of the information the topic carries."""
    return f'<ol class="topics">{"".join(map(_card, carried_shares(topics, most)))}</ol>'


def topic_drawing(topics: list[Topic], most: int = MOST_TOPICS) -> Drawing:
    """The same as a picture."""
    shown = carried_shares(topics, most)
    card_height = LINE * (max((len(one.topic.words) for one in shown), default=0) + 2.2)
    columns = max(1, min(COLUMNS, len(shown)))
    drawing = Drawing(CARD_WIDTH * columns + 16, card_height * -(-len(shown) // columns) + 16, "Topics")
    for place, carried in enumerate(shown):
        row, column = divmod(place, columns)
        _draw_card(drawing, carried, 16 + column * CARD_WIDTH, 16 + row * card_height)
    return drawing


def _draw_card(drawing: Drawing, carried: Carried, left: float, top: float) -> None:
    topic, width = carried.topic, CARD_WIDTH - 24
    drawing.text(left, top + 14, f"Topic {topic.number}", 13, "bold")
    drawing.rectangle(left + 76, top + 7, 80, 6, "#e2e3de")
    drawing.rectangle(left + 76, top + 7, 80 * carried.relative, 6, ACCENT)
    drawing.text(left + width, top + 14, f"{carried.share:.1%}", 12, anchor="end", fill=MIDDLE_INK)
    for place, (word, weight, share) in enumerate(_bars(topic), start=1):
        line = top + place * LINE
        drawing.rectangle(left, line + 3, share * (width - 44), LINE - 3, "#dbe6f8")
        drawing.text(left + 5, line + 16, shortened(word, 13, width - 50), 13)
        drawing.text(left + width, line + 16, f"{weight:.2f}", 11.5, anchor="end", fill=MIDDLE_INK)


def _bars(topic: Topic) -> list[tuple[str, float, float]]:
    """Words with their weights, and these as shares of the strongest."""
    strongest = max((abs(weight) for weight in topic.weights), default=0.0) or 1.0
    words = zip(topic.words, topic.weights, strict=True)
    return [(word, weight, max(weight, 0) / strongest) for word, weight in words]


def _card(carried: Carried) -> str:
    topic = carried.topic
    words = "".join(
        f'<li><span class="bar" style="--share:{share:.3f}"></span>'
        f'<span class="word" dir="auto">{for_html(word)}</span><span class="weight">{weight:.2f}</span></li>'
        for word, weight, share in _bars(topic)
    )
    opposite = ", ".join(for_html(word) for word in topic.opposite_words[:OPPOSITE_WORDS])
    return (
        f'<li class="topic"><header><h3>Topic {topic.number}</h3>'
        f'<span class="carries" title="{topic.kl:.3f} nats">'
        f'<i style="--share:{carried.relative:.3f}"></i>{carried.share:.1%}</span></header>'
        f'<ol class="words">{words}</ol><p class="opposite">far from: <span dir="auto">{opposite}</span></p></li>'
    )
