"""Figures as files: SVG with real text, the same bytes each time, and PNG."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from html import escape
from io import StringIO
from pathlib import Path
from typing import TypeVar

from matplotlib.figure import Figure

from varitext.errors import InputError
from varitext.files import atomic_file
from varitext.report.drawing.canvas import drawing_style
from varitext.report.escaping import printable

Subject = TypeVar("Subject")
FORMATS = ("svg", "png")
NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
# matplotlib's own style element would reach beyond the picture in a page
STYLE_ELEMENT = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>\s*", re.DOTALL)
DOTS = "stroke-linecap: round"  # see `canvas.dots`
PLACES = re.compile(r'( (?:d|x|y|width|height|transform)=")([^"]*)')


def svg_text(figure: Figure, paper: str = "white") -> str:
    """The figure as one `svg` element, for a file or for a page; its label is the title."""
    written = StringIO()
    with drawing_style():
        figure.savefig(written, format="svg", metadata=NO_METADATA, facecolor=paper)
    svg = written.getvalue()
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    head = head.replace('pt"', '"') + ' stroke-linejoin="round" stroke-linecap="butt" role="img">'
    body = re.sub(r"<[^>]+>", lambda tag: _compact(tag[0]), STYLE_ELEMENT.sub("", rest, count=1))
    return f"{head}\n<title>{escape(printable(str(figure.get_label())))}</title>" + re.sub(r">\s+<", ">\n<", body)


def save_figure(figure: Figure, path: Path) -> None:
    """As SVG or PNG, by the name's ending; whole or not at all."""
    with atomic_file(path) as temporary:
        _write(figure, temporary)


def check_figures(names: Sequence[str], known: Sequence[str], file_format: str) -> None:
    """Before anything is computed."""
    if file_format not in FORMATS:
        raise InputError(f"figures are saved as {' or '.join(FORMATS)}, not {file_format!r}")
    for name in names:
        if name not in known:
            raise InputError(f"no figure is called {name!r}; this model has {', '.join(known)}")


def save_figures(
    figures: Mapping[str, Callable[[Subject], Figure | None]],
    subject: Subject,
    folder: Path,
    names: Sequence[str],
    file_format: str,
) -> list[Path]:
    """Write the figures named, or all that there are, one file each; earlier ones are replaced once all are written."""
    drawn = {folder / f"{name}.{file_format}": figures[name](subject) for name in names or figures}
    kept = {path: figure for path, figure in drawn.items() if figure is not None}
    if names and len(kept) < len(drawn):
        missing = next(path for path in drawn if path not in kept)
        raise InputError(f"this model has nothing to show in the figure {missing.stem!r}")
    with ExitStack() as stack:  # each takes its place when all are written
        for path, figure in kept.items():
            _write(figure, stack.enter_context(atomic_file(path)))
    return list(kept)


def _write(figure: Figure, path: Path) -> None:
    if path.suffix == ".svg":
        path.write_text(svg_text(figure), encoding="utf-8")
    else:
        with drawing_style():
            figure.savefig(path, format="png", metadata={"Software": None})


def _compact(tag: str) -> str:
    """Places in tenths of a pixel, dots as `M12.3 4.5h0`, no names for groups."""
    if tag.startswith("<g id="):
        return "<g/>" if tag.endswith("/>") else "<g>"  # an empty group closes itself
    tag = PLACES.sub(_rounded, re.sub(r' transform="rotate\(-0[^"]*"', "", tag))
    return re.sub(r"M (\S+) (\S+) L [\d. ]+", r"M\1 \2h0", tag) if DOTS in tag else tag


def _rounded(found: re.Match[str]) -> str:
    short = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), found[2])
    return found[1] + " ".join(short.split())
