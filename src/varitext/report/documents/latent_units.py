"""What each latent unit carries: its KL, largest first. A unit near zero says nothing about any document."""

import plotly.graph_objects as go

from varitext.documents.model import Topic
from varitext.documents.task import ACTIVE
from varitext.report.drawing.style import ACCENT, FAINT, quiet_figure
from varitext.report.escaping import for_plotly


def latent_units(topics: list[Topic]) -> go.Figure:
    """One bar per latent unit, in the order of `topics`."""
    hover = [f"unit {topic.number}<br><i>{for_plotly(', '.join(topic.words[:6]))}</i>" for topic in topics]
    bars = go.Bar(
        x=list(range(1, len(topics) + 1)),
        y=[topic.kl for topic in topics],
        marker={"color": [ACCENT if topic.kl > ACTIVE else FAINT for topic in topics]},
        customdata=hover,
        hovertemplate="%{customdata}<br>%{y:.3f} nats<extra></extra>",
    )
    figure = quiet_figure([bars], height=260)
    figure.update_layout(
        bargap=0.25,
        xaxis={"title": {"text": "latent units, by what they carry"}, "showgrid": False},
        yaxis={"title": {"text": "information (KL), nats"}, "rangemode": "tozero"},
    )
    return figure


def active_units(topics: list[Topic]) -> int:
    return sum(topic.kl > ACTIVE for topic in topics)
