"""Nearest words: for the leading word of each of the first topics, the words that behave like it."""

from varitext.documents.model import DocumentModel, Topic
from varitext.report.escaping import for_html

MOST_WORDS = 16
NEIGHBOURS = 5


def nearest_words(model: DocumentModel, topics: list[Topic], most: int = MOST_WORDS) -> str:
    leading = list(dict.fromkeys(topic.words[0] for topic in topics))[:most]
    rows = "".join(_row(word, model.similar_words(word, NEIGHBOURS)) for word in leading)
    return f'<dl class="nearest">{rows}</dl>'


def _row(word: str, neighbours: list[tuple[str, float]]) -> str:
    near = ", ".join(
        f'<span title="cosine {similarity:.2f}">{for_html(other)}</span>' for other, similarity in neighbours
    )
    return f'<div><dt dir="auto">{for_html(word)}</dt><dd dir="auto">{near}</dd></div>'
