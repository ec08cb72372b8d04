"""Word vectors: the file formats, what is refused, and the start of words without a vector."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused

from varitext.corpora.word_vectors import WordVectors, known_word_vectors, load_word_vectors, vectors_for
from varitext.errors import InputError
from varitext.text import Vocabulary

WORDS = ("the", "naïve", '"', "(", "Paris", "日本", "1922")
VECTORS = np.random.default_rng(0).normal(0, 0.4, (len(WORDS), 12)).astype(np.float32)


def as_text(words=WORDS, vectors=VECTORS, header=False, end="\n") -> bytes:
    lines = [f"{len(words)} {vectors.shape[1]}"] if header else []
    lines += [f"{word} {' '.join(map(repr, vector.tolist()))}" for word, vector in zip(words, vectors, strict=True)]
    return "".join(line + end for line in lines).encode()


def as_binary(words=WORDS, vectors=VECTORS, end=b"\n") -> bytes:
    rows = (word.encode() + b" " + vector.astype("<f4").tobytes() for word, vector in zip(words, vectors, strict=True))
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(row + end for row in rows)


def as_npz(path, words, vectors=VECTORS) -> bytes:
    np.savez_compressed(path, words=words, vectors=vectors)
    return path.read_bytes()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "content",
    [as_text(), as_text(end=" \r\n"), as_text(header=True), as_binary(), as_binary(end=b"")],
    ids=["glove", "glove-crlf", "word2vec-text", "word2vec-binary", "word2vec-binary-gensim"],
)
def test_every_format_gives_the_same(content, compressed, tmp_path):
    path = tmp_path / ("vectors.txt.gz" if compressed else "vectors.txt")
    path.write_bytes(gzip.compress(content, mtime=0) if compressed else content)
    loaded = load_word_vectors(path)
    assert loaded.words == WORDS and loaded.dim == 12 and len(loaded) == 7
    assert loaded.vectors.dtype == np.float32 and np.array_equal(loaded.vectors, VECTORS)
    few = load_word_vectors(path, only=("THE", "-LRB-", "unheard"))
    assert few.words == ("the", "(") and np.array_equal(few.vectors, VECTORS[[0, 3]])
    more = load_word_vectors(path, only=("-LRB-",), first=2)
    assert more.words == (*WORDS[:2], "(") and np.array_equal(more.vectors, VECTORS[[0, 1, 3]])


def test_files_that_gensim_writes(tmp_path):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(12)
    keyed.add_vectors(list(WORDS), VECTORS)
    for binary in (True, False):
        keyed.save_word2vec_format(str(tmp_path / "v"), binary=binary)
        loaded = load_word_vectors(tmp_path / "v")
        assert loaded.words == WORDS and np.allclose(loaded.vectors, VECTORS, atol=1e-6)


@pytest.mark.parametrize("words", [np.array("\n".join(WORDS).encode()), np.array(WORDS)])
def test_npz(words, tmp_path):
    as_npz(tmp_path / "v.npz", words)
    assert load_word_vectors(tmp_path / "v.npz").words == WORDS
    assert load_word_vectors(tmp_path / "v.npz", only=["the"]).words == ("the",)


def test_a_word_of_glove_may_have_spaces(tmp_path):
    (tmp_path / "v.txt").write_text("the 1 2\n. . . 3 4\n")
    assert load_word_vectors(tmp_path / "v.txt").words == ("the", ". . .")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"hello\n", "line 1: expected a word and 1 numbers, not 0"),
        (b"the quick fox\n", "line 1: 'quick' is not a number"),
        (b"the 1 2\nof 1\n", "line 2: expected a word and 2 numbers, not 1"),
        (b"the 1 2\nof 1 2 3\n", "line 2: expected a word and 2 numbers, not 3"),
        (b"the 1 2\nof 1 x\n", "line 2: 'x' is not a number"),
        (b"the 1 2\nof 1 nan\n", "the vector of 'of' is not finite"),
        (b"the 1 2\n\xff 1 2\n", "line 2: the word is not UTF-8"),
        (b"3 2\nthe 1 2\nof 1 2\n", "2 words, but the first line announces 3"),
        (b"1 2\nthe 1 2 3\n", "line 2: expected a word and 2 numbers, not 3"),
        (b"1 0\nthe\n", "line 1: 0 dimensions; expected between 1 and"),
        (b"2 2\n", "0 words, but the first line announces 2"),
        (as_text()[:-30], "line 7: expected a word and 12 numbers"),
        (as_binary()[:-30], "word 7: the file is truncated"),
        (as_binary()[:100], "word 2: the file is truncated"),
        (as_binary() + as_binary(), "continues after the 7 words"),
        (b"1 12\n\xff " + struct.pack("<12f", *range(12)), "word 1: the word is not UTF-8"),
    ],
)
def test_files_that_are_refused(content, said, tmp_path):
    (tmp_path / "v.txt").write_bytes(content)
    refused(lambda: load_word_vectors(tmp_path / "v.txt"), "v.txt", said)


def test_other_files_that_are_refused(tmp_path):
    refused(lambda: load_word_vectors(tmp_path / "none.txt"), "none.txt")
    (tmp_path / "v.gz").write_bytes(gzip.compress(as_text(), mtime=0)[:-20])
    refused(lambda: load_word_vectors(tmp_path / "v.gz"), "truncated or damaged")
    whole = as_npz(tmp_path / "v.npz", np.array(WORDS))
    (tmp_path / "cut.npz").write_bytes(whole[:200])
    np.savez(tmp_path / "objects.npz", words=np.array(["a", None], object), vectors=VECTORS[:2])
    np.savez(tmp_path / "other.npz", counts=VECTORS)
    for name in ("cut", "objects", "other"):
        refused(
            lambda name=name: load_word_vectors(tmp_path / f"{name}.npz"), f"{name}.npz is not a readable file of word"
        )
    as_npz(tmp_path / "wrong.npz", np.array(WORDS[:3]))
    refused(lambda: load_word_vectors(tmp_path / "wrong.npz"), "wrong.npz: 3 words, but vectors of shape (7, 12)")
    (tmp_path / "v.txt").write_bytes(as_text())
    refused(lambda: load_word_vectors(tmp_path / "v.txt", only=["unheard"]), "none for these words")


@given(st.binary(max_size=200))
def test_no_file_ends_in_a_traceback(content):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for name in ("v.txt", "v.bin", "v.npz", "v.txt.gz"):
            path = Path(folder) / name
            path.write_bytes(content)
            try:
                assert len(load_word_vectors(path)) > 0
            except InputError as error:
                assert "\n" not in str(error)


# --- vectors for a vocabulary ---


def test_known_words_get_their_vector_and_signs_that_of_what_they_stand_for():
    vectors = WordVectors(WORDS, VECTORS)
    words = ("The", "the", "``", "''", "-LRB-", "-lrb-", "paris", "Paris", "unheard")
    matrix, is_known = vectors_for(Vocabulary(words), vectors, seed=3)
    assert matrix.shape == (9, 12) and matrix.dtype == np.float32
    assert np.array_equal(matrix[[0, 1, 2, 3, 4, 5, 7]], VECTORS[[0, 0, 2, 2, 3, 3, 4]])
    assert is_known.tolist() == [True] * 6 + [False, True, False]  # paris is not Paris


def test_unknown_words_start_as_large_as_known_ones_and_by_the_seed():
    vectors = WordVectors(WORDS, VECTORS)
    words = [f"unheard{number}" for number in range(2000)]
    start = vectors_for(words, vectors, seed=1)
    assert start.n_known == 0
    assert start.matrix.std() == pytest.approx(VECTORS.std(), rel=0.02)
    assert np.abs(start.matrix).max() <= np.sqrt(3) * VECTORS.std() * 1.001
    assert np.array_equal(start.matrix, vectors_for(words, vectors, seed=1).matrix)
    assert not np.array_equal(start.matrix, vectors_for(words, vectors, seed=2).matrix)
    others = vectors_for(["the", *words[1:]], vectors, seed=1).matrix
    assert np.array_equal(others[1:], start.matrix[1:])  # what another word has changes nothing


def test_of_a_word_that_stands_twice_the_first_counts():
    assert WordVectors(("a", "b", "a"), VECTORS[:3]).index == {"a": 0, "b": 1}


def test_the_glove_subset_of_the_data_folder(data_dir, monkeypatch, tmp_path):
    vectors = known_word_vectors(data_dir)
    assert (len(vectors), vectors.dim) == (58811, 100)
    assert vectors.words[0] == "the" or "the" in vectors.index
    start = vectors_for(("Who", "``", "-LRB-", "'s", "1922"), vectors)
    assert start.is_known.tolist() == [True, True, True, False, False]
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path))
    assert known_word_vectors() is None
