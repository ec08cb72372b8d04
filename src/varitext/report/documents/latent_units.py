"""The KL of each latent unit, largest first. A unit near zero says nothing about any document."""

from varitext.documents.task import ACTIVE
from varitext.evaluation.latent_dimensions import LatentDimension
from varitext.report.drawing.charts import Axis, Bars
from varitext.report.drawing.style import ACCENT, FAINT
from varitext.report.escaping import for_plotly


def latent_units(topics: list[LatentDimension]) -> Bars:
    """One bar per latent unit, in the order of `topics`."""
    return Bars(
        [topic.kl for topic in topics],
        [ACCENT if topic.kl > ACTIVE else FAINT for topic in topics],
        [_hover(topic) for topic in topics],
        (Axis("latent units, by KL"), Axis("KL, nats per document", from_zero=True)),
    )


def active_units(topics: list[LatentDimension]) -> int:
    return sum(topic.kl > ACTIVE for topic in topics)


def _hover(topic: LatentDimension) -> str:
    return f"unit {topic.number}<br><i>{for_plotly(', '.join(topic.words[:6]))}</i><br>{topic.kl:.3f} nats"
