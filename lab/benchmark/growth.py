"""How cost grows with documents, words and latent size: points in processes of their own, slopes, and a figure.

Every point is one small JSON file; what is measured already is not measured again. Linear growth is a slope of 1 of
log cost against log size; of cost per document, a slope of 0.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.benchmark.growth_point import Point
from lab.child import in_child
from varitext.errors import InputError
from varitext.files import read_json, write_json

FULL, SAMPLED = "full", "sampled"
FIT_EPOCHS = 5


class Size(NamedTuple):
    """A point: which curve it is on, and how large everything is."""

    curve: str  # documents, words, latent, and those with a sampled softmax
    documents: int = 10_000
    words: int = 2000
    latent_dim: int = 50
    softmax: str = FULL
    epochs: int = 0  # of a fit in earnest, to compare perplexities

    @property
    def name(self) -> str:
        return "-".join(map(str, self[:5]))


def sizes(quick: bool) -> Iterator[Size]:
    """Small ones first, and documents last, so that something can be seen early."""
    scale = 40 if quick else 1
    for words in (2000, 5000, 10_000, 20_000, 50_000, 100_000):
        epochs = FIT_EPOCHS if words >= 20_000 and not quick else 0
        for softmax in (FULL, SAMPLED) if words > 5000 else (FULL,):
            yield Size("words", 10_000 // scale, words // scale, 50 if scale == 1 else 8, softmax, epochs)
    for latent_dim in (10, 20, 50, 100, 200, 500):
        yield Size("latent", 10_000 // scale, latent_dim=latent_dim // min(scale, 10))
    for documents in (10_000, 50_000, 200_000, 800_000):
        yield Size("documents", documents // scale)


def run_growth(folder: Path, threads: int, quick: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measure what is not measured yet; all points that are there."""
    folder = folder / "growth"
    for size in sizes(quick):
        path = folder / f"{size.name}.json"
        if path.exists():
            say(f"growth: {size.name} is there already")
            continue
        say(f"growth: {size.name}")
        write_json(path, _measured(size, threads, say))
    return read_growth(folder)


def _measured(size: Size, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        train, test = (Path(name) / part for part in ("train", "test"))
        _draw(train, size.documents, size.words, 1, say)
        if size.epochs:
            _draw(test, 1000, size.words, 2, say)
        point = Point(str(train), size.latent_dim, size.softmax, threads, size.epochs, str(test))
        found = in_child("lab.benchmark.growth_point", asdict(point), threads, say)
    if found is None:
        raise InputError(f"growth: {size.name} could not be measured: see above")
    return size._asdict() | {"threads": threads} | found


def _draw(folder: Path, documents: int, words: int, seed: int, say: Callable[[str], None]) -> None:
    task = {"folder": str(folder), "documents": documents, "words": words, "seed": seed}
    if in_child("lab.benchmark.synthetic", task, 1, say) is None:
        raise InputError("growth: no documents could be drawn: see above")


def read_growth(folder: Path) -> list[dict[str, Any]]:
    return [read_json(path) for path in sorted(folder.glob("*.json"))]


class Curve(NamedTuple):
    """Cost against one size; both in ascending order of size."""

    along: str
    softmax: str
    sizes: np.ndarray
    seconds: np.ndarray  # of an epoch for `documents`, of a document for the others
    megabytes: np.ndarray

    @property
    def slope(self) -> float:
        """Of log seconds against log size, by least squares: 1 is linear."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


def curves(points: list[dict[str, Any]]) -> list[Curve]:
    found = []
    for along in ("documents", "words", "latent"):
        for softmax in (FULL, SAMPLED):
            chosen = [one for one in points if (one["curve"], one["softmax"]) == (along, softmax)]
            if len(chosen) > 1:
                found.append(_curve(along, softmax, chosen))
    return found


def _curve(along: str, softmax: str, points: list[dict[str, Any]]) -> Curve:
    name = {"documents": "documents", "words": "words", "latent": "latent_dim"}[along]
    points = sorted(points, key=lambda one: one[name])
    factors = [one["documents"] if along == "documents" else 1 for one in points]
    seconds = [one["seconds_per_document"] * factor for one, factor in zip(points, factors, strict=True)]
    columns = ([one[name] for one in points], seconds, [one["peak_memory_mb"] or np.nan for one in points])
    return Curve(along, softmax, *(np.array(column, float) for column in columns))
