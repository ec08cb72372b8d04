"""Figures for files, drawn by matplotlib: one style, charts as panels, SVG with real text and reproducible bytes."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unicodedata import east_asian_width

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

from varitext.charts.colours import INK, MIDDLE_INK, PALETTE
from varitext.charts.labels import MAP_SHAPE, frame_of
from varitext.charts.records import Axis, Bars, Chart, Curve, Group, Intervals, Map, printable
from varitext.errors import InputError
from varitext.files import atomic_file

__all__ = ["Axes", "Figure"]  # of matplotlib, for modules that draw

# Canvas

INCH = 72  # pixels of a figure: a point of type is a pixel
SCALE = 2  # pixels of a PNG per pixel of a figure
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the first comes with matplotlib
    "font.size": 12,
    "text.color": INK,
    "text.parse_math": False,  # dollar signs are printed as they are
    "axes.labelcolor": INK,
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 13,
    "axes.titlelocation": "left",
    "grid.color": "#e3e5e9",
    **{"xtick.bottom": False, "xtick.color": MIDDLE_INK, "xtick.labelsize": 11},
    **{"ytick.left": False, "ytick.color": MIDDLE_INK, "ytick.labelsize": 11},
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.dpi": INCH,
    "savefig.dpi": SCALE * INCH,
    "svg.fonttype": "none",
    "svg.hashsalt": "varitext",
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw and save within this context: it ignores the user's matplotlib settings and restores them afterwards."""
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # a box is shown instead
        yield


def canvas(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    """An empty figure with coordinates in pixels; (0, 0) is the upper left corner."""
    figure = Figure((width / INCH, height / INCH), label=title)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    return figure, axes


def dots(axes: Axes, places: np.ndarray, diameter: float, colour: str, opacity: float = 1.0) -> None:
    """Many dots as one path: each is a very short stroke with round ends, a few bytes of SVG."""
    short = np.array([2e-5 * np.ptp(axes.get_xlim()), 0])
    ends = np.stack([places, places + short], 1).reshape(-1, 2)
    path = Outline(ends, np.tile([Outline.MOVETO, Outline.LINETO], len(places)))
    path.should_simplify = False
    look = {"edgecolor": colour, "linewidth": diameter, "alpha": opacity, "capstyle": "round"}
    axes.add_patch(PathPatch(path, facecolor="none", snap=False, clip_on=False, **look))


def rectangles(
    axes: Axes, boxes: Sequence[tuple[float, float, float, float]], colour: str, opacity: float = 1.0
) -> None:
    """Draw boxes (left, top, width, height) as one path."""
    outlines = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)] for x, y, w, h in boxes]
    codes = [Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY]
    if outlines:
        path = Outline(np.concatenate(outlines), np.tile(codes, len(outlines)))
        axes.add_patch(PathPatch(path, facecolor=colour, alpha=opacity, linewidth=0, clip_on=False))


@cache
def text_width(words: str, size: float) -> float:
    """Width in pixels; each wide character, which matplotlib's font lacks, counts as wide as `size`."""
    measured = "".join("W" if east_asian_width(one) in "WF" else one for one in words)
    with warnings.catch_warnings(action="ignore"):  # other characters that the font lacks
        font = FontProperties(family="DejaVu Sans", size=size)
        return float(text_to_path.get_text_width_height_descent(measured, font, ismath=False)[0])


def shortened(words: str, size: float, width: float) -> str:
    """As much of the text as fits."""
    if text_width(words, size) <= width:
        return words
    while words and text_width(words + "…", size) > width:
        words = words[:-1]
    return words.rstrip() + "…"


# Charts

PANEL_WIDTH = 520.0
TITLE_SIZE, TITLE_HEIGHT = 16, 44
LEGEND_SIZE, LEGEND_LINE = 12, 19.0
GAP = 12.0
LINE_PANEL = (400, 280)  # pixels
DASHED: dict[str, Any] = {"color": MIDDLE_INK, "linewidth": 1, "linestyle": (0, (5, 4))}
ROOM = 0.05  # of the values' range, on each side


