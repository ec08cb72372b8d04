"""The training documents of a model: read in the background to find similar ones, and laid out as a map on request."""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from varitext.corpora import CORPORA, Documents, load_again, place_of
from varitext.corpora.dates import bins_of
from varitext.corpora.sharded_counts import in_memory
from varitext.documents.model import DocumentModel
from varitext.documents.posterior import BLOCK
from varitext.documents.topic_records import TopicShare
from varitext.errors import InputError
from varitext.evaluation.keywords import document_keywords
from varitext.evaluation.latent_dimensions import nearest
from varitext.evaluation.map_layout import lay_out
from varitext.evaluation.shares import shares_by_value
from varitext.serve.guards import Refusal

NOT_HERE = "the training documents of this model are not on this machine"
logger = logging.getLogger("varitext.serve")
RETRY_AFTER = 2  # seconds, while documents are read or the map is drawn

# Index

MAX_DOCUMENTS = 100_000  # the first ones; a vector and the beginning of each are kept
BEGINNING, EXAMPLE, TITLE = 280, 1_500, 140  # characters
NO_LABEL, NO_DATE = "no label", "no date"


def beginning(text: str, length: int = BEGINNING) -> str:
    """The first words on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


class CorpusIndex:
    """Vectors and beginnings of the training documents, once `state` is "ready"."""

    def __init__(self, model: DocumentModel | None):
        self.state: Literal["none", "reading", "ready"] = "none"
        self.example: str | None = None
        self._model = model
        self._stop = threading.Event()
        self.vectors = np.zeros((0, 1), np.float32)  # [D, K]
        self._beginnings: list[str] = []
        self._labels: list[str | None] = []
        self._dates: list[str] = []  # names of bins
        self.topics: list[tuple[int, str]] = []  # number and name
        self.topic = np.zeros(0, int)  # [D], places in `topics`

    def __len__(self) -> int:
        return len(self.vectors)

    def title(self, row: int) -> str:
        """One line about a document: its label, if it has one, and its beginning."""
        return " · ".join(part for part in (self._labels[row], self._beginnings[row][:TITLE]) if part)

    @property
    def labelled(self) -> bool:
        return any(self._labels)

    def group(self, row: int) -> str:
        """What documents of one colour share: a label, or their topic."""
        return self._labels[row] or self.topics[self.topic[row]][1]

    def start(self, data_dir: Path | None) -> None:
        """Start reading if the corpus is on this machine; nothing is downloaded."""
        if self._model is not None and (corpus := self._model.fitted_.corpus) and is_here(corpus, data_dir):
            self.state = "reading"
            reading = (self._model, corpus, data_dir)
            threading.Thread(target=self._read, args=reading, name="varitext-corpus", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def check_ready(self, otherwise: str) -> None:
        """Refuse a request that needs the documents, if there are none or none yet."""
        if self.state == "reading":
            raise Refusal(503, "the training documents are still being read: try again shortly", RETRY_AFTER)
        if self.state == "none":
            raise InputError(f"{NOT_HERE}: {otherwise}")

    def similar(self, vector: np.ndarray, n: int) -> dict[str, Any]:
        similar = [
            {"index": i, "similarity": cosine, "label": self._labels[i], "text": self._beginnings[i]}
            for i, cosine in nearest(self.vectors, vector, n)
        ]
        return {"among": len(self), "similar": similar}

    def shares(self, by: Literal["label", "date"]) -> dict[str, Any]:
        """How many documents of each label or period have which topic; empty without such a column."""
        values = [label or NO_LABEL for label in self._labels] if by == "label" else self._dates
        if not any(self._labels if by == "label" else self._dates):
            return {"shares": []}
        numbers, names = [number for number, _ in self.topics], dict(self.topics)
        found = shares_by_value([numbers[place] for place in self.topic], values, numbers)
        shares = [TopicShare(one.value, one.category, names[one.category], *one[2:]) for one in found]
        return {"shares": [one.as_dict() for one in shares]}

    def _read(self, model: DocumentModel, corpus: dict[str, str], data_dir: Path | None) -> None:
        try:  # only documents with the recorded fingerprint: a model folder could name any file
            self._take(model, load_again(corpus, corpus["part"], data_dir))
        except Exception as error:  # then there are no similar documents, and the page says so
            if not isinstance(error, InputError | OSError | MemoryError):
                logger.exception("the training documents could not be read")
            self.state = "none"

    def _take(self, model: DocumentModel, documents: Documents) -> None:
        n = min(len(documents), MAX_DOCUMENTS)
        content: Sequence[str] | scipy.sparse.csr_matrix
        if documents.texts is None:  # then keywords describe a document
            content = in_memory(model.count(documents)[:n])  # over the model's vocabulary, not that of the corpus
            log_frequencies = model.fitted_.network.word_log_frequencies.cpu().numpy()
            keywords = document_keywords(content, log_frequencies, model.fitted_.vocabulary.words)
            self._beginnings = [", ".join(words) for words in keywords]
        else:
            content = documents.texts[:n]
            self._beginnings = [beginning(text) for text in content]
            first = sorted(content[:200], key=len)
            self.example = beginning(first[len(first) // 2], EXAMPLE)  # of medium length
        vectors, topic = [], []
        for start in range(0, n, BLOCK):
            if self._stop.is_set():
                return
            posterior = model.posterior(content[start : start + BLOCK])
            vectors.append(posterior.mean)
            topic.append(model.topic_memberships(posterior).argmax(1))
        self.vectors, self.topic = np.concatenate(vectors), np.concatenate(topic)
        self.topics = [(one.number, one.name) for one in model.topics()]
        self._labels = [None] * n if documents.labels is None else [str(label) for label in documents.labels[:n]]
        if documents.dates is not None:
            self._dates = [name or NO_DATE for name in bins_of(documents.dates[:n], None)]
        self.state = "ready"


def is_here(corpus: dict[str, str], data_dir: Path | None) -> bool:
    """Whether the corpus can be read without a network."""
    if spec := CORPORA.get(corpus["name"]):
        return bool(spec.locate(data_dir))
    return place_of(corpus) is not None


# Map

MAX_SHOWN = 1500  # a seeded sample: laid out in a few seconds, and moved smoothly by a phone
MAX_GROUPS = 20  # colours that can be told apart
OTHERS = "all others"
NEIGHBOURS = 5  # that determine the position of a text


class Drawn(NamedTuple):
    rows: np.ndarray  # [D], of the index
    places: np.ndarray  # [D, 2], in the unit square
    groups: list[str]
    group: list[int]  # [D]
    topics: list[dict[str, Any]]  # those on the map, with their positions
    topic: list[int]  # [D], places in these


NOT_DRAWN = Drawn(np.zeros(0, int), np.zeros((0, 2)), [], [], [], [])


class CorpusMap:
    """The map of the training documents, drawn in the background when it is first requested."""

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
        """The columns of the map, empty until it is drawn; the first request starts the drawing."""
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

    def check_ready(self) -> None:
        """Refuse to place a text if there is no map, or none yet."""
        if self.state == "none":
            raise InputError(f"{NOT_HERE}: there is no map")
        if self.state == "drawing":
            raise Refusal(503, "the map is not drawn yet: request /map, and try again shortly", RETRY_AFTER)

    def place(self, vector: np.ndarray) -> dict[str, Any]:
        """The position of the most central of its nearest documents: their mean could lie among unrelated ones."""
        drawn = self._drawn or NOT_DRAWN
        rows = [one.index for one in nearest(self._index.vectors[drawn.rows], vector, NEIGHBOURS)]
        places = drawn.places[rows]  # [N, 2]
        apart = np.linalg.norm(places[:, None] - places, axis=2).sum(1)  # [N]
        x, y = places[apart.argmin()].tolist()
        return {"x": x, "y": y, "near": rows}

    def _draw(self) -> None:
        try:
            index, n = self._index, len(self._index)
            generator = np.random.default_rng(self._seed)
            rows = np.sort(generator.choice(n, MAX_SHOWN, replace=False)) if n > MAX_SHOWN else np.arange(n)
            places = in_unit_square(lay_out(index.vectors[rows], self._seed))
            names = [index.group(row) for row in rows]
            groups = [name for name, _ in Counter(names).most_common(MAX_GROUPS)]
            number = {name: place for place, name in enumerate(groups)}
            group = [number.get(name, len(groups)) for name in names]
            self._drawn = Drawn(
                rows, places, [*groups, OTHERS], group, *topics_on_map(index.topics, index.topic[rows], places)
            )
        except Exception:
            logger.exception("the map could not be drawn")
            self._failed = True


def topics_on_map(
    topics: list[tuple[int, str]], topic: np.ndarray, places: np.ndarray
) -> tuple[list[dict[str, Any]], list[int]]:
    """The topics of these documents, most frequent first, with their positions; and which document has which."""
    frequent = [place for place, _ in Counter(topic.tolist()).most_common()]
    shown = []
    for number, name, middle in ((*topics[one], np.median(places[topic == one], axis=0)) for one in frequent):
        x, y = middle.round(4).tolist()
        shown.append({"number": number, "name": name, "x": x, "y": y})
    order = {place: row for row, place in enumerate(frequent)}
    return shown, [order[one] for one in topic.tolist()]


def in_unit_square(places: np.ndarray) -> np.ndarray:
    """The same map, centred and as large as it fits."""
    low, high = places.min(0), places.max(0)
    centred: np.ndarray = places - (low + high) / 2
    return 0.5 + centred / max(float((high - low).max()), 1e-12)
