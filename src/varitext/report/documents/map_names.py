"""Names written on the map: where a label lies, or, without labels, what the documents of a region are about."""

from collections import Counter
from collections.abc import Iterable
from math import log

import numpy as np
from sklearn.cluster import KMeans

from varitext.report.drawing.charts import NamedSpot

MOST_REGIONS = 16
DOCUMENTS_PER_REGION = 20
WORDS_PER_REGION = 3
FRAME_SHAPE = 1.65  # width of the picture by its height
CHARACTER_WIDTH, LINE_HEIGHT = 0.011, 0.03  # of the names, as shares of the picture's height


def middle_of(name: str, places: np.ndarray) -> NamedSpot:
    """The name at the middle of its documents; the median, because strays lie far out."""
    x, y = np.median(places, axis=0).tolist()
    return NamedSpot(name, x, y)


def regions(places: np.ndarray, telling_words: tuple[tuple[str, ...], ...], seed: int) -> list[NamedSpot]:
    """The map cut into even regions, each named by the words that tell its documents from all others."""
    number = min(MOST_REGIONS, len(places) // DOCUMENTS_PER_REGION)
    if number < 2:
        return []
    region = KMeans(number, n_init=1, random_state=seed).fit_predict(places)
    everywhere = Counter(word for words in telling_words for word in words)
    spots = []
    for rows in (np.flatnonzero(region == place) for place in range(number)):
        here = Counter(word for row in rows for word in telling_words[row])
        share = len(rows) / len(places)
        spots.append(middle_of(" · ".join(_most_telling(here, everywhere, share)), places[rows]))
    return spots


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


def _most_telling(here: Counter[str], everywhere: Counter[str], share: float) -> list[str]:
    """n log(n / expected n): frequent here, and more so than elsewhere."""
    score = {word: count * log(count / (everywhere[word] * share)) for word, count in here.items()}
    return sorted(score, key=lambda word: (-score[word], word))[:WORDS_PER_REGION]
