"""LlamaIndex: a node postprocessor that reranks and may abstain. Needs llama-index-core."""

from typing import Any

from varitext.errors import InputError, MissingPackage
from varitext.integrations.pipeline import Ranker, RankerSource, best_texts, check_limits, ranker_from, source_name

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
    from pydantic import PrivateAttr, field_serializer
except ModuleNotFoundError as error:
    said = "varitext.integrations.llama_index needs llama-index-core: pip install llama-index-core"
    raise MissingPackage(said) from error


class VaritextRerank(BaseNodePostprocessor):
    """Rerank nodes for a query, among the `node_postprocessors` of a query engine or on its own.

    It returns copies of the nodes, best first, with P(right) as score. Their metadata gains `probability_best`,
    `probability_none` (the same for all nodes of a query) and `rank_interval`; of a long node `window`, the
    characters of its best passage; and `unfamiliar`, the reason, if the question is unlike those of the fit.
    Neither the language model nor an embedding reads these. The ranker reads the text alone, since that is what its
    probabilities are calibrated on.

    Parameters
    ----------
    ranker : AnswerRanker, CalibratedRanker, str or Path
        A fitted ranker, the model folder of one, or the name of a model that needs no fit: "minilm" or "bm25".
    top_n : int, default=None
        Number of nodes to keep. None: all.
    abstain : float, default=None
        Keep no node at all if the best one is right with a lower probability.

    Examples
    --------
    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> from varitext.integrations.llama_index import VaritextRerank
    >>> found = [NodeWithScore(node=TextNode(text=text)) for text in ("Oslo is in Norway", "Joyce wrote Ulysses")]
    >>> VaritextRerank("bm25", top_n=1).postprocess_nodes(found, query_str="who wrote Ulysses?")[0].text
    'Joyce wrote Ulysses'
    """

    ranker: Any = None  # a RankerSource, which pydantic would read field by field
    top_n: int | None = None
    abstain: float | None = None
    _loaded: Ranker = PrivateAttr()

    def __init__(self, ranker: RankerSource, top_n: int | None = None, abstain: float | None = None):
        check_limits(top_n, abstain)
        super().__init__()
        self.ranker, self.top_n, self.abstain = ranker, top_n, abstain
        self._loaded = ranker_from(ranker)

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex writes it to a file.

        Returns
        -------
        str
        """
        return "VaritextRerank"

    @field_serializer("ranker")
    def _ranker_name(self, ranker: RankerSource) -> str:
        return source_name(ranker)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("to rerank nodes takes a query: query_str or query_bundle")
        texts = [one.node.get_content(metadata_mode=MetadataMode.NONE) for one in nodes]
        found = best_texts(self._loaded, query_bundle.query_str, texts, self.top_n, self.abstain)
        return [
            NodeWithScore(node=_with_metadata(nodes[one.place].node, found.metadata(one)), score=one.probability)
            for one in found.kept
        ]


def _with_metadata(node: BaseNode, added: dict[str, Any]) -> BaseNode:
    """A copy, since an index may hold the node itself."""
    hidden = {
        name: [*getattr(node, name), *(key for key in added if key not in getattr(node, name))]
        for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
    }
    return node.model_copy(update={"metadata": node.metadata | added, **hidden})
