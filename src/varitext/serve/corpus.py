"""The training documents of a model: read in the background to find similar ones, and laid out as a map on request."""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from varitext.charts.colours import FAINT, PALETTE, neighbour_colours
from varitext.charts.labels import densest_place, frame_of
from varitext.corpora import CORPORA, Documents, load_again, place_of
from varitext.corpora.dates import all_bins, bins_of
from varitext.corpora.sharded_counts import in_memory
from varitext.documents.model import DocumentModel
from varitext.documents.posterior import BLOCK
from varitext.documents.topic_model import regions_of
from varitext.documents.topic_records import TopicShare
from varitext.errors import InputError
from varitext.evaluation.keywords import document_keywords
from varitext.evaluation.map_layout import lay_out, place_among, towards_topics
from varitext.evaluation.neighbours import nearest
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
        self.label_name = "label"  # of their column
        self.topics: list[tuple[int, str]] = []  # number and name
        self.topic = np.zeros(0, int)  # [D], places in `topics`
        self.directions = np.zeros((0, 1), np.float32)  # [D, K], of which the map is made
        self.sample = np.zeros(0, int)  # rows that are read first
        self.sample_read, self.all_read = threading.Event(), threading.Event()  # also set if reading fails

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
        if by == "date":
            periods = sorted({one.value for one in found} - {NO_DATE})
            empty = set(all_bins(periods)) - set(periods)
            shares += [
                TopicShare(value, number, names[number], 0, 0, 0.0, 0.0, 0.0) for value in empty for number in numbers
            ]
            shares.sort(key=lambda one: one.value)
        return {"shares": [one.as_dict() for one in shares]}

    def _read(self, model: DocumentModel, corpus: dict[str, str], data_dir: Path | None) -> None:
        try:  # only documents with the recorded fingerprint: a model folder could name any file
            self._take(model, load_again(corpus, corpus["part"], data_dir))
        except Exception as error:  # then there are no similar documents, and the page says so
            if not isinstance(error, InputError | OSError | MemoryError):
                logger.exception("the training documents could not be read")
            self.state = "none"
        finally:
            self.sample_read.set()
            self.all_read.set()

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
        self.topics = [(one.number, one.name) for one in model.topics()]
        self._labels = [None] * n if documents.labels is None else [str(label) for label in documents.labels[:n]]
        self.label_name = (documents.read_as and documents.read_as.label_column) or self.label_name
        if documents.dates is not None:
            self._dates = [name or NO_DATE for name in bins_of(documents.dates[:n], None)]
        self.sample = np.sort(np.random.default_rng(model.seed).permutation(n)[:MAX_SAMPLE])
        self._read_vectors(model, content, np.concatenate([self.sample, np.setdiff1d(np.arange(n), self.sample)]))

    def _read_vectors(
        self, model: DocumentModel, content: Sequence[str] | scipy.sparse.csr_matrix, order: np.ndarray
    ) -> None:
        """In blocks, the sample first: the map is made of it while the others are read."""
        centres = regions_of(model.fitted_).group_centres()
        vectors = np.zeros((len(order), model.fitted_.network.vector_dim), np.float32)
        directions, topic = np.zeros_like(vectors), np.zeros(len(order), int)
        for start in range(0, len(order), BLOCK):
            if self._stop.is_set():
                return
            rows = order[start : start + BLOCK]
            posterior = model.posterior(
                content[rows] if scipy.sparse.issparse(content) else [content[row] for row in rows]
            )
            memberships = model.topic_memberships(posterior)
            vectors[rows], topic[rows] = posterior.mean, memberships.argmax(1)
            directions[rows] = towards_topics(posterior.mean, memberships, centres)
            if start + BLOCK >= len(self.sample) and not self.sample_read.is_set():
                self.directions, self.topic = directions, topic
                self.sample_read.set()
        self.vectors = vectors
        self.state = "ready"


def is_here(corpus: dict[str, str], data_dir: Path | None) -> bool:
    """Whether the corpus can be read without a network."""
    if spec := CORPORA.get(corpus["name"]):
        return bool(spec.locate(data_dir))
    return place_of(corpus) is not None


# Map

MAX_SAMPLE = 3000  # laid out by t-SNE; the others are placed among them
MAX_SHOWN = 50_000  # a browser draws them smoothly
MAX_GROUPS = 20  # colours of labels
OTHERS = "all others"
NEIGHBOURS = 5  # that determine the position of a text


class Drawn(NamedTuple):
    version: int  # counts the layouts
    rows: np.ndarray  # [D], of the index
    places: np.ndarray  # [D, 2], in the unit square
    groups: list[str]
    group: list[int]  # [D]
    topics: list[dict[str, Any]]  # those on the map, with their positions and colours
    topic: list[int]  # [D], places in these


NOT_DRAWN = Drawn(0, np.zeros(0, int), np.zeros((0, 2)), [], [], [], [])


