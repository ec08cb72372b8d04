"""A ranker with the interface of the package `rerankers` 0.10, which need not be installed."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from varitext.answers.ranking import RankedCandidate
from varitext.errors import InputError
from varitext.integrations.pipeline import RankerSource, check_limits, rank, ranker_from

if TYPE_CHECKING:
    from varitext.integrations.langchain import VaritextCompressor

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
    """Attention on a word of the document, mean and standard deviation over samples."""

    word: str
    mean: float
    std: float


@dataclass(frozen=True)
class Result:
    """A document with its score, the probability that it is right, and what `RankedCandidate` says of it."""

    document: Document
    score: float
    rank: int
    probability_best: float
    rank_interval: tuple[int, int]
    attention: tuple[WordAttention, ...] | None  # None for a model without attention
    known: bool = True
    window: tuple[int, int] | None = None  # begin and end of a long document's best passage, in characters

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
    """All documents, best first; `answered` is False if the best one is less probable than `abstain`."""

    results: list[Result]
    query: str
    probability_none: float  # that no document is right
    answered: bool
    unfamiliar: str | None = None  # why the question looks unlike those of the fit, if it does
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
    """Rank texts, or objects with a `text`, for a query. Positions in a document are taken as unknown.

    Parameters
    ----------
    ranker : AnswerRanker, CalibratedRanker, str or Path
        A fitted ranker, the model folder of one, or the name of a model that needs no fit: "minilm" or "bm25".
    samples : int, default=None
        Samples of h. None: the ranker's `prediction_samples`.
    abstain : float, default=None
        Probability of the first document below which the results are not `answered`.

    Examples
    --------
    >>> from varitext import Reranker
    >>> Reranker("bm25").rank("who wrote Ulysses?", ["Oslo is in Norway", "Joyce wrote Ulysses"])[0].text
    'Joyce wrote Ulysses'
    """

    def __init__(self, ranker: RankerSource, samples: int | None = None, abstain: float | None = None):
        check_limits(None, abstain)
        self.ranker = ranker_from(ranker)
        self.samples, self.abstain = samples, abstain

    def rank(
        self,
        query: str,
        docs: str | Any | Sequence[str | Any],
        doc_ids: Sequence[DocumentId] | None = None,
        metadata: Sequence[dict[str, Any]] | None = None,
    ) -> RankedResults:
        """Rank documents for a query.

        Parameters
        ----------
        query : str
            The question.
        docs : str, object with a `text`, or a sequence of these
            The documents.
        doc_ids : sequence of int or str, default=None
            Their ids. None: their own `doc_id`, or their places from 0.
        metadata : sequence of dict, default=None
            Their metadata. None: their own `metadata`, or none.

        Returns
        -------
        RankedResults
            The best first.
        """
        documents = _documents(docs, doc_ids, metadata)
        ranking = rank(self.ranker, query, [one.text for one in documents], self.abstain, self.samples, attention=True)
        results = [_result(documents[one.place], one) for one in ranking.candidates]
        return RankedResults(results, query, ranking.probability_none, ranking.answered, ranking.unfamiliar)

    async def rank_async(
        self,
        query: str,
        docs: str | Any | Sequence[str | Any],
        doc_ids: Sequence[DocumentId] | None = None,
        metadata: Sequence[dict[str, Any]] | None = None,
    ) -> RankedResults:
        """The same in another thread, so that an event loop can continue.

        Parameters
        ----------
        query, docs, doc_ids, metadata
            As for `rank`.

        Returns
        -------
        RankedResults
        """
        return await asyncio.to_thread(self.rank, query, docs, doc_ids, metadata)

    def score(self, query: str, doc: str | Any) -> float:
        """The probability that a document answers the query, if it is the only candidate.

        Parameters
        ----------
        query, doc
            As for `rank`.

        Returns
        -------
        float
        """
        return self.rank(query, [doc])[0].score

    def as_langchain_compressor(self, k: int = 10) -> "VaritextCompressor":
        """The same ranker as LangChain's document compressor, which keeps the best `k` documents.

        Returns
        -------
        VaritextCompressor
        """
        from varitext.integrations.langchain import VaritextCompressor

        return VaritextCompressor(self.ranker, top_n=k, abstain=self.abstain)


def _documents(
    docs: str | Any | Sequence[str | Any],
    doc_ids: Sequence[DocumentId] | None,
    metadata: Sequence[dict[str, Any]] | None,
) -> list[Document]:
    docs = [docs] if isinstance(docs, str) or hasattr(docs, "text") else list(docs)
    for name, values in (("doc_ids", doc_ids), ("metadata", metadata)):
        if values is not None and len(values) != len(docs):
            raise InputError(f"there are {len(docs)} documents and {len(values)} {name}")
    found = []
    for place, doc in enumerate(docs):
        text = doc if isinstance(doc, str) else getattr(doc, "text", None)
        if not isinstance(text, str):
            raise InputError(f"document {place} is neither a text nor an object with a text, but {type(doc).__name__}")
        own_id, own_metadata = getattr(doc, "doc_id", None), getattr(doc, "metadata", None)
        doc_id = doc_ids[place] if doc_ids is not None else place if own_id is None else own_id
        found.append(Document(text, doc_id, metadata[place] if metadata is not None else own_metadata or {}))
    return found


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
        ranked.window,
    )
