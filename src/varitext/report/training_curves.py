"""How the fit went: held-out perplexity and KL after every round."""

from typing import Any

import plotly.graph_objects as go

from varitext.report.style import ACCENT, MIDDLE_INK, WARM, quiet_figure

HEIGHT = 300


def perplexity_curve(history: list[dict[str, Any]]) -> go.Figure:
    """Held-out perplexity by epoch, the best round marked."""
    epochs, values = _curve(history, "dev_perplexity")
    figure = quiet_figure([_line(epochs, values, ACCENT, "perplexity %{y:,.1f}")], HEIGHT)
    figure.update_layout(xaxis={"title": {"text": "epoch"}}, yaxis={"title": {"text": "held-out perplexity"}})
    if values:
        _mark_best(figure, epochs, values)
    return figure


def kl_curve(history: list[dict[str, Any]]) -> go.Figure:
    """KL of the held-out documents by epoch, shaded while its weight in the loss was still rising."""
    epochs, values = _curve(history, "dev_kl")
    figure = quiet_figure([_line(epochs, values, WARM, "KL %{y:.2f} nats")], HEIGHT)
    figure.update_layout(
        xaxis={"title": {"text": "epoch"}}, yaxis={"title": {"text": "KL, nats per document"}, "rangemode": "tozero"}
    )
    full_weight = next((x for x, r in zip(epochs, history, strict=False) if r.get("kl_weight", 1) >= 1), 0)
    if full_weight > 0:
        figure.add_vrect(x0=0, x1=full_weight, fillcolor=MIDDLE_INK, opacity=0.1, line_width=0)
    return figure


def _curve(history: list[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
    """Epochs and values; `partial_fit` counts its epochs from the start, so they are added up."""
    epochs: list[float] = []
    values: list[float] = []
    before = offset = 0.0
    for record in history:
        if record["epoch"] < before:
            offset += before
        before = record["epoch"]
        if name in record:
            epochs.append(offset + before)
            values.append(record[name])
    return epochs, values


def _line(epochs: list[float], values: list[float], colour: str, hover: str) -> go.Scatter:
    return go.Scatter(
        x=epochs,
        y=values,
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"size": 5},
        hovertemplate=f"epoch %{{x:.3~g}}: {hover}<extra></extra>",
    )


def _mark_best(figure: go.Figure, epochs: list[float], values: list[float]) -> None:
    best = min(range(len(values)), key=values.__getitem__)
    figure.add_annotation(
        x=epochs[best],
        y=values[best],
        text=f"kept: {values[best]:,.0f}",
        showarrow=True,
        arrowhead=0,
        arrowcolor=MIDDLE_INK,
        ax=-20,
        ay=-34,
    )
