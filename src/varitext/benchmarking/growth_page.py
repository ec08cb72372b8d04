"""Growth as Markdown and as a figure."""

import math
from typing import Any

import numpy as np

from varitext.benchmarking.growth import FULL, SAMPLED, Curve
from varitext.experiments.runs import markdown_table
from varitext.report.drawing.shapes import Drawing

AXES = {"documents": "documents", "words": "words", "latent": "latent dimensions"}
COSTS = {"documents": "seconds an epoch", "words": "seconds a document", "latent": "seconds a document"}
COLOURS = {FULL: "#1f5fa8", SAMPLED: "#c4561d"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 240, 180, 60, 40, 70


def growth_table(curves: list[Curve]) -> str:
    head = ["along", "softmax in training", "sizes", "cost at the smallest", "at the largest", "slope", "memory, MB"]
    rows = []
    for curve in curves:
        sizes = f"{curve.sizes[0]:,.0f} to {curve.sizes[-1]:,.0f}"
        memory = f"{curve.megabytes[0]:,.0f} to {curve.megabytes[-1]:,.0f}"
        cost = COSTS[curve.along]
        ends = [f"{value:.3g} {cost}" for value in (curve.seconds[0], curve.seconds[-1])]
        rows.append([AXES[curve.along], curve.softmax, sizes, *ends, f"{curve.slope:.2f}", memory])
    return markdown_table(head, rows)


def softmax_table(points: list[dict[str, Any]]) -> str:
    """The sampled softmax beside the full one, at every size of vocabulary that has both."""
    found = {(one["words"], one["softmax"]): one for one in points if one["curve"] == "words"}
    head = ["words", "a step, full / sampled", "log normaliser too low by", "spread of one estimate"]
    head += ["perplexity, full", "sampled", "seconds to fit, full", "sampled"]
    rows = []
    for words in sorted({words for words, softmax in found if softmax == SAMPLED and (words, FULL) in found}):
        full, sampled = found[words, FULL], found[words, SAMPLED]
        gain = full["seconds_per_document"] / sampled["seconds_per_document"]
        off = [f"{-sampled['log_normaliser_bias']:.4f} nats", f"{sampled['log_normaliser_spread']:.4f}"]
        fits = [_cell(one, key) for key in ("per_document_perplexity", "fit_seconds") for one in (full, sampled)]
        rows.append([f"{words:,}", f"{gain:.2f}", *off, *fits])
    return markdown_table(head, rows)


def _cell(point: dict[str, Any], key: str) -> str:
    return f"{point[key]:,.0f}" if key in point else ""


def growth_figure(curves: list[Curve]) -> str:
    """A panel for each size, both axes logarithmic; the slope stands beside each curve's name."""
    names = [name for name in AXES if any(curve.along == name for curve in curves)]
    drawing = Drawing(len(names) * (WIDTH + GAP) + LEFT, TOP + HEIGHT + 60, "Growth of the cost of training")
    for number, name in enumerate(names):
        _panel(drawing, LEFT + number * (WIDTH + GAP), name, [curve for curve in curves if curve.along == name])
    return drawing.svg()


def _panel(drawing: Drawing, left: float, name: str, curves: list[Curve]) -> None:
    sizes, seconds = (np.concatenate([getattr(curve, part) for curve in curves]) for part in ("sizes", "seconds"))

    def place(size: float, cost: float) -> tuple[float, float]:
        across = math.log(size / sizes.min()) / max(math.log(sizes.max() / sizes.min()), 1e-9)
        up = math.log(cost / seconds.min()) / max(math.log(seconds.max() / seconds.min()), 1e-9)
        return left + across * WIDTH, TOP + (1 - up) * HEIGHT

    drawing.line([(left, TOP), (left, TOP + HEIGHT), (left + WIDTH, TOP + HEIGHT)], "#888888")
    drawing.text(left, TOP - 10, COSTS[name], 11, "bold")
    drawing.text(left, TOP + HEIGHT + 32, f"{AXES[name]}, {sizes.min():,.0f} to {sizes.max():,.0f}", 11)
    for value in (seconds.min(), seconds.max()):
        drawing.text(left - 52, place(sizes.min(), value)[1] + 4, f"{value:.2g}", 10)
    for number, curve in enumerate(curves):
        points = [place(*pair) for pair in zip(curve.sizes, curve.seconds, strict=True)]
        colour = COLOURS[curve.softmax]
        drawing.line(points, colour, 1.5)
        drawing.dots([*points, (left + 12, TOP + 10 + 16 * number)], 3, colour)
        drawing.text(left + 20, TOP + 14 + 16 * number, f"{curve.softmax} softmax, slope {curve.slope:.2f}", 11)