def chart_figure(title: str, charts: Sequence[Chart], width: float = PANEL_WIDTH, columns: int = 2) -> Figure:
    """The charts as panels side by side, with a legend below if one is a map with few groups."""
    columns = min(columns, len(charts))
    heights = [max(chart.height for chart in charts[at : at + columns]) for at in range(0, len(charts), columns)]
    groups = next((chart.groups for chart in charts if isinstance(chart, Map)), ())
    groups = groups if len(groups) <= len(PALETTE) else ()  # the map names them
    whole = columns * (width + GAP) + GAP
    longest = max((text_width(printable(group.name), LEGEND_SIZE) for group in groups), default=0.0)
    per_line = max(1, int(whole // (longest + 44)))
    height = TITLE_HEIGHT + sum(heights) + GAP * len(heights) + LEGEND_LINE * -(-len(groups) // per_line)
    with drawing_style():
        layout = ConstrainedLayoutEngine(w_pad=GAP / INCH, h_pad=GAP / INCH)
        figure = Figure((whole / INCH, height / INCH), layout=layout, label=title)
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        for place, chart in enumerate(charts):
            _draw(chart, figure.add_subplot(grid[divmod(place, columns)]))
        words = shortened(printable(title), TITLE_SIZE, whole - 4 * GAP)
        figure.suptitle(words, x=GAP / whole, ha="left", fontsize=TITLE_SIZE, fontweight="bold")
        if groups:
            _legend(figure, groups, per_line)
    return figure


def _draw(chart: Chart, axes: Axes) -> None:
    match chart:
        case Intervals():
            _draw_intervals(chart, axes)
        case Curve():
            _draw_curve(chart, axes)
        case Bars():
            _draw_bars(chart, axes)
        case Map():
            _draw_map(chart, axes)


def _draw_intervals(chart: Intervals, axes: Axes) -> None:
    rows = np.arange(len(chart.names))
    axes.hlines(rows, chart.low, chart.high, colors=list(chart.colours), linewidth=2)
    for row, value, colour in zip(rows, chart.values, chart.colours, strict=True):
        axes.plot(value, row, "o", color=colour, markersize=9)
    axes.set_yticks(rows, [printable(name) for name in chart.names])
    axes.set(ylim=(len(rows) - 0.4, -0.6), title=printable(chart.title))  # from the top down
    axes.grid(visible=False, axis="y")
    if chart.zero_line:
        axes.axvline(0, color=MIDDLE_INK, linewidth=1)
    _label(axes, "x", chart.axis, np.concatenate([chart.low, chart.high]))


def _draw_curve(chart: Curve, axes: Axes) -> None:
    low, high = chart.interval or (chart.y, chart.y)
    if chart.shaded_until > 0:
        axes.axvspan(0, chart.shaded_until, color=MIDDLE_INK, alpha=0.1, linewidth=0)
    if chart.reference is not None:
        axes.plot(*np.transpose(chart.reference), **DASHED)
    if chart.interval is not None:
        axes.vlines(chart.x, low, high, colors=chart.colour, linewidth=2)
    axes.plot(chart.x, chart.y, "o-" if chart.marker else "-", color=chart.colour, markersize=chart.marker)
    if (note := chart.note) is not None:
        look: dict[str, Any] = {"fontsize": 12, "ha": "center", "arrowprops": {"arrowstyle": "-", "color": MIDDLE_INK}}
        away = (34 if note.right else -34, 34 if note.above else -34)
        axes.annotate(printable(note.text), (note.x, note.y), away, textcoords="offset points", **look)
    axes.set_title(printable(chart.title))
    _label(axes, "x", chart.axes[0], chart.x)
    _label(axes, "y", chart.axes[1], np.concatenate([low, high]))


def _draw_bars(chart: Bars, axes: Axes) -> None:
    axes.bar(np.arange(1, len(chart.values) + 1), chart.values, width=0.75, color=list(chart.colours))
    axes.grid(visible=False, axis="x")
    axes.margins(x=0.01)
    axes.set(xlabel=chart.axes[0].title, ylabel=chart.axes[1].title, title=printable(chart.title))


def _draw_map(chart: Map, axes: Axes) -> None:
    frame = frame_of(chart.places, MAP_SHAPE if chart.spots else 1.0)
    x, y = (frame.left, frame.left + frame.width), (frame.bottom, frame.bottom + frame.height)
    axes.set(xlim=x, ylim=y, title=printable(chart.title))
    axes.set_aspect("equal", anchor="N")
    axes.set_axis_off()
    for group in chart.groups:
        dots(axes, chart.places[group.rows], chart.dot, group.colour, 0.75)
    look = {"facecolor": "white", "alpha": 0.72, "linewidth": 0, "boxstyle": "square,pad=0.1"}
    for spot in (spot for spot in chart.spots if spot.joined):
        axes.plot([spot.x, spot.at_x], [spot.y, spot.at_y], color=MIDDLE_INK, linewidth=0.7)
    for spot in chart.spots:
        axes.text(spot.x, spot.y, printable(spot.name), fontsize=11, ha="center", va="center", bbox=look)


def _label(axes: Axes, which: str, axis: Axis, values: np.ndarray) -> None:
    """The axis's title, its limits, and ticks at round numbers."""
    values = values[np.isfinite(values)]
    low, high = float(np.min(values, initial=np.inf)), float(np.max(values, initial=-np.inf))
    if axis.from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = ROOM * (high - low) or 0.5 * abs(high) or 0.5
    limits = axis.limits or (low if axis.from_zero and low == 0 else low - room, high + room)
    ticks = PercentFormatter(1, decimals=0) if axis.percent else StrMethodFormatter("{x:,.6g}")
    drawn = axes.xaxis if which == "x" else axes.yaxis
    drawn.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    drawn.set_major_formatter(ticks)
    if axis.names:
        places = axis.shown_names()
        drawn.set_ticks(places, [printable(axis.names[place]) for place in places])
    drawn.set_label_text(printable(axis.title))
    (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)


class Line(NamedTuple):
    """A named series of one panel."""

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    colour: str


def line_figure(title: str, x_title: str, panels: Mapping[str, Sequence[Line]], scale: str = "linear") -> Figure:
    """Series over the same x in panels side by side, each under its own title; y starts at zero, `scale` is for x."""
    with drawing_style():
        size = (len(panels) * LINE_PANEL[0] / INCH, LINE_PANEL[1] / INCH)
        figure = Figure(size, layout="constrained", label=title)
        for axes, (name, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
            for line in lines:
                axes.plot(line.x, line.y, "o-", color=line.colour, markersize=4, label=printable(line.name))
            highest = max(float(np.max(line.y)) for line in lines)
            axes.set(title=name, xlabel=x_title, xscale=scale, ylim=(0, (1 + ROOM) * highest or 1))
            axes.minorticks_off()
            for drawn in (axes.xaxis, axes.yaxis):
                drawn.set_major_formatter("{x:,g}")
            if scale == "log":
                axes.set_xticks(sorted({float(x) for line in lines for x in line.x}))
            else:
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        series = axes.get_legend_handles_labels()  # the same in every panel
        if len(series[0]) > 1:
            figure.legend(*series, loc="outside lower center", ncols=len(series[0]), fontsize=LEGEND_SIZE)
    return figure


def _legend(figure: Figure, groups: Sequence[Group], columns: int) -> None:
    handles = [Line2D([], [], color=group.colour, marker="o", markersize=9, linestyle="") for group in groups]
    names = [printable(group.name) for group in groups]
    look = {"labelcolor": INK, "handletextpad": 0.2, "columnspacing": 1.5, "borderpad": 0}
    figure.legend(handles, names, loc="outside lower left", ncols=columns, fontsize=LEGEND_SIZE, **look)


# Files

Subject = TypeVar("Subject")
NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
# matplotlib's style element would affect the whole page
STYLE_ELEMENT = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>\s*", re.DOTALL)
DOTS = "stroke-linecap: round"  # see `dots`
PLACES = re.compile(r'( (?:d|x|y|width|height|transform)=")([^"]*)')


def svg_text(figure: Figure, paper: str = "white") -> str:
    """The figure as one `svg` element, for a file or a page, labelled with its title."""
    written = StringIO()
    with drawing_style():
        figure.savefig(written, format="svg", metadata=NO_METADATA, facecolor=paper)
    svg = written.getvalue()
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    head = head.replace('pt"', '"') + ' stroke-linejoin="round" stroke-linecap="butt" role="img">'
    body = re.sub(r"<[^>]+>", lambda tag: _compact(tag[0]), STYLE_ELEMENT.sub("", rest, count=1))
    return f"{head}\n<title>{escape(printable(str(figure.get_label())))}</title>" + re.sub(r">\s+<", ">\n<", body)


def save_figures(
    figures: Mapping[str, Callable[[Subject], Figure | None]],
    subject: Subject,
    folder: Path,
    names: Sequence[str],
    file_format: str,
) -> list[Path]:
    """Write the named figures, or all of them, to one file each; existing files are replaced once all are written."""
    drawn = {folder / f"{name}.{file_format}": figures[name](subject) for name in names or figures}
    kept = {path: figure for path, figure in drawn.items() if figure is not None}
    if names and len(kept) < len(drawn):
        missing = next(path for path in drawn if path not in kept)
        raise InputError(f"The model has nothing to show in figure {missing.stem!r}")
    with ExitStack() as stack:  # files are replaced when all are written
        for path, figure in kept.items():
            write_figure(figure, stack.enter_context(atomic_file(path)))
    return list(kept)


def write_figure(figure: Figure, path: Path) -> None:
    """Write the figure as SVG or PNG, depending on the suffix."""
    if path.suffix == ".svg":
        path.write_text(svg_text(figure), encoding="utf-8")
    else:
        with drawing_style():
            figure.savefig(path, format="png", metadata={"Software": None})


def _compact(tag: str) -> str:
    """Shorten a tag: coordinates in tenths of a pixel, dots as `M12.3 4.5h0`, no names for groups."""
    if tag.startswith("<g id="):
        return "<g/>" if tag.endswith("/>") else "<g>"  # an empty group closes itself
    tag = PLACES.sub(_rounded, re.sub(r' transform="rotate\(-0[^"]*"', "", tag))
    return re.sub(r"M (\S+) (\S+) L [\d. ]+", r"M\1 \2h0", tag) if DOTS in tag else tag


def _rounded(found: re.Match[str]) -> str:
    short = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), found[2])
    return found[1] + " ".join(short.split())
