"""The rerankers-style object: the names that pipelines use, the ranker's own figures, and what it adds."""

import asyncio
import inspect
import json
from types import SimpleNamespace

import pytest

from varitext import AnswerRanker, InputError, Reranker, load_questions
from varitext.answers.settings import AnswerRecipe
from varitext.integrations.rerankers import Document, RankedResults, Result

QUERY, TEXTS = "who was the king", ["the old lake", "a first king", "the king was old", "xyzzy"]


@pytest.fixture(scope="module")
def ranker(tmp_path_factory) -> AnswerRanker:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    words = {"who": ("king", "lake"), "where": ("lake", "king")}
    rows = [
        {"question": f"{asked} was number {number}", "answer": f"the {word} was {filler} first", "label": 1 - wrong}
        for number in range(12)
        for asked, pair in words.items()
        for wrong, word in enumerate(pair)
        for filler in ("old", "near")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {
        "model": "nasm",
        "latent_dim": 3,
        "embedding_dim": 6,
        "vectors": "random",
        "recipe": AnswerRecipe(hidden_dim=6, layers=1),
    }
    return AnswerRanker(**settings, epochs=2, batch_size=32, threads=1).fit(load_questions(path))


@pytest.fixture
def reranker(ranker) -> Reranker:
    return Reranker(ranker)


def test_scores_are_those_of_the_ranker_and_the_best_comes_first(ranker, reranker):
    expected = ranker.rank(QUERY, TEXTS).candidates
    found = reranker.rank(QUERY, TEXTS)
    assert found.query == QUERY and found.has_scores and found.results_count() == len(found) == 4
    assert [one.text for one in found] == [one.text for one in expected]
    for one, other in zip(found.results, expected, strict=True):
        assert (one.score, one.rank, one.doc_id) == (other.probability, other.rank, other.place)
        assert (one.probability_best, one.rank_interval) == (other.probability_best, other.rank_interval)
        assert [(word.word, word.mean, word.std) for word in one.attention] == list(
            zip(other.words, other.attention_mean, other.attention_std, strict=True)
        )
    assert found.top_k(2) == found.results[:2] == [found[0], found[1]]
    assert [one.rank for one in found] == [1, 2, 3, 4]


def test_ids_and_metadata_come_back(reranker):
    found = reranker.rank(QUERY, TEXTS, doc_ids=["a", "b", "c", "d"], metadata=[{"n": n} for n in range(4)])
    by_id = {one.doc_id: one for one in found}
    assert {name: one.document.text for name, one in by_id.items()} == dict(zip("abcd", TEXTS, strict=True))
    assert by_id["c"].metadata == {"n": 2} and found.get_result_by_docid("c") is by_id["c"]
    assert found.get_score_by_docid("c") == by_id["c"].score
    assert found.get_score_by_docid("z") is None and found.get_result_by_docid("z") is None


def test_documents_are_texts_or_anything_with_a_text(reranker):
    plain = reranker.rank(QUERY, TEXTS)
    theirs = [SimpleNamespace(text=text, doc_id=None, metadata=None) for text in TEXTS]
    assert reranker.rank(QUERY, theirs) == plain
    named = [Document(text, f"d{place}", {"from": "us"}) for place, text in enumerate(TEXTS)]
    found = reranker.rank(QUERY, named)
    assert {one.doc_id for one in found} == {"d0", "d1", "d2", "d3"} and found[0].metadata == {"from": "us"}
    assert reranker.rank(QUERY, TEXTS[1])[0].text == reranker.rank(QUERY, named[1])[0].text == TEXTS[1]


def test_one_score_and_several_at_once(reranker):
    """Right answers exclude each other: alone, a document is at least as probable as among others."""
    alone = reranker.score(QUERY, TEXTS[2])
    assert alone == pytest.approx(reranker.rank(QUERY, [TEXTS[2]])[0].score, rel=1e-5)
    assert 0 < reranker.rank(QUERY, TEXTS).get_score_by_docid(2) <= alone

    async def several() -> list[RankedResults]:
        return await asyncio.gather(*(reranker.rank_async(QUERY, TEXTS[: n + 2]) for n in (0, 1, 2) * 3))

    for found, n in zip(asyncio.run(several()), (0, 1, 2) * 3, strict=True):
        alone = reranker.rank(QUERY, TEXTS[: n + 2])
        assert [result.doc_id for result in found] == [result.doc_id for result in alone]
        assert [result.score for result in found] == pytest.approx([result.score for result in alone], rel=1e-5)


def test_a_folder_does_as_well_and_samples_can_be_chosen(ranker, tmp_path):
    ranker.save(tmp_path / "model")
    assert Reranker(tmp_path / "model").rank(QUERY, TEXTS) == Reranker(ranker).rank(QUERY, TEXTS)
    best = Reranker(ranker, samples=7).rank(QUERY, TEXTS)[0]
    assert best.probability_best == ranker.rank(QUERY, TEXTS, samples=7).candidates[0].probability_best


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((" ", TEXTS), "question is empty"),
        ((QUERY, []), "no candidates"),
        ((QUERY, ["king", 5]), "document 1 is neither a text nor an object with a text, but int"),
        ((QUERY, TEXTS, ["a"]), "4 documents and 1 doc_ids"),
        ((QUERY, TEXTS, None, [{}]), "4 documents and 1 metadata"),
    ],
)
def test_bad_input_is_one_line(reranker, arguments, said):
    with pytest.raises(InputError, match=said):
        reranker.rank(*arguments)


