"""What figures are drawn on, by matplotlib: one quiet style, pixels, and shapes that stay small in an SVG file."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from unicodedata import east_asian_width

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.textpath import text_to_path

from varitext.report.drawing.style import INK, MIDDLE_INK

__all__ = ["INCH", "Axes", "Figure", "canvas", "dots", "drawing_style", "rectangles", "shortened", "text_width"]

INCH = 72  # pixels of a figure: a point of type is a pixel
SCALE = 2  # pixels of a PNG for each: sharp on today's screens
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the first comes with matplotlib
    "font.size": 12,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign is a dollar sign
    "axes.labelcolor": INK,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.spines.bottom": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 13,
    "axes.titlelocation": "left",
    "grid.color": "#e3e5e9",
    "xtick.bottom": False,
    "ytick.left": False,
    "xtick.color": MIDDLE_INK,
    "ytick.color": MIDDLE_INK,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.dpi": INCH,
    "savefig.dpi": SCALE * INCH,
    "svg.fonttype": "none",
    "svg.hashsalt": "varitext",
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """Around all that draws or saves: what the user has set for matplotlib does not matter, and is not touched."""
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # a box stands in its place
        yield


def canvas(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    """A whole figure to draw on in pixels; (0, 0) is the upper left corner."""
    figure = Figure((width / INCH, height / INCH), label=title)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    return figure, axes


def dots(axes: Axes, places: np.ndarray, diameter: float, colour: str, opacity: float = 1.0) -> None:
    """Many of one look as one path, each a stroke of hardly any length with round ends: a few bytes of SVG a dot."""
    hardly = np.array([2e-5 * np.ptp(axes.get_xlim()), 0])
    ends = np.stack([places, places + hardly], 1).reshape(-1, 2)
    path = Outline(ends, np.tile([Outline.MOVETO, Outline.LINETO], len(places)))
    path.should_simplify = False
    look = {"edgecolor": colour, "linewidth": diameter, "alpha": opacity, "capstyle": "round"}
    axes.add_patch(PathPatch(path, facecolor="none", snap=False, clip_on=False, **look))


def rectangles(
    axes: Axes, boxes: Sequence[tuple[float, float, float, float]], colour: str, opacity: float = 1.0
) -> None:
    """Left, top, width, height each; as one path."""
    outlines = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)] for x, y, w, h in boxes]
    codes = [Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY]
    if outlines:
        path = Outline(np.concatenate(outlines), np.tile(codes, len(outlines)))
        axes.add_patch(PathPatch(path, facecolor=colour, alpha=opacity, linewidth=0, clip_on=False))


@cache
def text_width(words: str, size: float) -> float:
    """Pixels; wide characters, which matplotlib's font lacks, are as wide as their size."""
    measured = "".join("W" if east_asian_width(one) in "WF" else one for one in words)
    with warnings.catch_warnings(action="ignore"):  # other characters that the font lacks
        font = FontProperties(family="DejaVu Sans", size=size)
        return float(text_to_path.get_text_width_height_descent(measured, font, ismath=False)[0])


def shortened(words: str, size: float, width: float) -> str:
    """As much of the words as fits."""
    if text_width(words, size) <= width:
        return words
    while words and text_width(words + "…", size) > width:
        words = words[:-1]
    return words.rstrip() + "…"
