"""How the fit went: what was measured on held-out data after every round."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from varitext.report.drawing.style import ACCENT, MIDDLE_INK, WARM, quiet_figure

HEIGHT = 300

History = Sequence[dict[str, Any]]


class Measure(NamedTuple):
    """A column of the history, and how it is shown."""

    column: str
    axis: str
    colour: str
    format: str  # of one value
    kept: str = ""  # "min" or "max" where the best round of it was kept
    from_zero: bool = False
    of_kl: bool = False  # shaded while the KL's weight in the loss was still rising


OF_DOCUMENTS = (
    Measure("dev_perplexity", "held-out perplexity", ACCENT, ",.1f", kept="min"),
    Measure("dev_elbo_per_word", "log p(X) or its bound, nats per word", ACCENT, ".3f"),
    Measure("dev_kl", "KL, nats per document", WARM, ".2f", from_zero=True, of_kl=True),
)
OF_ANSWERS = (
    Measure("dev_map", "dev MAP", ACCENT, ".4f", kept="max"),
    Measure("dev_log_loss", "dev log loss, nats per pair", ACCENT, ".4f"),
    Measure("dev_kl", "KL, nats per pair", WARM, ".3g", from_zero=True, of_kl=True),
    Measure("leak", "posterior less prior path, nats", WARM, ".3g", from_zero=True, of_kl=True),
)


def answer_measures(has_latent: bool) -> tuple[Measure, ...]:
    """Without a latent there is no KL, and one path."""
    return OF_ANSWERS if has_latent else tuple(one for one in OF_ANSWERS if not one.of_kl)


def training_curves(history: History, measures: Sequence[Measure]) -> list[go.Figure]:
    """One figure for each measure that the history has more than one value of."""
    curves = [(measure, values_by_epoch(history, measure.column)) for measure in measures]
    return [_figure(measure, *values, history) for measure, values in curves if len(values[0]) > 1]


def values_by_epoch(history: History, column: str) -> tuple[list[float], list[float]]:
    """Epochs and values; `partial_fit` counts its epochs from the start, so they are added up."""
    epochs: list[float] = []
    values: list[float] = []
    before = offset = 0.0
    for record in history:
        epoch = record.get("epoch", before)
        if epoch < before:
            offset += before
        before = epoch
        if column in record:
            epochs.append(offset + before)
            values.append(record[column])
    return epochs, values


def _figure(measure: Measure, epochs: list[float], values: list[float], history: History) -> go.Figure:
    line = go.Scatter(
        x=epochs,
        y=values,
        mode="lines+markers",
        line={"color": measure.colour, "width": 2},
        marker={"size": 5, "color": measure.colour},
        hovertemplate=f"epoch %{{x:.3~g}}: %{{y:{measure.format}}}<extra></extra>",
    )
    figure = quiet_figure([line], HEIGHT)
    figure.update_layout(xaxis={"title": {"text": "epoch"}}, yaxis={"title": {"text": measure.axis}})
    if measure.from_zero:
        figure.update_yaxes(rangemode="tozero")
    if measure.kept:
        _mark_kept(figure, measure, epochs, values)
    full_weight = next((x for x, r in zip(epochs, history, strict=False) if r.get("kl_weight", 1) >= 1), 0)
    if measure.of_kl and full_weight > 0:
        figure.add_vrect(x0=0, x1=full_weight, fillcolor=MIDDLE_INK, opacity=0.1, line_width=0)
    return figure


def _mark_kept(figure: go.Figure, measure: Measure, epochs: list[float], values: list[float]) -> None:
    choose = min if measure.kept == "min" else max
    best = choose(range(len(values)), key=values.__getitem__)
    look = {"showarrow": True, "arrowhead": 0, "arrowcolor": MIDDLE_INK, "ax": -20}
    figure.add_annotation(
        x=epochs[best],
        y=values[best],
        text=f"kept: {values[best]:{measure.format}}",
        ay=-34 if measure.kept == "min" else 34,
        **look,
    )
