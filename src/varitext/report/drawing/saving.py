"""Figures as files: SVG written as text, PNG painted from the same drawing."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from varitext.errors import InputError
from varitext.files import write_text
from varitext.report.drawing.painting import write_png
from varitext.report.drawing.shapes import Drawing

Judged = TypeVar("Judged")
WRITERS: dict[str, Callable[[Drawing, Path], None]] = {
    "svg": lambda drawing, path: write_text(path, drawing.svg()),
    "png": write_png,
}


def check_figures(names: Sequence[str], known: Mapping[str, object], file_format: str) -> None:
    """Before anything is computed."""
    if file_format not in WRITERS:
        raise InputError(f"figures are saved as {' or '.join(WRITERS)}, not {file_format!r}")
    for name in names:
        if name not in known:
            raise InputError(f"no figure is called {name!r}; this model has {', '.join(known)}")


def save_figures(
    figures: Mapping[str, Callable[[Judged], Drawing | None]],
    judged: Judged,
    folder: Path,
    names: Sequence[str],
    file_format: str,
) -> list[Path]:
    """Write the figures named, or all that the model has; one file each. Earlier ones are replaced."""
    drawings = {name: figures[name](judged) for name in names or figures}
    paths = []
    for name, drawing in drawings.items():
        if drawing is not None:
            paths.append(folder / f"{name}.{file_format}")
            WRITERS[file_format](drawing, paths[-1])
        elif names:
            raise InputError(f"this model has nothing to show in the figure {name!r}")
    return paths
