"""Topics as ranked words with bars, the ones that carry most first."""

import numpy as np

from varitext.document_model import Topic
from varitext.report.escaping import for_html

MOST_TOPICS = 24
OPPOSITE_WORDS = 5


def end_of_topic(topic: Topic, value: float) -> tuple[str, ...]:
    """The words at the end of the dimension on which `value` lies."""
    return topic.words if value >= 0 else topic.opposite_words


def strongest_topics(mean: np.ndarray, topics: list[Topic]) -> tuple[str, ...]:
    """For each document the words of the end of the dimension that it lies farthest out on."""
    by_number = {topic.number: topic for topic in topics}
    strongest = np.abs(mean).argmax(1)
    return tuple(
        " · ".join(end_of_topic(by_number[number], mean[row, number])[:3])
        for row, number in enumerate(strongest.tolist())
    )


def topic_cards(topics: list[Topic], most: int = MOST_TOPICS) -> str:
    """One card per topic: its words, how strong each is, and how much of the information the topic carries."""
    total = sum(topic.kl for topic in topics) or 1.0
    largest = max((topic.kl for topic in topics), default=0.0) or 1.0
    cards = "".join(_card(topic, topic.kl / total, topic.kl / largest) for topic in topics[:most])
    return f'<ol class="topics">{cards}</ol>'


def _card(topic: Topic, share: float, relative: float) -> str:
    strongest = max((abs(weight) for weight in topic.weights), default=0.0) or 1.0
    words = "".join(
        f'<li><span class="bar" style="--share:{max(weight, 0) / strongest:.3f}"></span>'
        f'<span class="word" dir="auto">{for_html(word)}</span><span class="weight">{weight:.2f}</span></li>'
        for word, weight in zip(topic.words, topic.weights, strict=True)
    )
    opposite = ", ".join(for_html(word) for word in topic.opposite_words[:OPPOSITE_WORDS])
    return (
        f'<li class="topic"><header><h3>Topic {topic.number}</h3>'
        f'<span class="carries" title="{topic.kl:.3f} nats per document">'
        f'<i style="--share:{relative:.3f}"></i>{share:.1%}</span></header>'
        f'<ol class="words">{words}</ol><p class="opposite">far from: <span dir="auto">{opposite}</span></p></li>'
    )
