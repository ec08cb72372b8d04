"""Shards on disk: what goes in comes out, fits are those of memory to the bit, memory does not grow, damage is told."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from command_line import forked, refused, varitext
from hypothesis import given, settings
from hypothesis import strategies as st
from sharded import EVERY_WORD, SMALL, record_of, shards_of
from synthetic import topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatches
from varitext.corpora import load_documents
from varitext.corpora.documents import Documents
from varitext.corpora.prepare import prepare
from varitext.corpora.sharded_counts import ShardedCounts, blocks_of
from varitext.corpora.shards import ShardFolder, ShardSizes
from varitext.documents.posterior import perplexity_of
from varitext.evaluation.perplexity import merge_records
from varitext.files import sha256_of
from varitext.text import Vocabulary, VocabularyRules, count_texts
from varitext.text.counting import BoundedIds, count, words_of_token_lists

COUNTS = topic_documents()
TEXTS = ["a rocket to the moon, a rocket", "", "naïve Ærø 東京 東京", "... 12 34", "the moon", "e\u0301te\u0301 moon"]


def same(left: scipy.sparse.csr_matrix, right: scipy.sparse.csr_matrix) -> bool:
    return left.shape == right.shape and (left != right).nnz == 0


def write_jsonl(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


# What goes in comes out


@pytest.mark.parametrize("documents", [1, 2, 1000])
@pytest.mark.parametrize("processes", [1, 2])
def test_texts_are_counted_as_in_memory(tmp_path, documents, processes):
    path = write_jsonl(tmp_path / "a.jsonl", TEXTS)
    sizes = ShardSizes(documents=documents)
    folder = prepare([path, path], tmp_path / "s", vocabulary_rules=EVERY_WORD, processes=processes, sizes=sizes)
    expected = count_texts(TEXTS * 2, vocabulary_rules=EVERY_WORD)
    assert folder.vocabulary == expected.vocabulary
    shards = load_documents(str(tmp_path / "s"))
    assert same(shards.counts[:], expected.counts)
    assert len(folder.shards) == -(-12 // documents)
    assert sorted(p.name for p in (tmp_path / "s").iterdir() if p.is_dir()) == []  # no drafts are left
    config = json.loads((tmp_path / "s" / "config.json").read_text())
    assert config["sources"] == [{"name": "a.jsonl", "sha256": load_documents(str(path)).files[0].sha256}] * 2
    assert config["documents"] == 12 and config["empty_documents"] == 4
    assert config["table"]["largest_undercount"] == 0


@pytest.mark.parametrize("kind", [".jsonl", ".csv", ".parquet", "folder", ".feat", ".npz"])
def test_every_kind_of_file(tmp_path, kind):
    texts = ["a rocket to the moon", "moon, ünder\nmoon", "goal of the season", "rocket season"]
    path = tmp_path / f"corpus{kind}"
    if kind == ".jsonl":
        write_jsonl(path, texts)
    elif kind == ".csv":
        path.write_text("id,body\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(texts)))
    elif kind == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"body": texts}), path)
    elif kind == "folder":
        for name, text in zip(("a/1.txt", "a.txt", "b/2.txt", "b.txt"), texts, strict=True):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
    elif kind == ".feat":
        path.write_text("x 1:2 3:1\nx\n\nx 2:300\n")
    else:
        scipy.sparse.save_npz(path, COUNTS)
    prepare([path], tmp_path / "s", vocabulary_rules=EVERY_WORD)
    whole, shards = load_documents(str(path)), load_documents(str(tmp_path / "s"))
    if whole.texts is not None:
        counted = count_texts(whole.texts, vocabulary_rules=EVERY_WORD)
        assert shards.vocabulary == counted.vocabulary and same(shards.counts[:], counted.counts)
    else:
        assert shards.vocabulary == whole.vocabulary and same(shards.counts[:], whole.counts)


def test_shards_of_shards_and_over_another_vocabulary(tmp_path):
    first = shards_of(tmp_path / "first", COUNTS, 7)
    prepare([first], tmp_path / "second", sizes=ShardSizes(documents=50))
    assert same(load_documents(str(tmp_path / "second")).counts[:], COUNTS)
    few = Vocabulary(("word7", "unheard", "word2"))
    expected = scipy.sparse.hstack([COUNTS[:, 6], scipy.sparse.csr_matrix((300, 1)), COUNTS[:, 1]]).tocsr()
    view = first.counts.over(few)
    assert same(view[:], expected)
    known = np.flatnonzero(np.asarray(expected.sum(1)).ravel())
    assert same(view.without_empty()[:], expected[known])


def test_a_given_vocabulary(tmp_path):
    words = Vocabulary(("rocket", "season"))
    prepare([write_jsonl(tmp_path / "a.jsonl", TEXTS)], tmp_path / "s", vocabulary=words)
    assert same(load_documents(str(tmp_path / "s")).counts[:], count_texts(TEXTS, vocabulary=words).counts)


documents_of_counts = st.lists(st.lists(st.integers(0, 300), min_size=3, max_size=3), min_size=1, max_size=12)


@given(documents_of_counts, st.integers(1, 13), st.integers(1, 9), st.data())
@settings(max_examples=60)
def test_any_rows_of_any_view(tmp_path_factory, table, documents, entries, data):
    """Against the matrix in memory, whatever is empty, left out or asked for."""
    counts = scipy.sparse.csr_matrix(np.array(table, np.float32))
    folder = tmp_path_factory.mktemp("shards") / "s"
    prepare([record_of(counts)], folder, sizes=ShardSizes(documents=documents, entries=entries))
    view = load_documents(str(folder)).counts
    assert same(view[:], counts)
    kept = np.flatnonzero(counts.getnnz(1))
    if not len(kept):
        with pytest.raises(InputError, match="none of the"):
            view.without_empty()
        return
    left_out = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(kept)))))), np.int64)
    expected = np.delete(kept, left_out)
    view = view.without_empty().without(left_out)
    assert view.shape == (len(expected), 3)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, max(0, len(expected) - 1))))), np.int64)
    rows = rows[rows < len(expected)]
    assert same(view[rows], counts[expected[rows]])
    assert same(scipy.sparse.vstack([counts[:0], *view.blocks()]), counts[expected])


# The vocabulary in one pass


@given(st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=6), min_size=1, max_size=30), st.integers(1, 8))
def test_what_the_bounded_table_promises(documents, largest):
    ids, seen = BoundedIds(largest), {}
    for document in documents:
        chunk = count([document], words_of_token_lists, ids)
        seen |= {number: word for word, number in ids.items()}
        ids.add(chunk)
        assert len(ids) <= largest
    true = Counter(word for document in documents for word in document)
    statistics = ids.statistics()
    for word, tokens in zip(statistics.words, statistics.tokens, strict=True):
        assert true[word] - ids.undercount <= tokens <= true[word]
    assert {word for word, n in true.items() if n > ids.undercount} <= set(ids)
    assert ids.ids.tolist() == list(ids.values()) and [seen[n] for n in ids.values()] == list(ids)
    assert len(seen) == len(set(seen))


def test_frequent_words_survive_a_small_table(tmp_path):
    generator = np.random.default_rng(0)
    rare = ["".join(generator.choice(list("bcdfghjk"), 9)) for _ in range(3000)]
    texts = [f"moon {rare[3 * n]} rocket {rare[3 * n + 1]} moon {rare[3 * n + 2]}" for n in range(1000)]
    rules = VocabularyRules(size=2, maximum_document_share=1.0)
    sizes = ShardSizes(documents=100, table=500)
    path = write_jsonl(tmp_path / "a.jsonl", [" ".join([text] * 30) for text in texts])  # so that there are chunks
    folder = prepare([path], tmp_path / "s", vocabulary_rules=rules, sizes=sizes)
    config = json.loads((tmp_path / "s" / "config.json").read_text())
    assert config["table"]["drops"] >= 1
    assert folder.vocabulary.words == ("moon", "rocket")
    assert load_documents(str(tmp_path / "s")).counts[:].toarray().tolist() == [[60, 30]] * 1000


# The same results


def test_fit_evaluate_and_transform_equal_those_in_memory(tmp_path):
    counts = scipy.sparse.vstack([COUNTS[:100], scipy.sparse.csr_matrix((3, 60)), COUNTS[100:]]).tocsr()
    shards = shards_of(tmp_path / "s", counts)
    with pytest.warns(UserWarning, match="3 empty documents"):
        in_memory = DocumentModel(**SMALL).fit(record_of(counts))
    with pytest.warns(UserWarning, match="3 empty documents"):
        streamed = DocumentModel(**SMALL).fit(shards)
    for name, tensor in in_memory.fitted_.network.state_dict().items():
        assert np.array_equal(tensor, streamed.fitted_.network.state_dict()[name]), name
    assert in_memory.perplexity_record(counts) == streamed.perplexity_record(shards)
    assert in_memory.score(counts) == streamed.score(shards)
    assert np.array_equal(in_memory.transform(counts), streamed.transform(shards))
    assert streamed.fitted_.corpus["sha256"] == shards.sha256 and streamed.fitted_.vocabulary == shards.vocabulary


def test_rows_come_in_the_order_in_which_they_are_named(tmp_path):
    counts, rows = shards_of(tmp_path / "s", COUNTS, 20).counts, np.array([93, 5, 41, 40, 5, 0])
    assert (counts[rows] != COUNTS[rows]).nnz == 0
    left = np.delete(np.arange(len(counts)), [0, 40])
    assert (counts.without(np.array([0, 40]))[rows] != COUNTS[left[rows]]).nnz == 0


def windowed(shards: Documents, documents: int) -> ShardedCounts:
    return ShardedCounts(shards.counts.folder, shards.vocabulary, window_documents=documents)


def test_many_windows_give_every_document_once_in_an_order_of_seed_and_epoch(tmp_path):
    numbered = scipy.sparse.csr_matrix(np.eye(100, dtype=np.float32))
    view = windowed(shards_of(tmp_path / "s", numbered, 10), 30)
    assert not view.is_one_window and len(list(view.blocks())) == 4

    def order(seed, word_dropout=0.0):
        batches = CountBatches(view).shuffled(8, seed, word_dropout)
        return [batch.words.tolist() for batch in batches]

    first = order((0, 0))
    assert [len(batch) for batch in first] == [8] * 12 + [4]
    assert sorted(word for batch in first for word in batch) == list(range(100))
    assert order((0, 0)) == first == order((0, 0), word_dropout=0.5) != order((0, 1)) != order((1, 0))
    starts = [{word // 10 for word in batch} for batch in first[:3]]
    assert len(set.union(*starts)) == 3 and all(len(shards) > 1 for shards in starts)  # three shards, mixed


def test_many_windows_fit_and_evaluate_like_one(tmp_path):
    shards = shards_of(tmp_path / "s", COUNTS, 20)
    view = windowed(shards, 60)
    model = DocumentModel("nvdm", **SMALL | {"epochs": 60}).fit(view)
    in_memory = DocumentModel("nvdm", **SMALL | {"epochs": 60}).fit(record_of(COUNTS))
    assert model.perplexity(COUNTS) == pytest.approx(in_memory.perplexity(COUNTS), rel=0.02)
    np.testing.assert_allclose(model.transform(view), model.transform(COUNTS), rtol=1e-5, atol=1e-5)
    parts, whole = model.perplexity_record(view, 50), model.perplexity_record(COUNTS, 50)
    for name in ("per_document_perplexity", "corpus_perplexity", "iwae_corpus_perplexity", "kl_per_word"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=0.01), name
    for name in ("n_documents", "n_tokens", "n_empty_documents"):
        assert getattr(parts, name) == getattr(whole, name)
    exact = ("unigram_per_document_perplexity", "unigram_corpus_perplexity")
    assert all(getattr(parts, name) == pytest.approx(getattr(whole, name)) for name in exact)
    width, expected = (np.log(r.per_document_interval_95[1] / r.per_document_interval_95[0]) for r in (parts, whole))
    assert width == pytest.approx(expected, rel=0.15)
    assert merge_records([whole]) is whole
    assert [block.shape[0] for block in blocks_of(view)] == [60] * 5
    assert perplexity_of(model.fitted_.network, COUNTS[:60], 50, 0) == model.perplexity_record(COUNTS[:60], 50)


# On the command line


def test_prepare_fit_evaluate_transform(tmp_path):
    texts = [" ".join(f"w{chr(97 + w // 8)}{chr(97 + w % 8)}" for w in row.indices) for row in COUNTS]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    outcome = varitext("prepare", path, "--out", tmp_path / "s")
    assert outcome.code == 0 and "300 documents" in outcome.err and "1 shard in" in outcome.err
    options = ("--latent-dim", 4, "--epochs", 2, "--threads", 1)
    as_they_are = ("--keep-boilerplate", "--keep-duplicates")  # as `prepare` counts them
    for corpus, out, texts in ((path, "memory", as_they_are), (tmp_path / "s", "shards", ())):
        assert varitext("fit", corpus, "--out", tmp_path / out, *options, *texts).code == 0
        vectors = tmp_path / f"{out}.npy"
        assert varitext("transform", tmp_path / out, corpus, "--out", vectors, "--with-std").code == 0
    weights = [(tmp_path / out / "weights.safetensors").read_bytes() for out in ("memory", "shards")]
    assert weights[0] == weights[1]
    left, right = (np.load(tmp_path / f"{out}.npy") for out in ("memory", "shards"))
    assert left.shape == (300, 8) and np.array_equal(left, right)
    record = json.loads(varitext("evaluate", tmp_path / "shards", tmp_path / "s", "--json").out)
    assert record["n_documents"] == 300 and not record["held_out"]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert varitext("transform", tmp_path / "shards", tmp_path / "s", "--out", tmp_path / "v.parquet").code == 0
    assert varitext("transform", tmp_path / "shards", tmp_path / "s", "--out", tmp_path / "v.csv").code == 0
    table = parquet.read_table(tmp_path / "v.parquet")
    assert np.array_equal(np.column_stack([column.to_numpy() for column in table.columns]), left[:, :4])
    assert np.array_equal(np.loadtxt(tmp_path / "v.csv", np.float32, delimiter=",", skiprows=1), left[:, :4])


def test_bad_input_is_one_line_and_leaves_nothing(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", TEXTS)
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": \n')
    (tmp_path / "c.feat").write_text("x 1:1\n")
    out = tmp_path / "out"
    assert "line 2: not valid JSON" in refused(tmp_path, "prepare", path, tmp_path / "bad.jsonl", "--out", out)
    assert "together" in refused(tmp_path, "prepare", path, tmp_path / "c.feat", "--out", out)
    assert "neither a file" in refused(tmp_path, "prepare", "nowhere", "--out", out)
    assert "exists already" in refused(tmp_path, "prepare", path, "--out", tmp_path)


@pytest.fixture
def folder(tmp_path):
    shards_of(tmp_path / "s", COUNTS, 100)
    return tmp_path / "s"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def change(key, value):
    def changed(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {key: value}))

    return changed


DAMAGE = [
    (lambda folder: flip(folder / "00001.words.npy"), "00001.words.npy is damaged"),
    (lambda folder: flip(folder / "vocabulary.txt"), "vocabulary.txt is damaged"),
    (lambda folder: (folder / "00002.counts.npy").unlink(), "00002.counts.npy is missing"),
    (lambda folder: (folder / "00002.counts.npy").write_bytes(b""), "00002.counts.npy is truncated"),
    (lambda folder: (folder / "vocabulary.txt").unlink(), "vocabulary.txt is missing"),
    (change("format_version", 99), "format version 99, but this varitext reads version 1"),
    (change("shards", [{"documents": -1}]), "does not describe shards"),
    (change("documents", 7), "300 documents, not 7"),
    (change("shards", None), "does not describe shards"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_damaged_folders_are_refused(folder, damage, message):
    damage(folder)
    assert message in refused(folder, "fit", folder, "--out", folder / "model", "--threads", 1)


def test_foreign_values_are_refused_even_with_the_right_hashes(folder):
    """Out of range, a column would crash compiled code."""
    path, config = folder / "00000.words.npy", json.loads((folder / "config.json").read_text())
    entries = config["shards"][0]["entries"]
    strange = {"does not match": np.full(entries, 200, np.uint8), "cannot be read": np.full(entries, {}, object)}
    for message, words in strange.items():
        np.save(path, words, allow_pickle=True)
        config["shards"][0]["sha256"]["words"] = sha256_of(path)
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match=message):
            ShardFolder.open(folder).map_shard(0)


def test_a_folder_of_something_else(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="does not belong to a shard folder"):
        ShardFolder.open(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError, match="not a shard folder"):
        ShardFolder.open(tmp_path)


# Processes: killed, and measured


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_prepare_leaves_no_shards(tmp_path, how):
    os.mkfifo(tmp_path / "a.jsonl")
    process = forked("prepare", tmp_path / "a.jsonl", "--out", tmp_path / "s")
    with (tmp_path / "a.jsonl").open("wb") as pipe:
        pipe.write(b'{"text": "a rocket to the moon"}\n' * 5000)
        pipe.flush()
        while not list(tmp_path.glob(".s.*")):
            time.sleep(0.02)
        process.send_signal(how)
        process.communicate()
    assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else 130)
    assert not (tmp_path / "s").exists()
    if how == signal.SIGTERM:
        assert not list(tmp_path.glob(".s.*"))
    again = write_jsonl(tmp_path / "b.jsonl", TEXTS)
    assert varitext("prepare", again, "--out", tmp_path / "s").code == 0


PEAK = """
import os, sys
from pathlib import Path
import torch
from varitext.corpora.prepare import prepare
from varitext.corpora.shards import ShardSizes
from varitext.corpora import load_documents
from varitext.corpora.sharded_counts import ShardedCounts
from varitext.documents import topics
from varitext import DocumentModel
def peak():  # of this process; that of getrusage starts with the peak of whoever started it
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
def measure(path, out):
    before = peak()
    prepare([path], out, sizes=ShardSizes(documents=500), processes=1)  # threads have chunks at times that vary
    prepared = peak() - before
    shards = load_documents(out)
    view = ShardedCounts(shards.counts.folder, shards.vocabulary, window_documents=1000, window_entries=150_000)
    model = DocumentModel("nvdm", latent_dim=2, epochs=1, batch_size=64, threads=1, n_topics=2).fit(view)
    for block in model.posterior_blocks(view):
        pass
    model.score(view, samples=2)
    print(prepared, peak() - before, len(shards), flush=True)
topics.MAX_DOCUMENTS = 1000  # as many documents for topics from the small corpus as from the large
torch.optim.AdamW([torch.zeros(1)])  # it imports the rest of torch
for path, out in zip(sys.argv[1::2], sys.argv[2::2]):  # each in a process of its own that starts with the imports
    if not (child := os.fork()):
        measure(path, out)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says there what a process held at most")
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """Four times the corpus takes at most a little more; fitted in one window, it would take 50 MB more."""
    generator = np.random.default_rng(0)
    words = np.array([a + b + c for a in "bdfgklmn" for b in "aeiou" for c in "nrstvwxz"])
    sizes, command = (2500, 10_000), [sys.executable, "-c", PEAK]
    for documents in sizes:
        path = tmp_path / f"{documents}.jsonl"
        chosen = words[generator.integers(len(words), size=(documents, 180))]
        write_jsonl(path, [" ".join(row) for row in chosen])
        command += [str(path), str(tmp_path / f"s{documents}")]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    *peaks, read = zip(*(map(int, line.split()) for line in printed), strict=True)
    assert read == sizes
    for small, large in peaks:
        assert large < small + 5_000, peaks  # kilobytes
