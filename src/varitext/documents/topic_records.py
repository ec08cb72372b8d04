"""Topics and documents as plain records, and the topics of a model folder without loading the model.

Nothing heavy is imported here: `varitext topics` reads `topics.json` at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from varitext.errors import InputError, first_line
from varitext.files import check_sha256, read_json
from varitext.records import DictRecord, check_choice, check_types

if TYPE_CHECKING:
    import pandas

TABLE_FILE, TENSOR_FILE = "topics.json", "topics.safetensors"
TYPICAL = 3  # documents that are shown for a topic
WORDS = 10
MAX_SHOWN = 50  # rows of a table in a notebook
TEXT = 80  # characters of a document in it
LEFT = 'style="text-align:left"'
WHOLE = ("topic", "second_topic")  # integer columns that may have missing values
IN_BERTOPIC = {
    "number": "Topic",
    "topic": "Topic",
    "name": "Name",
    "documents": "Count",
    "words": "Representation",
    "typical": "Representative_Docs",
    "probability": "Probability",
}
Made = TypeVar("Made", bound="TopicInfo | DocumentInfo | TopicShare | Effect | Prediction")


@dataclass(frozen=True)
class TypicalDocument:
    """A document near the centre of a topic."""

    row: int  # of the training documents, from 0
    text: str | None  # its beginning, if the model was fitted on texts
    id: str | None = None  # in the column of ids, if one was named


@dataclass(frozen=True)
class TopicInfo(DictRecord):
    """One topic: a region of the latent space.

    Attributes
    ----------
    number : int
        Number of the topic; it does not change when other topics are merged, split or dropped.
    name : str
        Its most frequent relevant words and phrases, or a name given by the user.
    documents : int
        Number of training documents whose most probable topic this is; all are counted.
    share : float
        The same number as a share of the training documents.
    tokens : int
        Number of words in these documents.
    words : tuple[str, ...]
        Words that are more frequent in its documents than in others, most relevant first; at most 30.
    weights : tuple[float, ...]
        p(word | topic) of each of these words; for a phrase, of its two words in sequence.
    coherence : float or None
        NPMI of the first ten words in training documents; None for a merged topic.
    typical : tuple[TypicalDocument, ...]
        Training documents nearest to its centre.
    stability : float or None
        How reliably the topic is found again in resampled documents, 0 to 1; None until `topic_stability` is called,
        and after a change of topics.
    """

    number: int
    name: str
    documents: int
    share: float
    tokens: int
    words: tuple[str, ...]
    weights: tuple[float, ...]
    coherence: float | None
    typical: tuple[TypicalDocument, ...]
    stability: float | None = None


@dataclass(frozen=True)
class DocumentInfo(DictRecord):
    """The topics of one document. A document without a known word has no topic: those fields are None.

    Attributes
    ----------
    row : int
        Position of the document in the input, from 0.
    topic : int or None
        Number of its most probable topic.
    name : str or None
        Name of that topic.
    probability : float or None
        p(topic | document).
    second_topic : int or None
        Number of the next most probable topic.
    second_probability : float or None
        p(second topic | document).
    spread : float
        Uncertainty of the document's vector: root mean square of the posterior standard deviations.
    surprise : float or None
        Nats per word in excess of what documents of its length need.
    known_words : int
        Number of the document's words that are in the vocabulary.
    """

    row: int
    topic: int | None
    name: str | None
    probability: float | None
    second_topic: int | None
    second_probability: float | None
    spread: float
    surprise: float | None
    known_words: int


@dataclass(frozen=True)
class TopicShare(DictRecord):
    """The share of a topic among the documents with one value, such as a class or a month."""

    value: str  # the class, month or other value
    topic: int  # number of the topic
    name: str  # of the topic
    documents: int  # number of documents with this value whose most probable topic this is
    of: int  # number of documents with this value
    share: float  # documents / of
    low: float  # of the 95 % interval
    high: float


@dataclass(frozen=True)
class Effect(DictRecord):
    """What one term of the formula adds to the share of a topic.

    Attributes
    ----------
    topic : int
        Number of the topic.
    name : str
        Name of the topic.
    term : str
        The term, as formulaic names the column: "party[T.b]".
    estimate : float
        Share of documents that the term adds, from -1 to 1.
    standard_error : float
        Standard error of the estimate.
    low, high : float
        95 % interval.
    p : float
        Two-sided p-value for the null hypothesis of no effect, not corrected for the number of topics.
    """

    topic: int
    name: str
    term: str
    estimate: float
    standard_error: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Prediction(DictRecord):
    """The share of a topic at one value of a covariate, averaged over the documents' other covariates.

    Attributes
    ----------
    topic : int
        Number of the topic.
    name : str
        Name of the topic.
    column : str
        The covariate.
    value : str or float
        Value of the covariate; dates are written as 2026-01-31.
    by : str or None
        Value of the second covariate, if one was named.
    estimate, standard_error, low, high : float
        Share of documents, its standard error and 95 % interval.
    """

    topic: int
    name: str
    column: str
    value: str | float
    by: str | None
    estimate: float
    standard_error: float
    low: float
    high: float


class Records(list[Made]):
    """A list of records that converts to a pandas DataFrame if pandas is installed."""

    def as_dicts(self) -> list[dict[str, Any]]:
        return [record.as_dict() for record in self]

    def _repr_html_(self) -> str:
        """A table for notebooks. Names and words come from users and documents: they are escaped."""
        names = [field.name for field in fields(self[0])] if self else []
        rows = [[_cell(getattr(record, name)) for name in names] for record in self[:MAX_SHOWN]]
        body = "".join(f"<tr>{''.join(f'<td {LEFT}>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        head = "".join(f"<th {LEFT}>{name}</th>" for name in names)
        more = f"<p>and {len(self) - MAX_SHOWN:,} more</p>" if len(self) > MAX_SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def to_frame(self, names: str = "varitext") -> "pandas.DataFrame":
        """One row per record.

        Parameters
        ----------
        names : {"varitext", "bertopic"}, default="varitext"
            Column names; "bertopic" uses BERTopic's names for the columns that both libraries have.

        Returns
        -------
        pandas.DataFrame
        """
        check_choice("names", names, ("varitext", "bertopic"))
        try:
            import pandas
        except ImportError:
            raise InputError("a DataFrame needs pandas: pip install pandas") from None
        rows = self.as_dicts()
        frame = pandas.DataFrame([_as_in_bertopic(row) for row in rows] if names == "bertopic" else rows)
        gaps = {name: "Int64" for name in WHOLE if name in frame and frame[name].isna().any()}
        return frame.astype(gaps)  # integers, although some are missing


def _cell(value: object) -> str:
    """Format a cell: several values side by side, numbers rounded, the beginning of the first typical document."""
    if isinstance(value, tuple):
        shown = [_cell(one) for one in value]
        return (shown[0] if shown else "") if value and isinstance(value[0], TypicalDocument) else " ".join(shown)
    if isinstance(value, TypicalDocument):
        return f"{value.row}" if value.text is None else f"{value.text[:TEXT]}…"
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else f"{value}"


def _as_in_bertopic(row: dict[str, Any]) -> dict[str, Any]:
    """Follow BERTopic: a document without a topic has topic -1, and a typical document is given by its text."""
    shown = dict(row)
    if "typical" in shown:
        shown["typical"] = [one["text"] for one in shown["typical"]]
    if shown.get("topic", 0) is None:
        shown["topic"] = -1
    return {IN_BERTOPIC.get(name, name): value for name, value in shown.items()}


def topic_from_dict(values: dict[str, Any]) -> TopicInfo:
    typical = tuple(TypicalDocument(**one) for one in values["typical"])
    tuples = {name: tuple(values[name]) for name in ("words", "weights")}
    topic = TopicInfo(**{**values, **tuples, "typical": typical})
    for record in (topic, *typical):
        check_types(record)
    return topic


def first_words(topics: Iterable[TopicInfo], words: int) -> Records[TopicInfo]:
    """The same topics with at most this many words each."""
    return Records(replace(topic, words=topic.words[:words], weights=topic.weights[:words]) for topic in topics)


class TopicTable(NamedTuple):
    """The part of a model folder's topics.json that is printed."""

    topics: list[TopicInfo]
    tree: list[dict[str, Any]]
    choice: dict[str, Any]
    seed_topics: list[dict[str, Any]]


def read_topic_table(folder: Path) -> TopicTable | None:
    """topics.json of a model folder, checked against its hash; None if the folder has no topics."""
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else None
    hashes = config.get("sha256") if isinstance(config, dict) else None
    if not isinstance(hashes, dict) or TABLE_FILE not in hashes:
        return None
    check_sha256(folder / TABLE_FILE, hashes[TABLE_FILE], "model folder")
    table = read_json(folder / TABLE_FILE)
    try:
        topics = [topic_from_dict(one) for one in table["topics"]]
        tree: list[dict[str, Any]] = [
            {"left": list(one["left"]), "right": list(one["right"]), "distance": float(one["distance"])}
            for one in table.get("tree", ())
        ]
        known = {topic.number for topic in topics}
        if any(not known.issuperset(one["left"] + one["right"]) for one in tree):
            raise ValueError("the tree names other topics")
        return TopicTable(topics, tree, dict(table["choice"]), list(table.get("seed_topics", ())))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"{folder / TABLE_FILE} is not a table of topics ({first_line(error)})") from None
