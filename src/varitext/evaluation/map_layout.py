"""Where documents lie on a map; the report and the page of the service share it, and it needs no plotly."""

from importlib.util import find_spec

import numpy as np

MIN_FOR_NEIGHBOURS = 10  # below, neighbourhoods mean nothing


def lay_out(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Two coordinates per document: t-SNE of the directions, the same for the same seed.

    Without openTSNE, or for a handful of documents, their first two principal components.

    One thread repeats to the bit; two were no faster for 4,000 documents on two busy cores.
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
    ).fit(directions.astype(np.float64))
    return np.asarray(embedding, np.float32)


def _start(directions: np.ndarray, seed: int) -> np.ndarray:
    """The principal components, as small as t-SNE wants them; a little noise parts documents that are the same."""
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
