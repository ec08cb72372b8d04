"""The documents that a model was fitted on, read in the background, to find similar ones among."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse

from varitext.corpora.dates import bins_of
from varitext.corpora.sharded_counts import in_memory
from varitext.documents.model import DocumentModel
from varitext.documents.posterior import BLOCK
from varitext.documents.topic_records import TopicShare
from varitext.errors import InputError
from varitext.evaluation.keywords import document_keywords
from varitext.evaluation.latent_dimensions import nearest
from varitext.evaluation.shares import shares_by_value

if TYPE_CHECKING:
    from varitext.corpora import Documents

MAX_DOCUMENTS = 100_000  # the first of them; a vector and a beginning of each are kept
BEGINNING = 280  # characters
EXAMPLE = 1_500  # characters
TITLE = 140  # characters
NO_LABEL, NO_DATE = "no label", "no date"


def beginning(text: str, length: int = BEGINNING) -> str:
    """The first words on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


class CorpusIndex:
    """Vectors and beginnings of the training documents; `state` says whether they are there."""

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
        self.topic = np.zeros(0, int)  # [D], places in `topics`; empty for a model that has none yet

    def __len__(self) -> int:
        return len(self.vectors)

    def title(self, row: int) -> str:
        """A line about a document: its label, if it has one, and its beginning."""
        return " · ".join(part for part in (self._labels[row], self._beginnings[row][:TITLE]) if part)

    @property
    def labelled(self) -> bool:
        return any(self._labels)

    def group(self, row: int) -> str:
        """What documents of one colour share: a label, or else their topic."""
        return self._labels[row] or (self.topics[self.topic[row]][1] if len(self.topic) else "")

    def start(self, data_dir: Path | None) -> None:
        """Begin to read, if the corpus is on this machine; nothing is fetched."""
        if self._model is not None and (corpus := self._model.fitted_.corpus) and is_here(corpus, data_dir):
            self.state = "reading"
            reading = (self._model, corpus, data_dir)
            threading.Thread(target=self._read, args=reading, name="varitext-corpus", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def similar(self, vector: np.ndarray, n: int) -> dict[str, Any]:
        similar = [
            {"index": i, "similarity": cosine, "label": self._labels[i], "text": self._beginnings[i]}
            for i, cosine in nearest(self.vectors, vector, n)
        ]
        return {"among": len(self), "similar": similar}

    def shares(self, by: Literal["label", "date"]) -> dict[str, Any]:
        """How many documents of each label, or of each time, have which topic; nothing without such a column."""
        values = [label or NO_LABEL for label in self._labels] if by == "label" else self._dates
        if not self.topics or not any(self._labels if by == "label" else self._dates):
            return {"shares": []}
        numbers, names = [number for number, _ in self.topics], dict(self.topics)
        found = shares_by_value([numbers[place] for place in self.topic], values, numbers)
        return {
            "shares": [TopicShare(one.value, one.category, names[one.category], *one[2:]).as_dict() for one in found]
        }

    def _read(self, model: DocumentModel, corpus: dict[str, str], data_dir: Path | None) -> None:
        try:
            self._take(model, load_training_documents(corpus, data_dir))
        except (InputError, OSError, MemoryError):  # then there are no similar documents, and the page says so
            self.state = "none"

    def _take(self, model: DocumentModel, documents: "Documents") -> None:
        n = min(len(documents), MAX_DOCUMENTS)
        content: Sequence[str] | scipy.sparse.csr_matrix
        if documents.texts is None:  # then the words that tell it from others speak for a document
            content = in_memory(model.count(documents)[:n])  # over the model's own words, not the corpus's
            log_frequencies = model.fitted_.network.word_log_frequencies.cpu().numpy()
            telling = document_keywords(content, log_frequencies, model.fitted_.vocabulary.words)
            self._beginnings = [", ".join(words) for words in telling]
        else:
            content = documents.texts[:n]
            self._beginnings = [beginning(text) for text in content]
            self.example = _typical(content)
        topics = [] if model.fitted_.regions is None else [(one.number, one.name) for one in model.topics()]
        vectors, topic = [], []
        for start in range(0, n, BLOCK):
            if self._stop.is_set():
                return
            posterior = model.posterior(content[start : start + BLOCK])
            vectors.append(posterior.mean)
            if topics:
                topic.append(model.memberships_of(posterior).argmax(1))
        self.vectors = np.concatenate(vectors)
        self._labels = [None] * n if documents.labels is None else [str(label) for label in documents.labels[:n]]
        if documents.dates is not None:
            self._dates = [name or NO_DATE for name in bins_of(documents.dates[:n], None)]
        self.topics, self.topic = topics, np.concatenate(topic) if topics else np.zeros(0, int)
        self.state = "ready"


def is_here(corpus: dict[str, str], data_dir: Path | None) -> bool:
    """Whether the corpus can be read without any network."""
    from varitext.corpora import CORPORA, place_of

    if spec := CORPORA.get(corpus["name"]):
        return bool(spec.locate(data_dir))
    return place_of(corpus) is not None


def load_training_documents(corpus: dict[str, str], data_dir: Path | None) -> "Documents":
    """Those very documents: a model folder could name any file, and only one with the same fingerprint is shown."""
    from varitext.corpora import load_again

    return load_again(corpus, corpus["part"], data_dir)


def _typical(texts: Sequence[str]) -> str:
    """One of middling length among the first, to try the page with."""
    some = sorted(texts[:200], key=len)
    return beginning(some[len(some) // 2], EXAMPLE)
