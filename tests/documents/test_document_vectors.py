"""Sentence vectors that users give: checks, folders, updates, the command line, and MiniLM's."""

import json
import signal
import warnings

import numpy as np
import pytest
from command_line import fit, varitext
from refusal import refused
from sharded import shards_of
from synthetic import topic_documents

from varitext import DocumentModel, InputError
from varitext.corpora.document_vectors import CountsWithVectors, VectorOrigin, read_vectors, vectors_of
from varitext.documents.fitting import DocumentTask
from varitext.documents.vectors import encode_texts
from varitext.models.answers import pretrained
from varitext.models.documents.base import DocumentObjective
from varitext.training.settings import TrainingSettings

COUNTS = topic_documents(60, 20, 3, 12)
GENERATOR = np.random.default_rng(0)
VECTORS = (GENERATOR.normal(size=(60, 2)) @ GENERATOR.normal(size=(2, 5))).astype(np.float32)
VECTORS += 0.3 * GENERATOR.normal(size=(60, 5)).astype(np.float32)
SMALL = {"latent_dim": 3, "epochs": 3, "threads": 1, "n_topics": 2}
here = pytest.mark.skipif(not pretrained.is_installed(), reason="MiniLM is not installed: varitext data fetch minilm")
TEXTS = ["orbit moon rocket launch", "goal match team ball", "bread oven flour yeast"] * 12


@pytest.fixture(scope="module")
def model() -> DocumentModel:
    return DocumentModel(**SMALL).fit(COUNTS, vectors=VECTORS)


# What is given


def test_rows_of_counts_take_their_vectors_along():
    both = CountsWithVectors.of(COUNTS, VECTORS)
    rows = np.array([7, 3, 3])
    for chosen in (rows, slice(3, 9), np.arange(60) % 7 == 0):
        assert np.array_equal(vectors_of(both[chosen]), VECTORS[chosen])
        assert (both[chosen] != COUNTS[chosen]).nnz == 0
    assert both[4].vectors.shape == (1, 5) and both[4, 2] == COUNTS[4, 2]
    assert vectors_of(both[:, :3]) is None and vectors_of(both > 0) is None and vectors_of(COUNTS) is None


def test_vectors_are_checked(tmp_path):
    holes = VECTORS.copy()
    holes[33, 1] = np.inf
    refused(lambda: read_vectors(holes, 60), "vectors: row 33 has a value that is not finite")
    refused(lambda: read_vectors(VECTORS[:-1], 60), "vectors: 59 rows for 60 documents")
    for wrong in (VECTORS[0], VECTORS.astype(int), [["a"]], VECTORS[:, :0], VECTORS[None]):
        refused(lambda wrong=wrong: read_vectors(wrong, 60), "needs a matrix of floats, one row per document")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "several.npz", VECTORS, VECTORS)
    (tmp_path / "text.npy").write_text("1,2,3")
    refused(
        lambda: read_vectors(tmp_path / "nowhere.npy", 60), "nowhere.npy: cannot be read (No such file or directory)"
    )
    for name in ("objects.npy", "text.npy"):
        refused(lambda name=name: read_vectors(tmp_path / name, 60), name, "not a .npy file of a matrix")
    refused(lambda: read_vectors(tmp_path / "several.npz", 60), "holds several arrays")


def test_a_file_of_vectors_stays_on_disk_and_gives_the_same_model(model, tmp_path):
    np.save(tmp_path / "vectors.npy", VECTORS)
    assert isinstance(read_vectors(tmp_path / "vectors.npy", 60), np.memmap)
    again = DocumentModel(**SMALL).fit(COUNTS, vectors=tmp_path / "vectors.npy")
    assert np.array_equal(again.transform(COUNTS, vectors=VECTORS), model.transform(COUNTS, vectors=VECTORS))


