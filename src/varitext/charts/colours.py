"""Colours: mid-tones, readable on light and on dark backgrounds, and an assignment in which neighbours differ.

Distances are Euclidean in OKLab (Ottosson 2020), averaged over normal vision and the worse of protanopia and
deuteranopia (Machado et al. 2009).
"""

from functools import cache

import numpy as np
from scipy.spatial import cKDTree

INK = "#30363d"  # on white
MIDDLE_INK = "#717882"  # on any background; the page replaces it by its own
ACCENT = "#3f7cd6"
WARM = "#d9772e"
FAINT = "#8b929c"
# Ten hues, each strong and then light: neighbours in the list differ in hue.
PALETTE = (
    *("#3b6fd4", "#d9722e", "#2e9a5b", "#cf4452", "#8459c9", "#1496a8", "#b8901c", "#c94f94", "#6f8a26", "#94694d"),
    *("#7fa3ee", "#f0a878", "#74c69b", "#ee8b93", "#b79ae6", "#6cc7d4", "#dcc05f", "#e791c0", "#a8c063", "#c4a084"),
)

LIGHTNESS = (0.51, 0.6, 0.69)  # of OKLCH: about 3 to 1 against white and against dark paper
HUES = 16  # at each lightness
CHROMA = 0.17  # reduced where a screen cannot show the colour
NEIGHBOURS = 8  # of a document on the map
NEAR = 0.05  # how much two groups that are far apart still repel each other
SOFTEN = 0.002  # of squared distances

TO_LMS = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                   [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
TO_LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                   [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip
PROTANOPIA = np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                       [-0.003882, -0.048116, 1.051998]])  # fmt: skip
DEUTERANOPIA = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                         [-0.011820, 0.042940, 0.968881]])  # fmt: skip


def neighbour_colours(places: np.ndarray, group: np.ndarray, groups: int) -> list[str]:
    """A colour per group: groups that touch on the map get very different colours, all distinct if there are enough.

    Greedy, in the order of the groups: each takes the colour that the other groups, weighted by nearness, repel least.
    """
    colours, distances = _colours()
    near = nearness(places, group, groups) + NEAR
    repulsion = 1 / (np.square(distances) + SOFTEN)  # [C, C]
    chosen: list[int] = []
    for place in range(groups):
        chosen.append(int(np.argmin(repulsion[:, chosen] @ near[place, :place])) if chosen else 0)
    return [colours[one] for one in chosen]


def nearness(places: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """How near groups lie: the share of neighbours that belong to the other group, and how near their centres are.

    Returns a symmetric array.  [groups, groups]
    """
    together = np.zeros((groups, groups))
    if len(places) > 1:
        _, nearest = cKDTree(places).query(places, min(NEIGHBOURS + 1, len(places)))
        np.add.at(together, (np.repeat(group, nearest.shape[1]), group[nearest.ravel()]), 1)
    sizes = np.sqrt(np.maximum(together.sum(1), 1))
    touching = (together + together.T) / np.outer(sizes, sizes)
    return np.asarray(touching + _closeness(places, group, groups))


def _closeness(places: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """Closeness of centres, relative to the usual distance to the nearest one; 0 for a group without documents."""
    middles = np.full((groups, 2), np.nan)
    for one in np.unique(group):
        middles[one] = np.median(places[group == one], axis=0)
    apart = np.linalg.norm(middles[:, None] - middles, axis=2)
    others = np.where(np.isnan(apart) | np.eye(groups, dtype=bool), np.inf, apart).min(1)
    usual = np.median(others[np.isfinite(others)]) if np.isfinite(others).any() else 1.0
    return np.asarray(np.nan_to_num(np.exp(-0.5 * np.square(apart / max(float(usual), 1e-12)))))


@cache
def _colours() -> tuple[list[str], np.ndarray]:
    """The colours to choose from, and the distance between every pair.  [C, C]"""
    hues = np.arange(HUES) * 2 * np.pi / HUES
    turned = [(light, hue + 0.5 * row * hues[1]) for row, light in enumerate(LIGHTNESS) for hue in hues]
    rgb = np.array([_in_gamut(light, hue) for light, hue in turned])  # [C, 3], linear
    seen = [_lab(rgb @ vision.T) for vision in (np.eye(3), PROTANOPIA, DEUTERANOPIA)]
    normal, *others = (np.linalg.norm(lab[:, None] - lab, axis=2) for lab in seen)
    return [_hex(one) for one in rgb], 0.5 * (normal + np.minimum(*others))


def _in_gamut(light: float, hue: float) -> np.ndarray:
    """Linear RGB of the colour, with as much chroma as a screen can show."""
    for chroma in np.arange(CHROMA, 0, -0.005):
        lab = np.array([light, chroma * np.cos(hue), chroma * np.sin(hue)])
        rgb: np.ndarray = np.linalg.solve(TO_LMS, np.linalg.solve(TO_LAB, lab) ** 3)
        if rgb.min() >= 0 and rgb.max() <= 1:
            break
    return np.asarray(np.clip(rgb, 0, 1))


def _lab(rgb: np.ndarray) -> np.ndarray:
    return np.asarray(np.cbrt(np.clip(rgb, 0, 1) @ TO_LMS.T) @ TO_LAB.T)


def _hex(rgb: np.ndarray) -> str:
    encoded = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * np.maximum(rgb, 1e-9) ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * float(value)):02x}" for value in encoded)