def test_no_answer_is_marked_and_all_documents_stay(ranker, reranker):
    expected = ranker.rank(QUERY, TEXTS)
    found = reranker.rank(QUERY, TEXTS)
    assert found.answered and found.probability_none == expected.probability_none
    assert found.unfamiliar == expected.unfamiliar and found[0].window is None
    refused = Reranker(ranker, abstain=1.0).rank(QUERY, TEXTS)
    assert not refused.answered and refused.results == found.results
    with pytest.raises(InputError, match="abstain is a probability"):
        Reranker(ranker, abstain=2)


def test_the_compressor_for_langchain(ranker):
    documents = pytest.importorskip("langchain_core.documents")
    given = [documents.Document(text) for text in TEXTS]
    best = ranker.rank(QUERY, TEXTS).candidates[:2]
    kept = Reranker(ranker).as_langchain_compressor(k=2).compress_documents(given, QUERY)
    assert [one.page_content for one in kept] == [one.text for one in best]
    assert Reranker(ranker, abstain=1.0).as_langchain_compressor().compress_documents(given, QUERY) == []


def test_names_are_those_of_the_package_rerankers(reranker):
    """All that its objects offer ours do too, with the same parameters."""
    models, results = (pytest.importorskip(f"rerankers.{name}") for name in ("models.ranker", "results"))
    documents = pytest.importorskip("rerankers.documents")
    found = reranker.rank(QUERY, TEXTS)
    document = documents.Document("a text", doc_id=1)
    for theirs, ours in (
        (results.RankedResults([], QUERY), found),
        (results.Result(document, 0.5, 1), found[0]),
        (document, found[0].document),
    ):
        public = {name for name in dir(theirs) if not name.startswith("_")} - {"attributes"}
        assert public <= set(dir(ours))
    methods = {name: function for name, function in vars(models.BaseRanker).items() if not name.startswith("_")}
    assert set(methods) >= {"rank", "rank_async", "score", "as_langchain_compressor"}
    for name, method in methods.items():
        theirs = inspect.signature(method).parameters
        assert set(theirs) <= set(inspect.signature(getattr(Reranker, name)).parameters)
    assert reranker.rank(QUERY, [documents.Document(text, doc_id=text) for text in TEXTS])[0].doc_id in TEXTS
    assert isinstance(found[0], Result)
