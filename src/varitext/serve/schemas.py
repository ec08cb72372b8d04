"""Request and response bodies: the schema of the API, with its limits."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from varitext.serve.guards import CANDIDATE_CHARACTERS, CANDIDATES, QUESTION_CHARACTERS, SAMPLES, TEXT_CHARACTERS, TEXTS

Text = Annotated[str, StringConstraints(max_length=TEXT_CHARACTERS)]
Candidate = Annotated[str, StringConstraints(max_length=CANDIDATE_CHARACTERS)]


class Request(BaseModel):
    """A request: nothing is guessed from what has another type, and nothing unknown is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TransformRequest(Request):
    texts: list[Text] = Field(min_length=1, max_length=TEXTS, examples=[["the shuttle is in orbit"]])


class AssignRequest(TransformRequest):
    """Texts to sort by topic."""


class PerplexityRequest(TransformRequest):
    samples: int = Field(20, ge=1, le=SAMPLES, description="Draws of h per text; the same request, the same numbers.")


class ExplainRequest(Request):
    text: Text = Field(min_length=1, examples=["the shuttle is in orbit"])
    topics: int = Field(8, ge=1, le=50, description="How many topics, the most probable first, and latent dimensions.")
    words: int = Field(20, ge=1, le=100, description="How many of the words that moved it most.")


class SimilarDocumentsRequest(Request):
    text: Text = Field(min_length=1, examples=["the shuttle is in orbit"])
    among: list[Text] | None = Field(
        None, min_length=1, max_length=TEXTS, description="Documents to choose from; else those it was fitted on."
    )
    n: int = Field(5, ge=1, le=50)


class PlaceRequest(Request):
    text: Text = Field(min_length=1, examples=["the shuttle is in orbit"])


class RankRequest(Request):
    question: str = Field(min_length=1, max_length=QUESTION_CHARACTERS, examples=["who wrote Ulysses ?"])
    candidates: list[Candidate] = Field(
        min_length=1, max_length=CANDIDATES, examples=[["James Joyce wrote Ulysses .", "Dublin lies on the Liffey ."]]
    )
    samples: int | None = Field(None, ge=1, le=SAMPLES, description="Rankings to draw; else as fitted.")
    ordered: bool = Field(
        False, description="The candidates are the sentences of one document, in their order; some models use that."
    )


class ModelInfo(BaseModel):
    id: str
    kind: Literal["documents", "answers"]
    model: str
    corpus: str | None
    words: int = Field(description="Size of the vocabulary.")
    latent_dim: int = Field(description="Latent dimensions; 0 for a ranker that has no latent.")
    documents: Literal["none", "reading", "ready"] = Field(
        description="Whether the documents it was fitted on are here, to find similar ones among."
    )


class Models(BaseModel):
    models: list[ModelInfo]
    version: str


class TypicalResponse(BaseModel):
    row: int = Field(description="In the documents that the model was fitted on, from 0.")
    text: str | None = Field(description="Its beginning, if the model was fitted on texts.")


class TopicResponse(BaseModel):
    number: int
    name: str = Field(description="Words that tell it from its neighbours, or what its owner calls it.")
    documents: int = Field(description="Training documents whose most probable topic it is.")
    share: float = Field(description="Of the training documents.")
    tokens: int = Field(description="Words in these documents.")
    words: list[str] = Field(description="By relevance, best first.")
    weights: list[float] = Field(description="p(word | topic)")
    coherence: float | None = Field(description="NPMI of the first ten words; null for topics merged by hand.")
    typical: list[TypicalResponse]


class ChoiceResponse(BaseModel):
    number: int
    how: str = Field(description="How this number of topics was chosen, in a sentence.")


class Topics(BaseModel):
    topics: list[TopicResponse]
    choice: ChoiceResponse


class DocumentResponse(BaseModel):
    row: int = Field(description="In the request, from 0.")
    topic: int | None = Field(description="The most probable; null for a text without a known word.")
    name: str | None
    probability: float | None
    second_topic: int | None
    second_probability: float | None
    spread: float = Field(description="Root mean square of the standard deviations of its vector.")
    surprise: float | None = Field(description="Nats per word beyond what texts of its length take.")
    known_words: int


class DocumentsAssigned(BaseModel):
    documents: list[DocumentResponse] = Field(description="One for each text, in their order.")


class TopicShareResponse(BaseModel):
    value: str = Field(description="A label, or a time: a day, week, month, quarter or year, as suits the dates.")
    topic: int
    name: str
    documents: int = Field(description="Documents with this value whose most probable topic it is.")
    of: int = Field(description="Documents with this value.")
    share: float
    low: float = Field(description="Of the 95 % interval.")
    high: float


class TopicShares(BaseModel):
    shares: list[TopicShareResponse] = Field(
        description="By value in order; empty if the documents have no such column."
    )