def test_the_vectors_of_empty_documents_are_left_out_with_them(model):
    counts = COUNTS.copy()
    counts.data[: counts.indptr[2]] = 0  # the first two
    counts.eliminate_zeros()
    with pytest.warns(UserWarning, match="2 empty documents were left out"):
        found = DocumentModel(**SMALL).fit(counts, vectors=VECTORS)
    expected = DocumentModel(**SMALL).fit(COUNTS[2:], vectors=VECTORS[2:])
    assert np.array_equal(found.word_vectors_, expected.word_vectors_)
    with_vector = found.posterior(counts, vectors=VECTORS)
    assert all(info.topic is not None for info in found.document_info(counts, VECTORS)[:2])  # by the vector
    assert [info.topic for info in found.document_info(counts)[:2]] == [None, None]
    assert (with_vector.std[:2] < 1).any(1).all() and (found.posterior(counts).std[:2] == 1).all()


def test_what_does_not_apply_is_refused(model, tmp_path):
    named = DocumentModel("nvdm", **SMALL)
    refused(lambda: named.fit(COUNTS, vectors=VECTORS), "nvdm does not read sentence vectors", "model='nvdm_vectors'")
    refused(lambda: model.transform(COUNTS, vectors=VECTORS[:, :4]), "4 columns", "fitted with 5")
    refused(lambda: model.transform(COUNTS, vectors="minilm"), "vectors='minilm' encodes texts")
    words_only = DocumentModel(**SMALL).fit(COUNTS)
    refused(lambda: words_only.transform(COUNTS, vectors=VECTORS), "was fitted without vectors")
    shards = shards_of(tmp_path / "shards", COUNTS)
    refused(lambda: DocumentModel(**SMALL).fit(shards, vectors=VECTORS), "vectors need counts in memory, not in shards")
    refused(lambda: model.fit(shards, vectors=VECTORS), "not in shards")


# What is fitted


def test_vectors_move_documents_and_their_topics(model):
    assert model.fitted_.model == "nvdm_vectors"
    assert model.fitted_.vectors == VectorOrigin("given", 5)
    both, words = model.posterior(COUNTS, vectors=VECTORS), model.posterior(COUNTS)
    assert both.std.mean() < words.std.mean() and np.abs(both.mean - words.mean).max() > 0.1
    assert np.array_equal(model.transform(COUNTS, vectors=VECTORS), model.transform(model.count(COUNTS, VECTORS)))
    memberships = model.topic_memberships(COUNTS, VECTORS)
    assert [info.topic for info in model.document_info(COUNTS, VECTORS)] == memberships.argmax(1).tolist()
    sizes = [topic.documents for topic in model.topics()]
    assert sizes == np.bincount(memberships.argmax(1), minlength=2).tolist()


def test_a_folder_keeps_the_width_and_origin_of_the_vectors(model, tmp_path):
    model.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert again.fitted_.vectors == model.fitted_.vectors
    assert np.array_equal(again.transform(COUNTS, vectors=VECTORS), model.transform(COUNTS, vectors=VECTORS))
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["learned"]["vectors"]["dimension"] = 6
    del config["config_sha256"]
    path.write_text(json.dumps(config))
    refused(lambda: DocumentModel.load(tmp_path / "model"), "width of the sentence vectors differs")


class Stopper:
    """Progress that is interrupted after the second step."""

    steps = 0

    def step(self, *_):
        self.steps += 1
        if self.steps == 2:
            signal.raise_signal(signal.SIGINT)

    def round(self, record): ...

    def note(self, message): ...


def test_an_interrupted_fit_keeps_the_origin_of_its_vectors(tmp_path):
    stopped = DocumentModel(**SMALL)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(COUNTS, vectors=VECTORS, progress=Stopper())
    stopped.save(tmp_path / "model")
    assert DocumentModel.load(tmp_path / "model").fitted_.vectors == VectorOrigin("given", 5)


def test_a_checkpoint_belongs_to_its_vectors():
    tasks = [
        DocumentTask(CountsWithVectors.of(COUNTS, vectors), COUNTS, TrainingSettings(), DocumentObjective())
        for vectors in (VECTORS, VECTORS.copy(), 2 * VECTORS)
    ]
    first, same, other = (task.fingerprint for task in tasks)
    assert first == same != other


