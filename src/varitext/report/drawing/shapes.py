"""Small figures as shapes, written as SVG text: what a page can show without a script, and what a file can hold.

`painting.py` paints the same shapes as PNG.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from varitext.report.escaping import printable

Point = tuple[float, float]
INK = "black"
CHARACTER_WIDTH = 0.58  # of the font size, on average


class Rectangle(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    fill: str
    opacity: float = 1.0

    def svg(self) -> str:
        visible = "" if self.opacity == 1 else f' fill-opacity="{self.opacity:.3f}"'
        size = f'width="{self.width:.1f}" height="{self.height:.1f}"'
        return f'<rect x="{self.x:.1f}" y="{self.y:.1f}" {size} fill="{self.fill}"{visible}/>'


class Line(NamedTuple):
    points: tuple[Point, ...]
    stroke: str
    width: float = 1.0
    opacity: float = 1.0
    dashes: str = ""

    def svg(self) -> str:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)
        visible = "" if self.opacity == 1 else f' stroke-opacity="{self.opacity:.3f}"'
        dashed = f' stroke-dasharray="{self.dashes}"' if self.dashes else ""
        look = f'fill="none" stroke="{self.stroke}" stroke-width="{self.width:g}"'
        return f'<polyline points="{path}" {look}{visible}{dashed}/>'


class Dots(NamedTuple):
    """Many of one look, as one path of strokes without length, `M12.3 4.5h0`: a few bytes each."""

    points: tuple[Point, ...]
    radius: float
    fill: str
    opacity: float = 1.0

    def svg(self) -> str:
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in self.points)
        look = f'fill="none" stroke="{self.fill}" stroke-width="{2 * self.radius:g}" stroke-linecap="round"'
        visible = "" if self.opacity == 1 else f' stroke-opacity="{self.opacity:.3f}"'
        return f'<path d="{path}" {look}{visible}/>'


class Text(NamedTuple):
    x: float
    y: float  # of the base line
    words: str
    size: float = 12
    weight: str = "normal"
    anchor: str = "start"  # or middle, end
    fill: str = ""  # the ink of the drawing if empty
    turned: bool = False  # to be read from below

    def svg(self) -> str:
        style = f'font-size="{self.size:g}" font-weight="{self.weight}"'
        style += "" if self.anchor == "start" else f' text-anchor="{self.anchor}"'
        style += f' fill="{self.fill}"' if self.fill else ""
        style += f' transform="rotate(-90 {self.x:.1f} {self.y:.1f})"' if self.turned else ""
        return f'<text x="{self.x:.1f}" y="{self.y:.1f}" {style} xml:space="preserve">{escape(self.words)}</text>'


Shape = Rectangle | Line | Dots | Text


class Drawing:
    """Shapes one after another; (0, 0) is the upper left corner."""

    def __init__(self, width: float, height: float, title: str):
        self.width, self.height, self.title = width, height, title
        self.shapes: list[Shape] = []

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0) -> None:
        self.shapes.append(Rectangle(x, y, width, height, fill, opacity))

    def line(
        self, points: Sequence[Point], stroke: str, width: float = 1, opacity: float = 1, dashes: str = ""
    ) -> None:
        self.shapes.append(Line(tuple(points), stroke, width, opacity, dashes))

    def dots(self, points: Sequence[Point], radius: float, fill: str, opacity: float = 1.0) -> None:
        self.shapes.append(Dots(tuple(points), radius, fill, opacity))

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float = 12,
        weight: str = "normal",
        anchor: str = "start",
        fill: str = "",
        turned: bool = False,
    ) -> None:
        self.shapes.append(Text(x, y, printable(words), size, weight, anchor, fill, turned))

    def svg(self) -> str:
        """A file of its own, on white paper."""
        paper = f'<rect width="{self.width:.0f}" height="{self.height:.0f}" fill="white"/>'
        return self._svg('xmlns="http://www.w3.org/2000/svg" ', paper)

    def inline_svg(self) -> str:
        """For a page: on its paper, in its ink, as wide as there is room."""
        return self._svg(f'role="img" fill="currentColor" style="max-width:{self.width:.0f}px" ', "")

    def _svg(self, attributes: str, paper: str) -> str:
        head = f'<svg {attributes}viewBox="0 0 {self.width:.0f} {self.height:.0f}" font-family="sans-serif">'
        title = f"<title>{escape(printable(self.title))}</title>"
        body = [shape.svg() for shape in self.shapes]
        return "\n".join([head, title, *([paper] if paper else []), *body, "</svg>"]) + "\n"


def width_of(words: str, size: float) -> float:
    """About as many pixels as the words take."""
    return CHARACTER_WIDTH * size * len(words)


def shortened(words: str, size: float, width: float) -> str:
    """As much of the words as fits."""
    longest = max(1, int(width / (CHARACTER_WIDTH * size)))
    return words if len(words) <= longest else words[: max(1, longest - 1)].rstrip() + "…"