class DimensionResponse(BaseModel):
    number: int
    words: list[str] = Field(description="At its positive end.")
    weights: list[float]
    opposite_words: list[str] = Field(description="At its negative end.")
    share: float = Field(description="Of the information (KL) in all dimensions.")


class Dimensions(BaseModel):
    dimensions: list[DimensionResponse] = Field(description="Those with the largest KL first.")


class SimilarWord(BaseModel):
    word: str
    similarity: float


class SimilarWords(BaseModel):
    word: str = Field(description="As the model knows it.")
    similar: list[SimilarWord]


class Vector(BaseModel):
    mean: list[float]
    std: list[float] = Field(description="How unsure each mean is; 0 where a model gives each text a point.")
    known_words: int = Field(description="Words of the text that the model knows; with none the vector is the prior's.")


class Vectors(BaseModel):
    vectors: list[Vector]


class TextPerplexity(BaseModel):
    perplexity: float | None = Field(description="Null for a text without a known word.")
    unigram_perplexity: float | None
    known_words: int


class Perplexity(BaseModel):
    texts: list[TextPerplexity]
    per_document_perplexity: float
    corpus_perplexity: float
    unigram_per_document_perplexity: float
    kind: str
    figure: str = Field(description="What kind of estimate it is, in a sentence.")
    samples: int


class TopicOfText(BaseModel):
    number: int
    name: str
    probability: float = Field(description="p(topic | text); over all topics these sum to one.")
    words: list[str]


class DimensionOfText(BaseModel):
    number: int
    mean: float
    std: float
    words: list[str] = Field(description="At the end that the text leans to.")


class MovingWord(BaseModel):
    word: str
    count: int
    moved: float = Field(description="Length of the step that the mean makes when the word is left out.")
    along: float = Field(description="How much of it points to where the text lies; below 0 the word pulls away.")
    by_topic: list[float] = Field(
        description="For each of the topics shown, how much nearer to its centre the word brings the text, in cosine."
    )


class Explanation(BaseModel):
    known_words: int
    distinct_words: int
    tried_words: int = Field(description="Distinct words that were left out in turn: the most telling ones.")
    topics: list[TopicOfText] = Field(description="The most probable first.")
    dimensions: list[DimensionOfText] = Field(
        description="Latent dimensions on which the text lies more than one standard deviation from zero."
    )
    words: list[MovingWord] = Field(description="Those that moved it most first.")


class SimilarDocument(BaseModel):
    index: int
    similarity: float
    label: str | None
    text: str = Field(description="Its beginning, or its most telling words if the corpus has only counts.")


class SimilarDocuments(BaseModel):
    among: int
    similar: list[SimilarDocument]


class TopicOnMap(BaseModel):
    number: int
    name: str
    x: float = Field(description="The middle of its documents.")
    y: float


class Map(BaseModel):
    """Columns, with one value per document shown."""

    state: Literal["none", "drawing", "ready"] = Field(description="Only a map that is ready has documents.")
    of: int = Field(description="How many documents there are; at most 1,500 are shown.")
    x: list[float] = Field(description="From 0 to 1; near each other are documents whose vectors point the same way.")
    y: list[float]
    group: list[int] = Field(description="A place in `groups`.")
    groups: list[str] = Field(description="Labels, or names of topics if there are none; the last is of all others.")
    labelled: bool = Field(description="Whether groups are labels.")
    topic: list[int] = Field(description="A place in `topics`.")
    topics: list[TopicOnMap] = Field(description="Those that documents on the map have, the most frequent first.")
    titles: list[str]


class PlaceOnMap(BaseModel):
    x: float
    y: float
    near: list[int] = Field(description="The nearest documents, as places in the columns of the map.")


class RankedCandidateResponse(BaseModel):
    text: str
    place: int
    rank: int
    probability: float = Field(description="Of being a right answer.")
    probability_best: float = Field(
        description="Of being the best right answer; over all candidates, with that of none, these sum to one."
    )
    rank_interval: tuple[int, int] = Field(
        description="Of its rank once it is known which are right, if any is; about 90 %."
    )
    rank_interval_probability: float = Field(description="That the interval holds its rank.")
    known: bool = Field(description="Whether it has a word that the model knows; if not, it comes last.")
    words: list[str]
    attention_mean: list[float] | None
    attention_std: list[float] | None


class RankingResponse(BaseModel):
    question: str
    candidates: list[RankedCandidateResponse]
    n_samples: int
    joint: bool = Field(
        False, description="All probabilities are of one joint model; if not, of each candidate by itself."
    )
    probability_none: float | None = Field(None, description="That none of the candidates is right.")
    probability_top: float | None = Field(None, description="That the first is right.")
    answered: bool = Field(True, description="False where the model would rather not answer.")


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
