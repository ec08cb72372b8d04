"""The index: the same results in memory and in a folder, after any changes; nothing half-written; damage is named."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varitext import CandidateIndex, IndexedDocument, InputError
from varitext.answers import index as index_module

TEXTS = ["the king was old", "a lake near the city", "the queen and the king", "", "The King, the KING!", "Emma"]
QUESTIONS = ["who was the king?", "the lake", "where is the queen", "xyzzy", ""]


def found(index: CandidateIndex, question: str, n: int = 10) -> list[tuple[str, str]]:
    return [(index[place].id, index[place].text) for place in index.search(question, n)]


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(index_module, "SEGMENT_DOCUMENTS", 3)


words = st.sampled_from(["the", "king", "lake", "was", "old", "near", "a", "city", "who"])
changes = st.lists(
    st.one_of(
        st.dictionaries(st.sampled_from("abcdefgh"), st.lists(words, max_size=6).map(" ".join), min_size=1),
        st.sampled_from("abcdefgh"),
    ),
    max_size=8,
)


@settings(max_examples=20, deadline=None)
@given(changes=changes, n=st.integers(1, 5))
def test_after_any_changes_the_results_are_those_of_a_new_index(tmp_path_factory, changes, n):
    folder = tmp_path_factory.mktemp("index") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "SEGMENT_DOCUMENTS", 3)
        CandidateIndex([IndexedDocument("the first king", "first")]).save(folder)
        index, expected = CandidateIndex.open(folder), {"first": "the first king"}
        for change in changes:
            if isinstance(change, dict):
                replaced = index.add(IndexedDocument(text, name) for name, text in change.items())
                assert replaced == len(expected.keys() & change.keys())
                expected = {name: text for name, text in expected.items() if name not in change} | change
            elif change in expected:
                assert index.delete([change]) == 1
                del expected[change]
        again = CandidateIndex([IndexedDocument(text, name) for name, text in expected.items()])
        for one in (index, CandidateIndex.open(folder)):
            assert len(one) == len(expected) and {doc.id: doc.text for doc in one} == expected
            for question in QUESTIONS:
                assert found(one, question, n) == found(again, question, n)


def test_few_of_many_are_found_as_if_all_were_scored():
    """Frequent words are only looked up for the documents that can still be among the best."""
    generator = np.random.default_rng(0)
    vocabulary = [f"w{number}" for number in range(300)]
    share = 1 / np.arange(1, 301)
    texts = [" ".join(generator.choice(vocabulary, 12, p=share / share.sum())) for _ in range(2000)]
    index = CandidateIndex(texts)
    for number in range(20):
        question = " ".join(generator.choice(vocabulary[: 15 * (number + 1)], 5))
        assert index.search(question, 5).tolist() == index.search(question, len(texts)).tolist()[:5]


def test_ids_metadata_and_long_texts_come_back(tmp_path, small_segments):
    long = "Nothing here. " * 500 + "Fleming lived in London. He discovered penicillin."
    documents = [IndexedDocument(text, f"d{n}", {"page": n, "when": None}) for n, text in enumerate([*TEXTS, long])]
    index = CandidateIndex.create(tmp_path / "index", iter(documents))
    assert [*index] == documents and len(index) == 7
    (place,) = index.search("who came to London?", 3)  # the full stop in the middle of the text is not part of London
    assert index[place] == documents[6]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def test_documents_without_ids_are_numbered_and_no_number_is_given_twice(tmp_path):
    index = CandidateIndex(["a king", "a lake"])
    index.save(tmp_path / "index")
    index = CandidateIndex.open(tmp_path / "index")
    index.add([IndexedDocument("a queen", "7")])
    index.delete(["7"])
    index.add(["a city"])
    assert [one.id for one in index] == ["0", "1", "8"]


def test_a_failed_change_changes_nothing(tmp_path, small_segments):
    CandidateIndex(TEXTS).save(tmp_path / "index")
    index = CandidateIndex.open(tmp_path / "index")

    def broken():
        yield from ("one more king", *TEXTS)
        raise OSError("the disk is gone")

    twice = [IndexedDocument(str(n), f"same {n % 4}") for n in range(5)]
    for documents, error in ((broken(), OSError), (twice, InputError), (["a", 5], InputError), ("a text", InputError)):
        with pytest.raises(error):
            index.add(documents)
        for one in (index, CandidateIndex.open(tmp_path / "index")):
            assert [doc.text for doc in one] == TEXTS and found(one, QUESTIONS[0]) == found(
                CandidateIndex(TEXTS), QUESTIONS[0]
            )
    with pytest.raises(InputError, match="no document of the index has the id '99'; nothing was deleted"):
        index.delete(["0", "99"])
    index.delete(["0"])  # what the failed changes left behind is gone
    assert len(index) == 5 and not list((tmp_path / "index").glob(".*"))
    listed = {one["name"] for one in json.loads((tmp_path / "index" / "config.json").read_text())["segments"]}
    assert {path.name for path in (tmp_path / "index").glob("segment-*")} == listed
    with pytest.raises(InputError, match="exists already"):
        index.save(tmp_path / "index")
    with pytest.raises(InputError, match="no documents to index"):
        CandidateIndex.create(tmp_path / "empty", [])
    assert not (tmp_path / "empty").exists()


def test_two_who_add_do_not_lose_each_others_documents(tmp_path):
    CandidateIndex(["a king"]).save(tmp_path / "index")
    one, other = (CandidateIndex.open(tmp_path / "index") for _ in range(2))
    one.add(["a queen"])
    other.add(["a lake"])
    assert [doc.text for doc in CandidateIndex.open(tmp_path / "index")] == ["a king", "a queen", "a lake"]


@pytest.mark.parametrize(
    "file, content, said",
    [
        ("config.json", b"{}", "does not belong to a varitext index"),
        ("config.json", b'{"format": "varitext-index", "format_version": 1}', "does not describe an index"),
        ("segment-000001/lengths.npy", b"no array", "damaged"),
        ("segment-000001/lengths.npy", None, "missing or damaged"),
        ("segment-000001/documents.jsonl", b"{}\n", "do not fit each other"),
    ],
)
def test_a_damaged_folder_is_refused_by_name(tmp_path, file, content, said):
    CandidateIndex(TEXTS).save(tmp_path / "index")
    path = tmp_path / "index" / file
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        CandidateIndex.open(tmp_path / "index")


def test_damage_inside_files_is_found_when_they_are_read(tmp_path):
    CandidateIndex(TEXTS).save(tmp_path / "index")
    segment = tmp_path / "index" / "segment-000001"
    shutil.copytree(tmp_path / "index", tmp_path / "other")
    lines = segment / "documents.jsonl"
    lines.write_bytes(b"x" * lines.stat().st_size)
    with pytest.raises(InputError, match="is damaged: index the documents again"):
        CandidateIndex.open(tmp_path / "index")[0]
    places = tmp_path / "other" / "segment-000001" / "documents.npy"
    np.save(places, np.load(places) + np.uint32(1000))
    with pytest.raises(InputError, match="is damaged: index the documents again"):
        CandidateIndex.open(tmp_path / "other").search("the king", 3)
