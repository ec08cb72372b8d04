"""How the fit went: what was measured on held-out data after every round."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from varitext.report.drawing.charts import Axis, Curve, Note
from varitext.report.drawing.style import ACCENT, WARM

History = Sequence[dict[str, Any]]


class Measure(NamedTuple):
    """A column of the history, and how it is shown."""

    column: str
    axis: str
    colour: str
    format: str  # of one value
    kept: str = ""  # "min" or "max" where a round was kept for the sake of it
    of_kl: bool = False  # from zero, and shaded while the KL's weight in the loss was still rising


DOCUMENT_CURVES = (
    Measure("dev_perplexity", "held-out perplexity", ACCENT, ",.1f", kept="min"),
    Measure("dev_elbo_per_word", "log p(X) or its bound, nats per word", ACCENT, ".3f"),
    Measure("dev_kl", "KL, nats per document", WARM, ".2f", of_kl=True),
)
ANSWER_CURVES = (
    Measure("dev_map", "dev MAP", ACCENT, ".4f", kept="max"),
    Measure("dev_log_loss", "dev log loss, nats per pair", ACCENT, ".4f"),
    Measure("dev_kl", "KL, nats per pair", WARM, ".3g", of_kl=True),
    Measure("posterior_prior_gap", "posterior less prior path, nats", WARM, ".3g", of_kl=True),
)


def answer_measures(has_latent: bool) -> tuple[Measure, ...]:
    """Without a latent there is no KL, and one path."""
    return ANSWER_CURVES if has_latent else tuple(one for one in ANSWER_CURVES if not one.of_kl)


def training_curves(history: History, measures: Sequence[Measure], kept: float | None = None) -> list[Curve]:
    """One for each measure that the history has more than one value of.

    `kept` is the value of the round that was kept, where that may not be the best one.
    """
    curves = [(measure, values_by_epoch(history, measure.column)) for measure in measures]
    return [_curve(measure, *values, history, kept) for measure, values in curves if len(values[0]) > 1]


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


def _curve(measure: Measure, epochs: list[float], values: list[float], history: History, kept: float | None) -> Curve:
    full_weight = next((x for x, r in zip(epochs, history, strict=False) if r.get("kl_weight", 1) >= 1), 0)
    return Curve(
        np.array(epochs),
        np.array(values),
        (Axis("epoch"), Axis(measure.axis, from_zero=measure.of_kl)),
        [f"epoch {epoch:.3g}: {value:{measure.format}}" for epoch, value in zip(epochs, values, strict=True)],
        measure.colour,
        marker=5,
        shaded_until=full_weight if measure.of_kl else 0,
        note=_kept(measure, epochs, values, kept) if measure.kept else None,
    )


def _kept(measure: Measure, epochs: list[float], values: list[float], kept: float | None) -> Note:
    best = min(values) if measure.kept == "min" else max(values)
    value = kept if kept in values else best
    epoch = epochs[values.index(value)]
    right = epoch < (epochs[0] + epochs[-1]) / 2
    return Note(epoch, value, f"kept: {value:{measure.format}}", above=measure.kept == "min", right=right)
