"""Topics as a table of HTML, for notebooks."""

from collections.abc import Iterable
from html import escape

from varitext.documents.topic_records import TopicInfo

MAX_TOPICS = 30  # the largest


def topics_html(topics: Iterable[TopicInfo]) -> str:
    """Names and words are other people's: they are escaped."""
    by_size = sorted(topics, key=lambda topic: -topic.documents)
    rows = "".join(_row(topic) for topic in by_size[:MAX_TOPICS])
    more = f"<p>and {len(by_size) - MAX_TOPICS} smaller topics</p>" if len(by_size) > MAX_TOPICS else ""
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in ("topic", "documents", "name", "words"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _row(topic: TopicInfo) -> str:
    cells = (str(topic.number), f"{topic.documents:,} ({topic.share:.1%})", topic.name, " ".join(topic.words))
    return "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells) + "</tr>"
