"""LangChain: a document compressor that reranks and may abstain. Needs langchain-core."""

from collections.abc import Sequence
from typing import Any

from varitext.errors import MissingPackage
from varitext.integrations.pipeline import Ranker, RankerSource, best_texts, check_limits, ranker_from

try:
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from pydantic import PrivateAttr
except ModuleNotFoundError as error:
    raise MissingPackage("varitext.integrations.langchain needs langchain-core: pip install langchain-core") from error


class VaritextCompressor(BaseDocumentCompressor):
    """Rerank documents for a query, for `ContextualCompressionRetriever` or on its own.

    It returns copies of documents, best first. Their metadata gains `relevance_score` (P(right)), `probability_best`,
    `probability_none` (the same for all documents of a query) and `rank_interval`; of a long document `window`, the
    characters of its best passage; and `unfamiliar`, the reason, if the question is unlike those of the fit.

    Parameters
    ----------
    ranker : AnswerRanker, CalibratedRanker, str or Path
        A fitted ranker, the model folder of one, or the name of a model that needs no fit: "minilm" or "bm25".
    top_n : int, default=None
        Number of documents to keep. None: all.
    abstain : float, default=None
        Keep no document at all if the best one is right with a lower probability.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from varitext.integrations.langchain import VaritextCompressor
    >>> found = [Document("Oslo is in Norway"), Document("Joyce wrote Ulysses", metadata={"page": 3})]
    >>> VaritextCompressor("bm25", top_n=1).compress_documents(found, "who wrote Ulysses?")[0].metadata["page"]
    3
    """

    top_n: int | None = None
    abstain: float | None = None
    _ranker: Ranker = PrivateAttr()

    def __init__(self, ranker: RankerSource, top_n: int | None = None, abstain: float | None = None):
        check_limits(top_n, abstain)
        super().__init__()
        self._ranker, self.top_n, self.abstain = ranker_from(ranker), top_n, abstain

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The best documents; `acompress_documents` does the same in another thread.

        Parameters
        ----------
        documents : sequence of Document
            What a retriever found.
        query : str
            The question.
        callbacks : Callbacks, default=None
            Not used.

        Returns
        -------
        list of Document
        """
        found = best_texts(self._ranker, query, [one.page_content for one in documents], self.top_n, self.abstain)
        return [_with_metadata(documents[one.place], one.probability, found.metadata(one)) for one in found.kept]


def _with_metadata(document: Document, score: float, added: dict[str, Any]) -> Document:
    """A copy, since a retriever may hold the document itself."""
    return document.model_copy(update={"metadata": document.metadata | {"relevance_score": score} | added})
