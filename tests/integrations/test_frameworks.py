"""Adapters for LangChain, LlamaIndex and Haystack, inside the real packages: one contract for all, then their own."""

import asyncio
import importlib
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest
from made_up_questions import made_up, named_answers

from varitext import AnswerRanker, CalibratedRanker, InputError

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

import haystack
import langchain_core.documents
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever as NodeRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from varitext.integrations.haystack import VaritextRanker
from varitext.integrations.langchain import VaritextCompressor
from varitext.integrations.llama_index import VaritextRerank

QUERY, TEXTS = "who was the king", ["the old lake", "king of the lake", "the king was old", ""]
FIGURES = {"probability_best", "probability_none", "rank_interval"}


@pytest.fixture(scope="module")
def ranker() -> AnswerRanker:
    return AnswerRanker("overlap", vectors="random", threads=1).fit(made_up(20, 0), made_up(5, 1))


@pytest.fixture(scope="module")
def with_dev() -> AnswerRanker:
    """Enough questions to tell what is unfamiliar."""
    return AnswerRanker("overlap", vectors="random", threads=1).fit(made_up(60, 0), made_up(60, 1))


class Found(NamedTuple):
    """A document that an adapter kept."""

    id: str
    text: str
    score: float
    metadata: dict


def by_langchain(texts, query=QUERY, ranker=None, top=None, abstain=None) -> list[Found]:
    given = [langchain_core.documents.Document(text, id=str(n), metadata={"n": n}) for n, text in enumerate(texts)]
    found = VaritextCompressor(ranker, top_n=top, abstain=abstain).compress_documents(given, query)
    assert [one.metadata for one in given] == [{"n": n} for n in range(len(texts))]  # copies were changed
    return [Found(one.id, one.page_content, one.metadata.pop("relevance_score"), one.metadata) for one in found]


def by_llama_index(texts, query=QUERY, ranker=None, top=None, abstain=None) -> list[Found]:
    given = [TextNode(text=text, id_=str(n), metadata={"n": n}) for n, text in enumerate(texts)]
    rerank = VaritextRerank(ranker, top_n=top, abstain=abstain)
    found = rerank.postprocess_nodes([NodeWithScore(node=one) for one in given], query_str=query)
    assert [one.metadata for one in given] == [{"n": n} for n in range(len(texts))]
    return [Found(one.node_id, one.text, one.score, one.metadata) for one in found]


def by_haystack(texts, query=QUERY, ranker=None, top=None, abstain=None) -> list[Found]:
    given = [haystack.Document(id=str(n), content=text, meta={"n": n}) for n, text in enumerate(texts)]
    found = VaritextRanker(ranker, top_k=top, abstain=abstain).run(query, given)["documents"]
    assert [one.meta for one in given] == [{"n": n} for n in range(len(texts))]
    return [Found(one.id, one.content, one.score, one.meta) for one in found]


in_every_framework = pytest.mark.parametrize("ranked", [by_langchain, by_llama_index, by_haystack])
Ranked = Callable[..., list[Found]]


# One contract


@in_every_framework
def test_the_order_and_the_figures_are_those_of_the_ranker_and_metadata_stays(ranked: Ranked, ranker):
    expected = ranker.rank(QUERY, TEXTS)
    found = ranked(TEXTS, ranker=ranker)
    assert [one.text for one in found] == [one.text for one in expected.candidates]
    for one, other in zip(found, expected.candidates, strict=True):
        assert one.id == str(other.place) and one.score == other.probability
        assert one.metadata == {
            "n": other.place,
            "probability_best": other.probability_best,
            "probability_none": expected.probability_none,
            "rank_interval": list(other.rank_interval),
        }


@in_every_framework
def test_only_the_best_are_kept(ranked: Ranked, ranker):
    assert ranked(TEXTS, ranker=ranker, top=2) == ranked(TEXTS, ranker=ranker)[:2]
    with pytest.raises(InputError, match="at least 1 document must be kept, not 0"):
        ranked(TEXTS, ranker=ranker, top=0)


