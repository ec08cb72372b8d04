"""Names written on the map, each at the middle of its documents, and apart from each other."""

from collections.abc import Iterable

import numpy as np

from varitext.report.drawing.charts import NamedSpot

FRAME_SHAPE = 1.65  # width of the picture by its height
CHARACTER_WIDTH, LINE_HEIGHT = 0.011, 0.03  # of the names, as shares of the picture's height


def middle_of(name: str, places: np.ndarray) -> NamedSpot:
    """The name at the middle of its documents; the median, because strays lie far out."""
    x, y = np.median(places, axis=0).tolist()
    return NamedSpot(name, x, y)


def place_apart(spots: Iterable[NamedSpot], places: np.ndarray) -> list[NamedSpot]:
    """From the top down, each moved down where it would cover one already written."""
    width, height = np.ptp(places, axis=0) if len(places) else (1.0, 1.0)
    frame = max(float(width) / FRAME_SHAPE, float(height), 1e-9)  # the height of the picture, in the map's units
    written: list[NamedSpot] = []
    for spot in sorted(spots, key=lambda spot: -spot.y):
        while any(_covers(spot, other, frame) for other in written):
            spot = spot._replace(y=spot.y - 0.005 * frame)
        written.append(spot)
    return written


def _covers(one: NamedSpot, other: NamedSpot, frame: float) -> bool:
    width = 0.5 * CHARACTER_WIDTH * (len(one.name) + len(other.name))
    return abs(one.x - other.x) < width * frame and abs(one.y - other.y) < LINE_HEIGHT * frame
