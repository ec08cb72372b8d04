"""Haystack: a ranker component that may abstain. Needs haystack-ai."""

import dataclasses
from typing import Any

from varitext.errors import MissingPackage
from varitext.integrations.pipeline import Ranker, RankerSource, best_texts, check_limits, ranker_from, source_name

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ModuleNotFoundError as error:
    raise MissingPackage("varitext.integrations.haystack needs haystack-ai: pip install haystack-ai") from error


@component
class VaritextRanker:
    """Rerank documents for a query, after a retriever or a joiner.

    It returns copies of the documents, best first, each id once, with P(right) as score. Their meta gains
    `probability_best`, `probability_none` (the same for all documents of a query) and `rank_interval`; of a long
    document `window`, the characters of its best passage; and `unfamiliar`, the reason, if the question is unlike those
    of the fit.

    Parameters
    ----------
    ranker : AnswerRanker, CalibratedRanker, str or Path
        A fitted ranker, the model folder of one, or the name of a model that needs no fit: "minilm" or "bm25".
        With a ranker in memory a pipeline cannot be written to a file.
    top_k : int, default=None
        Number of documents to keep. None: all.
    abstain : float, default=None
        Keep no document at all if the best one is right with a lower probability.

    Examples
    --------
    >>> from haystack import Document
    >>> from varitext.integrations.haystack import VaritextRanker
    >>> found = [Document(content="Oslo is in Norway"), Document(content="Joyce wrote Ulysses")]
    >>> VaritextRanker("bm25", top_k=1).run(query="who wrote Ulysses?", documents=found)["documents"][0].content
    'Joyce wrote Ulysses'
    """

    def __init__(self, ranker: RankerSource, top_k: int | None = None, abstain: float | None = None):
        check_limits(top_k, abstain)
        self.ranker, self.top_k, self.abstain = ranker, top_k, abstain
        self._loaded: Ranker | None = None

    def warm_up(self) -> None:
        """Load the ranker. A pipeline calls this before it runs."""
        if self._loaded is None:
            self._loaded = ranker_from(self.ranker)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values, for a pipeline that is written to a file.

        Returns
        -------
        dict
        """
        return default_to_dict(self, ranker=source_name(self.ranker), top_k=self.top_k, abstain=self.abstain)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "VaritextRanker":
        """The component from what `to_dict` returned in `data`.

        Returns
        -------
        VaritextRanker
        """
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document], probability_none=float, answered=bool)
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, Any]:
        """Rerank documents for a query.

        Parameters
        ----------
        query : str
            The question.
        documents : list of Document
            What a retriever found.
        top_k : int, default=None
            Number of documents to keep. None: the component's own `top_k`.

        Returns
        -------
        dict
            `documents`, best first; `probability_none`, the probability that none of those given is right; `answered`,
            False if the ranker abstained.
        """
        check_limits(top_k, self.abstain)
        self.warm_up()
        assert self._loaded is not None
        unique = list({one.id: one for one in documents}.values())  # joined retrievers find some documents twice
        texts = [one.content or "" for one in unique]
        found = best_texts(self._loaded, query, texts, self.top_k if top_k is None else top_k, self.abstain)
        kept = [
            dataclasses.replace(
                unique[one.place], score=one.probability, meta=unique[one.place].meta | found.metadata(one)
            )
            for one in found.kept
        ]
        return {"documents": kept, "probability_none": found.probability_none, "answered": found.answered}
