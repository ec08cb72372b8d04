"""Request and response bodies: the schema of the API, with its limits.

A response that repeats a record of the library is derived from it, so that fields, types and descriptions are
written once.
"""

import dataclasses
import inspect
import re
from types import GenericAlias
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from varitext.answers.ranking import RankedCandidate, Ranking
from varitext.documents.mixture import Choice
from varitext.documents.topic_records import DocumentInfo, TopicInfo, TopicShare, TypicalDocument
from varitext.evaluation.latent_dimensions import LatentDimension
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.serve.guards import (
    CANDIDATE_CHARACTERS,
    CANDIDATES,
    QUESTION_CHARACTERS,
    QUESTIONS,
    SAMPLES,
    TEXT_CHARACTERS,
    TEXTS,
)

# Requests

Text = Annotated[str, StringConstraints(max_length=TEXT_CHARACTERS)]
Candidate = Annotated[str, StringConstraints(max_length=CANDIDATE_CHARACTERS)]
ONE_TEXT = "the shuttle is in orbit"


class Request(BaseModel):
    """A request: values of another type and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TransformRequest(Request):
    texts: list[Text] = Field(min_length=1, max_length=TEXTS, examples=[[ONE_TEXT]])


class AssignRequest(TransformRequest):
    """Texts to assign to topics."""


class PerplexityRequest(TransformRequest):
    samples: int = Field(
        20, ge=1, le=SAMPLES, description="Draws of h per text. The same request gives the same values."
    )


class PlaceRequest(Request):
    text: Text = Field(min_length=1, examples=[ONE_TEXT])


class ExplainRequest(PlaceRequest):
    topics: int = Field(8, ge=1, le=50, description="Number of topics, most probable first, and of latent dimensions.")
    words: int = Field(20, ge=1, le=100, description="Number of words, those with the largest effect first.")


class SimilarDocumentsRequest(PlaceRequest):
    among: list[Text] | None = Field(
        None, min_length=1, max_length=TEXTS, description="Documents to search (default: the training documents)."
    )
    n: int = Field(5, ge=1, le=50)


Question = Annotated[str, StringConstraints(min_length=1, max_length=QUESTION_CHARACTERS)]
CANDIDATES_FIELD = Field(
    None,
    min_length=1,
    max_length=CANDIDATES,
    description="The sentences to rank (default: those that BM25 finds in the served index).",
    examples=[["James Joyce wrote Ulysses .", "Dublin lies on the Liffey ."]],
)


class QuestionRequest(Request):
    question: Question
    candidates: list[Candidate] | None = CANDIDATES_FIELD


class RankRequest(Request):
    """One question, or many."""

    question: Question | None = Field(None, examples=["who wrote Ulysses ?"])
    candidates: list[Candidate] | None = CANDIDATES_FIELD
    questions: list[QuestionRequest] | None = Field(
        None, min_length=1, max_length=QUESTIONS, description="Instead of `question`: many, each with its candidates."
    )
    samples: int | None = Field(
        None, ge=1, le=SAMPLES, description="Number of rankings to draw (default: the setting of the model)."
    )
    ordered: bool = Field(
        False, description="Whether the candidates are the sentences of one document, in order. Some models use that."
    )
    abstain: float | None = Field(
        None, ge=0, le=1, description="`answered` is false if the first candidate is right with a lower probability."
    )
    top: int | None = Field(
        None, ge=1, le=CANDIDATES, description="Number of candidates to return, best first (default: all)."
    )


# Responses derived from records

_DERIVED: dict[type, type[BaseModel]] = {}


def derived(record: type, *only: str) -> type[BaseModel]:
    """The response model of a record: its fields, or `only` some, with types, defaults and documented descriptions."""
    hints, described = get_type_hints(record), _descriptions(record)
    fields: dict[str, Any] = {}
    for name in only or hints:
        inner = next(iter(get_args(hints[name])), None)
        hint = list_of(_DERIVED[inner]) if inner in _DERIVED else hints[name]  # a tuple of records
        default = getattr(record, name, ...) if dataclasses.is_dataclass(record) else ...
        fields[name] = (hint, Field(default, description=described.get(name)))
    _DERIVED[record] = create_model(record.__name__, **fields)
    return _DERIVED[record]


def _descriptions(record: type) -> dict[str, str]:
    """What the section "Attributes" of the docstring says about each field."""
    _, _, attributes = inspect.cleandoc(record.__doc__ or "").partition("Attributes\n----------\n")
    entries = re.findall(r"^(\w[\w, ]*) : .*\n((?:    .*\n?)+)", attributes, re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def list_of(model: type[BaseModel]) -> Any:
    return GenericAlias(list, model)


TypicalDocumentResponse = derived(TypicalDocument)
Topics = create_model(
    "Topics", topics=(list_of(derived(TopicInfo)), ...), choice=(derived(Choice, "number", "how"), ...)
)
DocumentsAssigned = create_model("DocumentsAssigned", documents=(list_of(derived(DocumentInfo)), ...))
TopicShares = create_model("TopicShares", shares=(list_of(derived(TopicShare)), ...))
CandidateResponse = derived(RankedCandidate)
RankingResponse = derived(Ranking)
Rankings = create_model(
    "Rankings", rankings=(list_of(RankingResponse), Field(description="Of `questions`, in their order."))
)
DimensionResponse = create_model(
    "LatentDimension",
    __base__=derived(LatentDimension, "number", "words", "weights", "opposite_words"),
    share=(float, Field(description="Share of the information (KL) in all dimensions.")),
)
Dimensions = create_model("Dimensions", dimensions=(list_of(DimensionResponse), Field(description="Largest KL first.")))


# Other responses


class ModelInfo(BaseModel):
    id: str
    kind: Literal["documents", "answers"]
    model: str
    corpus: str | None
    words: int = Field(description="Vocabulary size.")
    latent_dim: int = Field(description="Number of latent dimensions; 0 for a ranker without a latent variable.")
    documents: Literal["none", "reading", "ready"] = Field(description="Whether its training documents are available.")
    indexed: int | None = Field(None, description="A ranker: number of documents in the served index, if there is one.")


class Models(BaseModel):
    models: list[ModelInfo]
    version: str


class SimilarWord(BaseModel):
    word: str
    similarity: float


class SimilarWords(BaseModel):
    word: str = Field(description="As spelled in the vocabulary.")
    similar: list[SimilarWord]


class Vector(BaseModel):
    mean: list[float]
    std: list[float] = Field(description="Standard deviation of each mean; 0 for a model that gives each text a point.")
    known_words: int = Field(description="Known words in the text. Without any, the vector is that of the prior.")


class Vectors(BaseModel):
    vectors: list[Vector]


class TextPerplexity(BaseModel):
    perplexity: float | None = Field(description="Null for a text without a known word.")
    unigram_perplexity: float | None
    known_words: int


Perplexity = create_model(
    "Perplexity",
    texts=(list[TextPerplexity], ...),
    __base__=derived(
        PerplexityRecord,
        *("per_document_perplexity", "corpus_perplexity", "unigram_per_document_perplexity", "kind", "description"),
    ),
    samples=(int, ...),
)


class TopicOfText(BaseModel):
    number: int
    name: str
    probability: float = Field(description="p(topic | text). Over all topics, these sum to one.")
    words: list[str]


class DimensionOfText(BaseModel):
    number: int
    mean: float
    std: float
    words: list[str] = Field(description="Words at the end towards which the text leans.")


class MovingWord(BaseModel):
    word: str
    count: int
    moved: float = Field(description="How far the posterior mean moves if the word is left out.")
    along: float = Field(description="The part of it along the posterior mean; negative if the word pulls away.")
    by_topic: list[float] = Field(description="How much closer (cosine) the word brings the text to each topic listed.")


class Explanation(BaseModel):
    known_words: int
    distinct_words: int
    tried_words: int = Field(description="Distinct words that were left out in turn: the keywords of the text.")
    topics: list[TopicOfText] = Field(description="Most probable first.")
    dimensions: list[DimensionOfText] = Field(description="Those more than one standard deviation from zero.")
    words: list[MovingWord] = Field(description="Largest effect first.")


class SimilarDocument(BaseModel):
    index: int
    similarity: float
    label: str | None
    text: str = Field(description="Its beginning, or its keywords if the corpus has only counts.")


class SimilarDocuments(BaseModel):
    among: int
    similar: list[SimilarDocument]


class TopicOnMap(BaseModel):
    number: int
    name: str
    x: float = Field(description="The densest place of its documents.")
    y: float
    colour: str = Field(description="Topics that touch on the map differ in colour.")


class Map(BaseModel):
    """Columns with one value per document shown."""

    state: Literal["none", "drawing", "ready"] = Field(description="While it is drawn, layouts get better.")
    version: int = Field(description="Counts the layouts. The columns are empty if it is the one that `known` names.")
    of: int = Field(description="Number of training documents; at most 50,000 are shown.")
    x: list[float] = Field(description="From 0 to 1. Documents with similar vectors are close together.")
    y: list[float]
    group: list[int] = Field(description="Index into `groups`.")
    groups: list[str] = Field(description="Labels, or topic names if there are none. The last group is all others.")
    colours: list[str] = Field(description="One per group.")
    labelled: bool = Field(description="Whether the groups are labels.")
    label_name: str = Field(description="Column that the labels come from.")
    topic: list[int] = Field(description="Index into `topics`.")
    topics: list[TopicOnMap] = Field(description="The topics on the map, most frequent first.")
    titles: list[str]


class PlaceOnMap(BaseModel):
    x: float
    y: float
    near: list[int] = Field(description="The nearest documents, as indices into the columns of the map.")


class Example(BaseModel):
    text: str | None = None
    question: str | None = None
    candidates: list[str] | None = None


class Health(BaseModel):
    status: Literal["ok"]
    models: int
    version: str


class Problem(BaseModel):
    error: str = Field(description="What is wrong, in one line.")
