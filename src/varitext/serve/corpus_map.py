"""The map of the documents that a model was fitted on, drawn once in the background when somebody first asks for it."""

import logging
import threading
from collections import Counter
from typing import Any, Literal, NamedTuple

import numpy as np

from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import nearest
from varitext.evaluation.map_layout import lay_out
from varitext.serve.corpus_index import CorpusIndex
from varitext.serve.limits import Refusal

MAX_SHOWN = 1500  # a seeded sample: laid out in a few seconds, and moved smoothly by a phone
MAX_GROUPS = 20  # colours that can be told apart
OTHERS = "all others"
NEIGHBOURS = 5  # that say where a text lies
STILL_DRAWING = 2  # seconds until it is worth asking again

logger = logging.getLogger("varitext.serve")


class Drawn(NamedTuple):
    rows: np.ndarray  # [D], of the index
    places: np.ndarray  # [D, 2], in the unit square
    groups: list[str]
    group: list[int]  # [D]
    topics: list[dict[str, Any]]  # those on the map, with their places
    topic: list[int]  # [D], places in these


NOT_DRAWN = Drawn(np.zeros(0, int), np.zeros((0, 2)), [], [], [], [])


class CorpusMap:
    """Nothing is computed before it is asked for, and nobody waits for it."""

    def __init__(self, index: CorpusIndex, seed: int):
        self._index, self._seed = index, seed
        self._begun = threading.Lock()
        self._drawn: Drawn | None = None
        self._failed = False

    @property
    def state(self) -> Literal["none", "drawing", "ready"]:
        if self._drawn is not None:
            return "ready"
        return "none" if self._failed or self._index.state == "none" else "drawing"

    def shown(self) -> dict[str, Any]:
        """The columns of the map, without a document while there is none; to ask for it is to have it drawn."""
        if self.state == "drawing" and self._index.state == "ready" and self._begun.acquire(blocking=False):
            threading.Thread(target=self._draw, name="varitext-map", daemon=True).start()
        drawn = self._drawn or NOT_DRAWN
        return {
            "state": self.state,
            "of": len(self._index),
            "x": drawn.places[:, 0].round(4).tolist(),
            "y": drawn.places[:, 1].round(4).tolist(),
            "group": drawn.group,
            "groups": drawn.groups,
            "labelled": self._index.labelled,
            "topic": drawn.topic,
            "topics": drawn.topics,
            "titles": [self._index.title(row) for row in drawn.rows],
        }

    def check(self) -> None:
        """Refuse to place a text where there is no map, or not yet."""
        if self.state == "none":
            raise InputError("the documents that the model was fitted on are not here: there is no map of them")
        if self.state == "drawing":
            raise Refusal(503, "the map is not drawn yet: ask for it, and try again shortly", STILL_DRAWING)

    def place(self, vector: np.ndarray) -> dict[str, Any]:
        """At that one of its nearest documents which lies amid the others: their mean could lie among strangers."""
        drawn = self._drawn or NOT_DRAWN
        near = nearest(self._index.vectors[drawn.rows], vector, NEIGHBOURS)
        rows = [one.index for one in near]
        places = drawn.places[rows]  # [N, 2]
        apart = np.linalg.norm(places[:, None] - places, axis=2).sum(1)  # [N]
        x, y = places[apart.argmin()].tolist()
        return {"x": x, "y": y, "near": rows}

    def _draw(self) -> None:
        try:
            generator = np.random.default_rng(self._seed)
            n = len(self._index)
            rows = np.sort(generator.choice(n, MAX_SHOWN, replace=False)) if n > MAX_SHOWN else np.arange(n)
            places = in_unit_square(lay_out(self._index.vectors[rows], self._seed))
            names = [self._index.group(row) for row in rows]
            groups = [name for name, _ in Counter(names).most_common(MAX_GROUPS)]
            number = {name: place for place, name in enumerate(groups)}
            group = [number.get(name, len(groups)) for name in names]
            topic_of = self._index.topic[rows] if self._index.topics else self._index.topic
            topics, topic = topics_on_map(self._index.topics, topic_of, places)
            self._drawn = Drawn(rows, places, [*groups, OTHERS], group, topics, topic)
        except Exception:
            logger.exception("the map could not be drawn")
            self._failed = True


def topics_on_map(
    topics: list[tuple[int, str]], topic: np.ndarray, places: np.ndarray
) -> tuple[list[dict[str, Any]], list[int]]:
    """The topics of these documents, the most frequent first, each at the middle of its own; and which has which."""
    frequent = [place for place, _ in Counter(topic.tolist()).most_common()]
    shown = []
    for number, name, middle in ((*topics[one], np.median(places[topic == one], axis=0)) for one in frequent):
        x, y = middle.round(4).tolist()  # the median, because strays lie far out
        shown.append({"number": number, "name": name, "x": x, "y": y})
    order = {place: row for row, place in enumerate(frequent)}
    return shown, [order[one] for one in topic.tolist()]


def in_unit_square(places: np.ndarray) -> np.ndarray:
    """The same picture, as large as it fits and in the middle."""
    low, high = places.min(0), places.max(0)
    centred: np.ndarray = places - (low + high) / 2
    return 0.5 + centred / max(float((high - low).max()), 1e-12)
