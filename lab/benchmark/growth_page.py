"""Growth as Markdown and as a figure."""

from typing import Any

from lab.benchmark.growth import FULL, SAMPLED, Curve
from varitext.report.drawing import INCH, Figure, drawing_style, svg_text
from varitext.reproduce.engine import markdown_table

AXES = {"documents": "documents", "words": "words", "latent": "latent dimensions"}
COSTS = {"documents": "seconds an epoch", "words": "seconds a document", "latent": "seconds a document"}
COLOURS = {FULL: "#1f5fa8", SAMPLED: "#c4561d"}
PANEL, HEIGHT = 320, 270  # pixels
TITLE = "Growth of the cost of training"


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
    with drawing_style():
        figure = Figure((len(names) * PANEL / INCH, HEIGHT / INCH), layout="constrained", label=TITLE)
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            for curve in (curve for curve in curves if curve.along == name):
                label = f"{curve.softmax} softmax, slope {curve.slope:.2f}"
                axes.loglog(curve.sizes, curve.seconds, "o-", color=COLOURS[curve.softmax], markersize=5, label=label)
            axes.set(title=COSTS[name], xlabel=AXES[name])
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:,g}")
            axes.minorticks_off()
            axes.legend(fontsize=10, loc="lower right")
    return svg_text(figure)
