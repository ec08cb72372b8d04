"""Where documents lie on a map; report, notebooks and the page of the service share it, and it needs no plotly."""

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from varitext.evaluation.vectors import unit_rows

MIN_FOR_NEIGHBOURS = 10  # documents; with fewer, neighbourhoods mean nothing
TOWARDS_TOPIC = 0.5  # length of the step of a direction towards the centres of its topics
SHOW_EVERY = 25  # steps of t-SNE between two intermediate layouts
NEIGHBOURS = 5  # that determine the position of a further document
BLOCK = 2048  # documents per matrix product

Watch = Callable[[np.ndarray], None]  # is called with the layout so far


def towards_topics(vectors: np.ndarray, memberships: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Directions, each moved a step towards the centres of its topics, by their probabilities.  [D, K]

    Directions of single documents are noisy: by direction alone, neighbours on the map mix topics.
    """
    moved: np.ndarray = unit_rows(vectors) + TOWARDS_TOPIC * memberships @ unit_rows(centres)
    return moved


def lay_out(vectors: np.ndarray, seed: int, watch: Watch | None = None) -> np.ndarray:
    """Two coordinates per document: t-SNE of the directions, the same for the same seed.

    Without openTSNE, or for a handful of documents, they are the first two principal components. `watch` receives
    intermediate layouts.

    One thread gives identical results each time; two were no faster for 4,000 documents on two busy cores.
    """
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    if len(directions) < MIN_FOR_NEIGHBOURS or find_spec("openTSNE") is None:
        return _principal_components(directions)
    from openTSNE import TSNE

    embedding = TSNE(
        perplexity=min(30, (len(directions) - 1) / 3),
        early_exaggeration_iter=120,
        n_iter=250,
        initialization=_start(directions, seed),
        neighbors="exact",
        negative_gradient_method="fft" if len(directions) > 1000 else "bh",
        n_jobs=1,
        random_state=seed,
        callbacks=None if watch is None else lambda _step, _error, places: watch(np.array(places, np.float32)),
        callbacks_every_iters=SHOW_EVERY,
    ).fit(directions.astype(np.float64))
    return np.asarray(embedding, np.float32)


def place_among(vectors: np.ndarray, laid_out: np.ndarray, places: np.ndarray, seed: int) -> np.ndarray:
    """Positions of further documents among those on the map: beside the most central of their nearest.

    The mean of the nearest could lie among unrelated documents.
    """
    unit, known = unit_rows(vectors), unit_rows(laid_out)
    n = min(NEIGHBOURS, len(known))
    found = np.zeros((len(unit), 2), np.float32)
    for start in range(0, len(unit), BLOCK):
        cosines = unit[start : start + BLOCK] @ known.T  # [B, D]
        near = places[np.argpartition(-cosines, n - 1, axis=1)[:, :n]]  # [B, n, 2]
        apart = np.linalg.norm(near[:, :, None] - near[:, None], axis=3)  # [B, n, n]
        central = apart.sum(2).argmin(1)
        own = np.arange(len(near))
        step = np.median(apart[own, central], axis=1, keepdims=True)  # to the others
        aside = np.random.default_rng((seed, start)).normal(scale=0.5, size=(len(near), 2))
        found[start : start + BLOCK] = near[own, central] + np.minimum(step, _spacing(places)) * aside
    return found


def _spacing(places: np.ndarray) -> float:
    """The approximate distance between neighbours on a map."""
    return float(np.ptp(places, axis=0).max(initial=0.0) / np.sqrt(max(len(places), 1)))


def _start(directions: np.ndarray, seed: int) -> np.ndarray:
    """The principal components, scaled down as t-SNE needs them; a little noise separates identical documents."""
    start = _principal_components(directions) / max(float(np.abs(directions).max()), 1e-12)
    start = start + np.random.default_rng(seed).normal(scale=1e-3, size=start.shape)
    small: np.ndarray = start * (0.9e-4 / start.std(0).max())
    return small


def _principal_components(vectors: np.ndarray) -> np.ndarray:
    centred = vectors - vectors.mean(0, keepdims=True) if len(vectors) else vectors
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(vectors), 2), np.float32)
    places[:, : min(2, len(scale))] = (left * scale)[:, :2]
    return places