class CorpusMap:
    """The map of the training documents, drawn in the background when it is first requested.

    It is shown from the first steps of t-SNE on. Once a sample is laid out it stays there, and the others join it.
    """

    def __init__(self, index: CorpusIndex, seed: int):
        self._index, self._seed = index, seed
        self._begun = threading.Lock()
        self._drawn: Drawn | None = None
        self._complete = self._failed = False
        self._colours: dict[int, str] = {}  # by topic number

    @property
    def state(self) -> Literal["none", "drawing", "ready"]:
        if self._complete:
            return "ready"
        return "none" if self._failed or self._index.state == "none" else "drawing"

    def shown(self, known: int = 0) -> dict[str, Any]:
        """The columns of the map, empty until there is a layout other than `known`; the first request starts it."""
        if self.state == "drawing" and self._begun.acquire(blocking=False):
            threading.Thread(target=self._draw, name="varitext-map", daemon=True).start()
        state, latest = self.state, self._drawn or NOT_DRAWN
        drawn = NOT_DRAWN if latest.version == known else latest
        return {
            "state": state,
            "version": latest.version,
            "of": len(self._index.topic),
            "x": drawn.places[:, 0].astype(float).round(4).tolist(),  # as float32 they would be written in full
            "y": drawn.places[:, 1].astype(float).round(4).tolist(),
            "group": drawn.group,
            "groups": drawn.groups,
            "colours": [*PALETTE[: len(drawn.groups) - 1], FAINT] if drawn.groups else [],
            "labelled": self._index.labelled,
            "label_name": self._index.label_name,
            "topic": drawn.topic,
            "topics": drawn.topics,
            "titles": [self._index.title(row) for row in drawn.rows],
        }

    def check_ready(self) -> None:
        """Refuse to place a text if there is no map, or none yet."""
        if self.state == "none":
            raise InputError(f"{NOT_HERE}: there is no map")
        if self._drawn is None:
            raise Refusal(503, "the map is not drawn yet: request /map, and try again shortly", RETRY_AFTER)

    def place(self, vector: np.ndarray) -> dict[str, Any]:
        """The position of the most central of its nearest documents: their mean could lie among unrelated ones."""
        drawn = self._drawn or NOT_DRAWN
        vectors = self._index.vectors if len(self._index.vectors) else self._index.directions
        rows = [one.index for one in nearest(vectors[drawn.rows], vector, NEIGHBOURS)]
        places = drawn.places[rows]  # [N, 2]
        apart = np.linalg.norm(places[:, None] - places, axis=2).sum(1)  # [N]
        x, y = places[apart.argmin()].tolist()
        return {"x": x, "y": y, "near": rows}

    def _draw(self) -> None:
        try:
            index = self._index
            index.sample_read.wait()
            sample, directions = index.sample, index.directions
            if index.state == "none" or not len(directions):
                return
            places = lay_out(directions[sample], self._seed, lambda so_far: self._show(sample, so_far))
            self._colours.clear()  # those of the first steps fit neighbours of the first steps
            self._show(sample, places)
            index.all_read.wait()
            others = np.setdiff1d(np.arange(len(directions)), sample)[: MAX_SHOWN - len(sample)]
            if len(others) and index.state == "ready":
                added = place_among(directions[others], directions[sample], places, self._seed)
                self._show(np.concatenate([sample, others]), np.concatenate([places, added]))
            self._complete = True
        except Exception:
            logger.exception("the map could not be drawn")
            self._failed = True

    def _show(self, rows: np.ndarray, places: np.ndarray) -> None:
        index = self._index
        places = in_unit_square(places)
        names = [index.group(row) for row in rows]
        groups = [name for name, _ in Counter(names).most_common(MAX_GROUPS)]
        number = {name: place for place, name in enumerate(groups)}
        group = [number.get(name, len(groups)) for name in names]
        topics, topic = topics_on_map(index.topics, index.topic[rows], places, self._colours)
        version = (self._drawn or NOT_DRAWN).version + 1
        self._drawn = Drawn(version, rows, places, [*groups, OTHERS], group, topics, topic)


def topics_on_map(
    topics: list[tuple[int, str]], topic: np.ndarray, places: np.ndarray, colours: dict[int, str]
) -> tuple[list[dict[str, Any]], list[int]]:
    """The topics of these documents, most frequent first, with their densest places; and which document has which.

    Topics keep the colours that they have, and all get one at their first layout.
    """
    frequent = [place for place, _ in Counter(topic.tolist()).most_common()]
    order = {place: row for row, place in enumerate(frequent)}
    rows = np.array([order[one] for one in topic.tolist()], int)
    if not all(topics[place][0] in colours for place in frequent):
        new = neighbour_colours(places, rows, len(frequent))
        colours.update({topics[place][0]: colour for place, colour in zip(frequent, new, strict=True)})
    shown, frame = [], frame_of(places, 1.0)
    for row, place in enumerate(frequent):
        number, name = topics[place]
        x, y = densest_place(places[rows == row], frame).astype(float).round(4).tolist()
        shown.append({"number": number, "name": name, "x": x, "y": y, "colour": colours[number]})
    return shown, rows.tolist()


def in_unit_square(places: np.ndarray) -> np.ndarray:
    """The same map, centred and as large as it fits."""
    low, high = places.min(0), places.max(0)
    centred: np.ndarray = places - (low + high) / 2
    return 0.5 + centred / max(float((high - low).max()), 1e-12)
