"""Names on a map: each at the densest place of its documents, or beside it with a line, so that names do not overlap.

All sizes are shares of the picture's height.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

MAP_SHAPE = 1.65  # width of a map with names over its height
GRID = 160  # cells along the height, on which hidden documents are counted
CELLS, SMOOTH = 64, 1.5  # cells along one side of the grid on which density is measured; smoothing, in cells
CHARACTER_WIDTH, LINE_HEIGHT = 0.0107, 0.03  # of a name
ANGLES = np.arange(24) * np.pi / 12
RINGS = np.arange(0.035, 0.75, 0.03)  # distances of a name from its place
BESIDE = 0.055  # a name this near to its place needs no line
HIDING = 5.0  # cost of covering all documents, in heights
CROSSING = 0.12  # cost of a line across another name
ON_LINE = np.linspace(0.15, 0.9, 8)[:, None]


class Frame(NamedTuple):
    """The part of the map's plane that the picture shows."""

    left: float
    bottom: float
    width: float
    height: float


class PlacedName(NamedTuple):
    """The centre of a name, the place that it names, and whether a line must join them."""

    name: str
    x: float
    y: float
    at_x: float
    at_y: float
    joined: bool


def frame_of(places: np.ndarray, shape: float = MAP_SHAPE, room: float = 0.05) -> Frame:
    """A picture around the map; `shape` is its width over its height."""
    low, high = (places.min(0), places.max(0)) if len(places) else (np.zeros(2), np.ones(2))
    wide, high_ = (high - low).tolist()
    height = max(wide / shape, high_, 1e-9) * (1 + 2 * room)
    middle_x, middle_y = ((low + high) / 2).tolist()
    return Frame(middle_x - shape * height / 2, middle_y - height / 2, shape * height, height)


def densest_place(places: np.ndarray, frame: Frame) -> np.ndarray:
    """The densest place of these documents: the peak of a smoothed histogram.  [2]"""
    cells = _cells(places, frame)
    count = np.zeros((CELLS, CELLS))
    np.add.at(count, tuple(cells.T), 1.0)
    peak = np.array(np.unravel_index(gaussian_filter(count, SMOOTH, mode="constant").argmax(), count.shape))
    near = np.abs(cells - peak).max(1) <= 1
    return np.asarray(places[near if near.any() else slice(None)].mean(0))


def place_names(
    names: Sequence[str], anchors: np.ndarray, places: np.ndarray, shape: float = MAP_SHAPE
) -> list[PlacedName]:
    """Place names in order, each at lowest cost: distance, hidden documents and crossed names."""
    frame = frame_of(places, shape)
    scaled, dots = _scaled(anchors, frame), _Dots.counted(_scaled(places, frame), shape)
    taken: list[np.ndarray] = []  # centre and half size of each box
    for name, anchor in zip(names, scaled, strict=True):
        half = 0.5 * np.array([CHARACTER_WIDTH * max(len(name), 4), LINE_HEIGHT])
        taken.append(np.concatenate([_cheapest(anchor, half, np.array(taken).reshape(-1, 4), dots, shape), half]))
    found = []
    for name, box, anchor, near in zip(names, taken, anchors.tolist(), scaled, strict=True):
        x, y = frame.left + frame.height * float(box[0]), frame.bottom + frame.height * float(box[1])
        found.append(PlacedName(name, x, y, anchor[0], anchor[1], bool(np.linalg.norm(box[:2] - near) > BESIDE)))
    return found


def _cheapest(anchor: np.ndarray, half: np.ndarray, taken: np.ndarray, dots: "_Dots", shape: float) -> np.ndarray:
    rings = RINGS[:, None, None] * np.stack([1.6 * np.cos(ANGLES), np.sin(ANGLES)], 1)  # wider than high, as names are
    spots = np.concatenate([anchor[None], (anchor + rings).reshape(-1, 2)])  # [N, 2]
    inside = (spots - half >= 0).all(1) & (spots + half <= [shape, 1]).all(1)
    spots = spots[inside] if inside.any() else spots
    free = ~_inside(spots, taken, half).any(1)
    spots = spots[free] if free.any() else spots[:1]
    away = np.linalg.norm((spots - anchor) / [1.6, 1], axis=1)
    lines = anchor + ON_LINE[:, None] * (spots - anchor)  # [points, N, 2]
    crossed = _inside(lines.reshape(-1, 2), taken).reshape(len(ON_LINE), len(spots), -1).any(0).sum(1)
    return np.asarray(spots[np.argmin(away + 3 * away**2 + CROSSING * crossed + HIDING * dots.share(spots, half))])


class _Dots(NamedTuple):
    """How many dots lie left of and below each corner of a grid, so that the dots in any box are counted at once."""

    sums: np.ndarray  # [columns + 1, rows + 1]

    @classmethod
    def counted(cls, dots: np.ndarray, shape: float) -> "_Dots":
        counts = np.zeros((max(1, round(GRID * shape)), GRID))
        np.add.at(counts, tuple(np.clip((GRID * dots).astype(int), 0, np.array(counts.shape) - 1).T), 1.0)
        return cls(np.pad(counts.cumsum(0).cumsum(1), ((1, 0), (1, 0))))

    def share(self, middles: np.ndarray, half: np.ndarray) -> np.ndarray:
        """The share of the dots that lies in each box.  [N]"""
        low, high = (np.rint(GRID * (middles + sign * half)).astype(int) for sign in (-1, 1))
        (left, bottom), (right, top) = (np.clip(one, 0, np.array(self.sums.shape) - 1).T for one in (low, high))
        inside = self.sums[right, top] - self.sums[left, top] - self.sums[right, bottom] + self.sums[left, bottom]
        return np.asarray(inside / max(float(self.sums[-1, -1]), 1.0))


def _inside(points: np.ndarray, boxes: np.ndarray, margin: np.ndarray | float = 0.0) -> np.ndarray:
    """Which points lie in which boxes.  [points, boxes]"""
    return np.asarray((np.abs(points[:, None] - boxes[:, :2]) < boxes[:, 2:] + margin).all(2))


def _scaled(places: np.ndarray, frame: Frame) -> np.ndarray:
    return np.asarray((places - [frame.left, frame.bottom]) / frame.height)


def _cells(places: np.ndarray, frame: Frame) -> np.ndarray:
    shares = (places - [frame.left, frame.bottom]) / [frame.width, frame.height]
    return np.asarray(np.clip((CELLS * shares).astype(int), 0, CELLS - 1))