def test_an_update_reads_vectors(model, tmp_path):
    model.save(tmp_path / "model")
    updated = DocumentModel.load(tmp_path / "model").partial_fit(COUNTS, vectors=VECTORS, epochs=1)
    assert updated.fitted_.n_training_documents == 2 * model.fitted_.n_training_documents
    assert updated.fitted_.vectors == model.fitted_.vectors
    refused(lambda: updated.partial_fit(COUNTS, vectors=VECTORS[:9]), "9 rows for 60 documents")


# MiniLM's


@here
def test_texts_are_encoded_at_the_fit_and_after_it(tmp_path, monkeypatch):
    model = DocumentModel(**SMALL).fit(TEXTS, vectors="minilm")
    origin = model.fitted_.vectors
    assert origin == VectorOrigin("minilm", 384, pretrained.weights_sha256())
    vectors = encode_texts(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert np.array_equal(model.transform(TEXTS), model.transform(TEXTS, vectors=vectors))
    words = model.transform(model.count(["rocket moon"]).copy() * 1)
    assert not np.allclose(model.transform(["rocket moon"]), words)
    model.save(tmp_path / "model")
    monkeypatch.setattr(pretrained, "is_installed", lambda: False)
    again = DocumentModel.load(tmp_path / "model")
    with pytest.warns(UserWarning, match="documents are read by their words alone"):
        assert np.array_equal(again.transform(["rocket moon"]), words)
    monkeypatch.undo()
    monkeypatch.setattr(pretrained, "weights_sha256", lambda: "other")
    with pytest.raises(InputError, match="other weights of MiniLM"):
        again.transform(["rocket moon"])


@here
def test_perplexity_does_not_need_the_encoder(monkeypatch):
    model = DocumentModel(**SMALL).fit(TEXTS, vectors="minilm")
    expected = model.perplexity_record(model.count(TEXTS))
    monkeypatch.setattr(pretrained, "is_installed", lambda: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.perplexity_record(TEXTS) == expected


# The command line


def test_the_command_line_reads_vectors(tmp_path):
    table, folder = tmp_path / "texts.csv", tmp_path / "model"
    table.write_text("text\n" + "\n".join(TEXTS) + "\n")
    vectors = np.random.default_rng(1).normal(size=(len(TEXTS), 4))
    np.save(tmp_path / "vectors.npy", vectors)
    np.save(tmp_path / "short.npy", vectors[:-1])
    given = ("--vectors", tmp_path / "vectors.npy")
    options = ("--latent-dim", 3, "--epochs", 3, "--threads", 1, "--topics", 2)
    fit(table, folder, *given, *options)
    model = DocumentModel.load(folder)
    assert model.fitted_.vectors == VectorOrigin("given", 4)
    assert varitext("assign", folder, table, *given, "--out", tmp_path / "topics.json").code == 0
    assigned = [row["topic"] for row in json.loads((tmp_path / "topics.json").read_text())]
    assert assigned == model.topic_memberships(TEXTS, vectors).argmax(1).tolist()
    assert varitext("transform", folder, table, *given, "--out", tmp_path / "h.npy").code == 0
    assert np.array_equal(np.load(tmp_path / "h.npy"), model.transform(TEXTS, vectors=vectors))
    for words, expected in {
        ("assign", folder, table, "--vectors", tmp_path / "short.npy", "--out", tmp_path / "t.csv"): "35 rows, but",
        (
            "fit",
            table,
            "--vectors",
            tmp_path / "short.npy",
            "--out",
            tmp_path / "m",
            *options,
        ): "35 rows for 36 documents",
        ("fit", table, "--vectors", table, "--out", tmp_path / "m", *options): "not a .npy file of a matrix",
        ("fit", table, *given, "--model", "nvdm", "--out", tmp_path / "m"): "nvdm does not read sentence vectors",
        ("fit", table, "--model", "nvdm_vectors", "--out", tmp_path / "m"): "add --vectors FILE.npy",
        ("fit", table, *given, "--ray-workers", 2, "--out", tmp_path / "m"): "Ray's workers do not read",
    }.items():
        outcome = varitext(*words)
        assert outcome.code == 2 and expected in outcome.err and outcome.err.count("\n") == 1, outcome
        assert not (tmp_path / "m").exists()
