"""A ranker behind the interface of the package `rerankers`, so that it drops into pipelines that people have.

The same names and meanings as in `rerankers` 0.10, which need not be installed: `rank`, `rank_async`, `score`;
`results`, `top_k`, `get_score_by_docid`. What is more: each result says how sure its place is.
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import RankedCandidate
from varitext.errors import InputError

DocumentId = int | str


@dataclass(frozen=True)
class Document:
    text: str
    doc_id: DocumentId
    metadata: dict[str, Any] = field(default_factory=dict)
    document_type: str = "text"
    image_path: str | None = None
    base64: str | None = None


class WordAttention(NamedTuple):
    """How much a word of the document counted, and how that varies over samples."""

    word: str
    mean: float
    std: float


@dataclass(frozen=True)
class Result:
    document: Document
    score: float  # the probability of being a right answer
    rank: int  # 1 is the best; tied documents share one
    probability_best: float  # of being the best right answer
    rank_interval: tuple[int, int]  # of its rank once it is known which are right, if any is: about 90 %
    attention: tuple[WordAttention, ...] | None  # None for a model without attention
    known: bool = True  # whether it has a word that the model knows; if not, it comes last, with the score 0

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def doc_id(self) -> DocumentId:
        return self.document.doc_id

    @property
    def metadata(self) -> dict[str, Any]:
        return self.document.metadata


@dataclass(frozen=True)
class RankedResults:
    results: list[Result]  # the best first
    query: str
    has_scores: bool = True

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, index: int) -> Result:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def results_count(self) -> int:
        return len(self.results)

    def top_k(self, k: int) -> list[Result]:
        return self.results[:k]

    def get_score_by_docid(self, doc_id: DocumentId) -> float | None:
        found = self.get_result_by_docid(doc_id)
        return None if found is None else found.score

    def get_result_by_docid(self, doc_id: DocumentId) -> Result | None:
        return next((result for result in self.results if result.doc_id == doc_id), None)


class Reranker:
    """Ranks texts, or objects with a `text`, for a query. Their place in a document is taken as unknown.

    >>> Reranker("models/answers").rank("who wrote Ulysses?", sentences).top_k(3)     # doctest: +SKIP
    """

    def __init__(self, ranker: AnswerRanker | str | Path, samples: int | None = None):
        self.ranker = ranker if isinstance(ranker, AnswerRanker) else AnswerRanker.load(ranker)
        self.samples = samples
        self._one_at_a_time = threading.Lock()  # torch has one random state and one number of threads per process

    def rank(
        self,
        query: str,
        docs: str | Any | Sequence[str | Any],
        doc_ids: Sequence[DocumentId] | None = None,
        metadata: Sequence[dict[str, Any]] | None = None,
    ) -> RankedResults:
        documents = _documents(docs, doc_ids, metadata)
        with self._one_at_a_time:
            ranking = self.ranker.rank(query, [document.text for document in documents], self.samples)
        return RankedResults([_result(documents[one.place], one) for one in ranking.candidates], query)

    async def rank_async(
        self,
        query: str,
        docs: str | Any | Sequence[str | Any],
        doc_ids: Sequence[DocumentId] | None = None,
        metadata: Sequence[dict[str, Any]] | None = None,
    ) -> RankedResults:
        """The same in another thread, so that an event loop can go on."""
        return await asyncio.to_thread(self.rank, query, docs, doc_ids, metadata)

    def score(self, query: str, doc: str | Any) -> float:
        """The probability that the document answers the query, if it is the only one."""
        return self.rank(query, [doc])[0].score


def _documents(
    docs: str | Any | Sequence[str | Any],
    doc_ids: Sequence[DocumentId] | None,
    metadata: Sequence[dict[str, Any]] | None,
) -> list[Document]:
    """Ids and metadata that are given go before the documents' own; without any id, the places from 0."""
    docs = [docs] if isinstance(docs, str) or hasattr(docs, "text") else list(docs)
    for name, values in (("doc_ids", doc_ids), ("metadata", metadata)):
        if values is not None and len(values) != len(docs):
            raise InputError(f"there are {len(docs)} documents and {len(values)} {name}")
    return [
        Document(
            _text(doc, place),
            _first_known(None if doc_ids is None else doc_ids[place], getattr(doc, "doc_id", None), place),
            _first_known(None if metadata is None else metadata[place], getattr(doc, "metadata", None), {}),
        )
        for place, doc in enumerate(docs)
    ]


def _text(doc: str | Any, place: int) -> str:
    text = doc if isinstance(doc, str) else getattr(doc, "text", None)
    if not isinstance(text, str):
        raise InputError(f"document {place} is neither a text nor an object with a text, but {type(doc).__name__}")
    return text


def _first_known(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _result(document: Document, ranked: RankedCandidate) -> Result:
    attention = None
    if ranked.attention_mean is not None and ranked.attention_std is not None:
        weights = zip(ranked.words, ranked.attention_mean, ranked.attention_std, strict=True)
        attention = tuple(WordAttention(*one) for one in weights)
    return Result(
        document,
        ranked.probability,
        ranked.rank,
        ranked.probability_best,
        ranked.rank_interval,
        attention,
        ranked.known,
    )
