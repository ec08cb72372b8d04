"""Axes one can read. p(h) = N(0, I) looks the same from every side, so a model's own axes are arbitrary.

Turning h and the word vectors together changes no probability. We turn them so that each document leans on few axes.
"""

import numpy as np


def readable_axes(means: np.ndarray, rounds: int = 60, tolerance: float = 1e-7) -> np.ndarray:
    """The rotation [K, K] that makes the coordinates of `means` [D, K] sparse (varimax, Kaiser 1958).

    Axes point to where the few documents that lean on them lie, so that the positive end of a topic is its topic.
    """
    centred = np.asarray(means, np.float64) - np.mean(means, 0, dtype=np.float64)
    axes, reached = np.eye(centred.shape[1]), 0.0
    for _ in range(rounds):
        turned = centred @ axes
        squares = turned * turned  # a power of three would take numpy many times as long
        left, gains, right = np.linalg.svd(centred.T @ (turned * (squares - squares.mean(0))))
        axes = left @ right
        if gains.sum() <= reached * (1 + tolerance):
            break
        reached = gains.sum()
    skewness = ((centred @ axes) ** 3).sum(0)
    return axes * np.where(skewness < 0, -1.0, 1.0)


def axes_towards(directions: np.ndarray, seen_before: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The rotation [K, K] under which word directions [V, K] come nearest to how they were seen before, [V, K].

    Orthogonal Procrustes (Schönemann 1966), a word weighing as much as it is frequent: after more training the axes
    are those that users know, however h itself has turned.
    """
    weighted = np.asarray(frequencies, np.float64)[:, None] * directions
    left, _, right = np.linalg.svd(weighted.T @ np.asarray(seen_before, np.float64))
    rotation: np.ndarray = left @ right
    return rotation
