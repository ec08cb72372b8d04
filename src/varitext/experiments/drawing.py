"""Small figures as SVG text: what a page can show without a script."""

from html import escape


class Drawing:
    """Shapes one after another; (0, 0) is the upper left corner."""

    def __init__(self, width: float, height: float, title: str):
        self.width, self.height, self.title = width, height, title
        self.shapes: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0) -> None:
        visible = "" if opacity == 1 else f' fill-opacity="{opacity:.3f}"'
        size = f'width="{width:.1f}" height="{height:.1f}"'
        self.shapes.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{fill}"{visible}/>')

    def circle(self, x: float, y: float, radius: float, fill: str) -> None:
        self.shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}"/>')

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: str, width: float = 1.0) -> None:
        ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
        self.shapes.append(f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>')

    def text(self, x: float, y: float, words: str, size: float = 12, weight: str = "normal") -> None:
        style = f'font-size="{size:g}" font-weight="{weight}"'
        self.shapes.append(f'<text x="{x:.1f}" y="{y:.1f}" {style} xml:space="preserve">{escape(words)}</text>')

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            'font-family="sans-serif">'
        )
        background = f'<rect width="{self.width:.0f}" height="{self.height:.0f}" fill="white"/>'
        return "\n".join([head, f"<title>{escape(self.title)}</title>", background, *self.shapes, "</svg>"]) + "\n"