@in_every_framework
def test_all_or_nothing_where_it_abstains(ranked: Ranked, ranker):
    top = ranker.rank(QUERY, TEXTS).probability_top
    assert len(ranked(TEXTS, ranker=ranker, abstain=top)) == len(TEXTS)
    assert not ranked(TEXTS, ranker=ranker, abstain=min(1.0, top + 1e-6))
    with pytest.raises(InputError, match=r"abstain is a probability, from 0 to 1, not 1\.5"):
        ranked(TEXTS, ranker=ranker, abstain=1.5)


@in_every_framework
def test_neither_no_documents_nor_unknown_words_stop_a_pipeline(ranked: Ranked, ranker):
    assert ranked([], ranker=ranker) == []
    assert [one.score for one in ranked(["", "..."], "xyzzy?", ranker=ranker)] == [0, 0]


@in_every_framework
def test_a_ranker_is_also_a_folder_or_a_name(ranked: Ranked, ranker, tmp_path):
    ranker.save(tmp_path / "model")
    assert ranked(TEXTS, ranker=tmp_path / "model") == ranked(TEXTS, ranker=str(tmp_path / "model"))
    assert ranked(TEXTS, ranker=tmp_path / "model") == ranked(TEXTS, ranker=ranker)
    assert ranked(TEXTS, ranker="bm25")[0].text == AnswerRanker("bm25").rank(QUERY, TEXTS).candidates[0].text
    with pytest.raises(InputError, match="nasm must be fitted before it can rank"):
        ranked(TEXTS, ranker="nasm")
    with pytest.raises(InputError, match=r"nothing: no such model folder\. minilm and bm25 need none\."):
        ranked(TEXTS, ranker=tmp_path / "nothing")


@in_every_framework
def test_any_scores_can_be_calibrated_and_used(ranked: Ranked):
    """Here the number of words that question and candidate share."""

    def shared(question: str, candidates: list[str]) -> list[int]:
        return [len({*question.split()} & {*one.split()}) for one in candidates]

    calibrated = CalibratedRanker(shared).fit(named_answers(40, 0))
    expected = calibrated.rank(QUERY, TEXTS)
    found = ranked(TEXTS, ranker=calibrated, top=2)
    assert [one.score for one in found] == [one.probability for one in expected.candidates[:2]]
    assert found[0].metadata["probability_none"] == expected.probability_none
    assert not ranked(TEXTS, ranker=calibrated, abstain=1.0)


@in_every_framework
def test_the_best_passage_of_a_long_document_is_named_and_an_unusual_list(ranked: Ranked, with_dev):
    long = "near the old lake and river . " * 40 + "the king was old . " + "near the old lake and river . " * 40
    (found,), expected = ranked([long], ranker=with_dev), with_dev.rank(QUERY, [long])
    begin, end = expected.candidates[0].window
    assert found.metadata["window"] == [begin, end] and end - begin < len(long) / 2
    assert found.metadata["unfamiliar"] == expected.unfamiliar is not None


@pytest.mark.parametrize(
    ("name", "imported", "package"),
    [
        ("langchain", "langchain_core.documents", "langchain-core"),
        ("llama_index", "llama_index.core.schema", "llama-index-core"),
        ("haystack", "haystack", "haystack-ai"),
    ],
)
def test_a_missing_framework_is_named_in_one_line(monkeypatch, name, imported, package):
    monkeypatch.setitem(sys.modules, imported, None)
    monkeypatch.delitem(sys.modules, f"varitext.integrations.{name}")
    with pytest.raises(InputError, match=f"^varitext.integrations.{name} needs {package}: pip install {package}$") as e:
        importlib.import_module(f"varitext.integrations.{name}")
    assert isinstance(e.value, ImportError)  # for code that tries and does without


# LangChain


class Everything(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun):
        return [langchain_core.documents.Document(text) for text in TEXTS]


