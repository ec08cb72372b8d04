"""What is said of topics and documents, as plain records; and the topics of a model folder, without loading the model.

Nothing heavy is imported here: `varitext topics` answers from `topics.json` at once.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from varitext.errors import InputError
from varitext.files import check_sha256, read_json
from varitext.records import check_choice

if TYPE_CHECKING:
    import pandas

TABLE_FILE, TENSOR_FILE = "topics.json", "topics.safetensors"
TYPICAL = 3  # documents that are shown for a topic
WORDS = 10
IN_BERTOPIC = {
    "number": "Topic",
    "topic": "Topic",
    "name": "Name",
    "documents": "Count",
    "words": "Representation",
    "typical": "Representative_Docs",
    "probability": "Probability",
}
Made = TypeVar("Made", bound="TopicInfo | DocumentInfo | TopicShare")


@dataclass(frozen=True)
class TypicalDocument:
    row: int  # in the documents that were fitted on, from 0
    text: str | None  # its beginning, if texts were fitted on


@dataclass(frozen=True)
class TopicInfo:
    """One topic: a region of the latent space."""

    number: int
    name: str  # words that tell it from its neighbours, or what the user calls it
    documents: int  # training documents whose most probable topic it is
    share: float  # of the training documents
    tokens: int  # words in these documents
    words: tuple[str, ...]  # by relevance, best first
    weights: tuple[float, ...]  # p(word | topic)
    coherence: float | None  # NPMI of the first ten words in training documents; None for a topic made by hand
    typical: tuple[TypicalDocument, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class DocumentInfo:
    """One document; a document without a known word has no topic."""

    row: int
    topic: int | None
    name: str | None
    probability: float | None
    second_topic: int | None
    second_probability: float | None
    spread: float  # root mean square of the standard deviations of its vector
    surprise: float | None  # nats per word beyond what documents of its length take
    known_words: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class TopicShare:
    """How many of the documents of one class, or of one time, are of a topic."""

    value: str
    topic: int
    name: str
    documents: int
    of: int  # documents with this value
    share: float
    low: float  # of the 95 % interval
    high: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Records(list[Made]):
    """A list of records that becomes a pandas DataFrame where pandas is installed."""

    def as_dicts(self) -> list[dict[str, Any]]:
        return [record.as_dict() for record in self]

    def to_frame(self, names: str = "varitext") -> "pandas.DataFrame":
        """A row for each record; with names="bertopic" under the names that BERTopic has for the same columns."""
        check_choice("names", names, ("varitext", "bertopic"))
        try:
            import pandas
        except ImportError:
            raise InputError("a DataFrame needs pandas: pip install pandas") from None
        rows = self.as_dicts()
        return pandas.DataFrame([_as_in_bertopic(row) for row in rows] if names == "bertopic" else rows)


def _as_in_bertopic(row: dict[str, Any]) -> dict[str, Any]:
    """Columns that BERTopic has too, under its names; a document without a topic has -1, a typical one is its text."""
    shown = dict(row)
    if "typical" in shown:
        shown["typical"] = [one["text"] for one in shown["typical"]]
    if shown.get("topic", 0) is None:
        shown["topic"] = -1
    return {IN_BERTOPIC.get(name, name): value for name, value in shown.items()}


def topic_from_dict(values: dict[str, Any]) -> TopicInfo:
    typical = tuple(TypicalDocument(**one) for one in values["typical"])
    tuples = {name: tuple(values[name]) for name in ("words", "weights")}
    return TopicInfo(**{**values, **tuples, "typical": typical})


def first_words(topics: Iterable[TopicInfo], words: int) -> Records[TopicInfo]:
    """The same topics with at most so many words each."""
    return Records(replace(topic, words=topic.words[:words], weights=topic.weights[:words]) for topic in topics)


def read_topic_table(folder: Path) -> dict[str, Any] | None:
    """topics.json of a model folder, checked against its hash; None if this is a folder of another kind or age."""
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else None
    hashes = config.get("sha256") if isinstance(config, dict) else None
    if not isinstance(hashes, dict) or TABLE_FILE not in hashes:
        return None
    check_sha256(folder / TABLE_FILE, hashes[TABLE_FILE], "model folder")
    table = read_json(folder / TABLE_FILE)
    if not isinstance(table, dict) or not isinstance(table.get("topics"), list):
        raise InputError(f"{folder / TABLE_FILE} is not a table of topics")
    return table
