"""Drawings as PNG, painted by matplotlib: it needs no browser, and brings a font of its own."""

import warnings
from pathlib import Path

from varitext.files import atomic_file
from varitext.report.drawing.shapes import INK, Dots, Drawing, Line, Rectangle, Shape, Text

SCALE = 2.0  # pixels of the file for each of the drawing: sharp on today's screens
POINTS = 72 / 100  # a pixel of the drawing in matplotlib's unit of type and lines, at 100 pixels an inch
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def write_png(drawing: Drawing, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((drawing.width / 100, drawing.height / 100), dpi=100 * SCALE, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for place, shape in enumerate(drawing.shapes):
        axes.add_artist(_artist(shape, axes)).set_zorder(place)
    with atomic_file(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # a box stands in its place
        FigureCanvasAgg(figure).print_png(temporary, metadata={"Software": None, "Title": None})


def _artist(shape: Shape, axes):
    from matplotlib import lines, patches, text

    match shape:
        case Rectangle(x, y, width, height, fill, opacity):
            return patches.Rectangle((x, y), width, height, facecolor=fill, alpha=opacity, linewidth=0)
        case Line(points, stroke, width, opacity, dashes):
            style = (0, tuple(float(length) for length in dashes.split())) if dashes else "-"
            look = {"color": stroke, "linewidth": width * POINTS, "alpha": opacity, "linestyle": style}
            return lines.Line2D(*zip(*points, strict=True), **look)
        case Dots(points, radius, fill, opacity):
            look = {"color": fill, "alpha": opacity, "markersize": 2 * radius * POINTS, "markeredgewidth": 0}
            return lines.Line2D(*zip(*points, strict=True), linestyle="", marker="o", **look)
        case Text(x, y, words, size, weight, anchor, fill, turned):
            look = {"fontsize": size * POINTS, "fontweight": weight, "color": fill or INK}
            turn = {"rotation": 90, "rotation_mode": "anchor"} if turned else {}
            # the words are no formula: a dollar sign is a dollar sign
            placed = {"horizontalalignment": ANCHORS[anchor], "verticalalignment": "baseline", "parse_math": False}
            return text.Text(x, y, words, transform=axes.transData, **look, **placed, **turn)