def test_in_a_chain_of_langchain_also_asynchronous(ranker):
    compressor = VaritextCompressor(ranker, top_n=1)
    best = RunnableLambda(lambda given: compressor.compress_documents(given["documents"], given["query"]))
    chain = {"documents": Everything(), "query": RunnablePassthrough()} | best
    expected = ranker.rank(QUERY, TEXTS).candidates[0].text
    assert [one.page_content for one in chain.invoke(QUERY)] == [expected]
    given = Everything().invoke(QUERY)

    async def several() -> list:
        return await asyncio.gather(*(compressor.acompress_documents(given, QUERY) for _ in range(4)))

    assert [one[0].page_content for one in asyncio.run(several())] == [expected] * 4


# LlamaIndex


class AllNodes(NodeRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text, metadata={"n": n})) for n, text in enumerate(TEXTS[:3])]


def test_in_a_query_engine_of_llama_index(ranker):
    """Its prompt has the metadata of before, and not the figures; without nodes it answers nothing."""

    def asked(abstain: float | None):
        rerank = VaritextRerank(ranker, top_n=1, abstain=abstain)
        engine = RetrieverQueryEngine.from_args(AllNodes(), llm=MockLLM(), node_postprocessors=[rerank])
        return engine.query(QUERY)

    (source,) = asked(None).source_nodes
    assert set(source.metadata) == {"n"} | FIGURES
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert source.node.get_content(mode) == f"n: {source.metadata['n']}\n\n{source.text}"
    assert "n: " in asked(None).response and "probability" not in asked(None).response
    assert asked(1.0).source_nodes == [] and asked(1.0).response == "Empty Response"


def test_a_postprocessor_is_written_and_read_again(ranker, tmp_path):
    ranker.save(tmp_path / "model")
    written = VaritextRerank(tmp_path / "model", top_n=2, abstain=0.1).to_json()
    again = VaritextRerank.from_json(written)
    assert (again.ranker, again.top_n, again.abstain) == (str(tmp_path / "model"), 2, 0.1)
    assert again.to_json() == written and again.class_name() == "VaritextRerank"
    with pytest.raises(InputError, match="takes a query"):
        again.postprocess_nodes([])
    with pytest.raises(Exception, match="save it, and give the pipeline its folder"):
        VaritextRerank(ranker).to_json()


# Haystack


def test_in_a_pipeline_of_haystack_that_was_written_and_read_again(ranker, tmp_path):
    ranker.save(tmp_path / "model")
    store = InMemoryDocumentStore()
    store.write_documents([haystack.Document(content=text) for text in TEXTS[:3]])
    made = haystack.Pipeline()
    made.add_component("ranker", VaritextRanker(tmp_path / "model", top_k=2, abstain=0.0))
    pipeline = haystack.Pipeline.loads(made.dumps(), allowed_modules=["varitext.*"])
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline.connect("retriever.documents", "ranker.documents")
    found = pipeline.run({"retriever": {"query": QUERY}, "ranker": {"query": QUERY}})["ranker"]
    expected = ranker.rank(QUERY, TEXTS[:3])
    assert [one.content for one in found["documents"]] == [one.text for one in expected.candidates[:2]]
    assert found["probability_none"] == pytest.approx(expected.probability_none) and found["answered"] is True
    for in_memory, hint in ((ranker, "give the pipeline its folder"), (CalibratedRanker(len), "build .* in Python")):
        with pytest.raises(InputError, match=hint):
            VaritextRanker(in_memory).to_dict()


def test_haystack_keeps_each_id_once_and_says_whether_it_abstained(ranker):
    given = [haystack.Document(content=text) for text in (*TEXTS[:3], TEXTS[0])] + [haystack.Document(content=None)]
    component = VaritextRanker(ranker, top_k=9, abstain=1.0)
    found = component.run(query=QUERY, documents=given)
    assert found["documents"] == [] and found["answered"] is False and 0 < found["probability_none"] < 1
    assert component.run(query=QUERY, documents=[]) == {"documents": [], "probability_none": 1.0, "answered": False}
    component.abstain = None
    assert len(component.run(query=QUERY, documents=given)["documents"]) == 4
    assert len(component.run(query=QUERY, documents=given, top_k=1)["documents"]) == 1
