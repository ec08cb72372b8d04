"""What was computed for documents is kept beside the model, and changes no result."""

import shutil

import numpy as np
import pytest
import scipy.sparse
from command_line import varitext
from safetensors.numpy import load_file, save_file
from synthetic import topic_documents

from varitext import DocumentModel
from varitext.documents import cache as cache_module
from varitext.documents import posterior as posterior_module
from varitext.documents.cache import CHECKED, SWITCH, cache_key
from varitext.documents.posterior import described_documents, nats_per_word
from varitext.store import CACHE

WORDS = [f"{kind}{chr(97 + i)}" for kind in ("space", "sport", "faith", "trade") for i in range(15)]
COUNTS = topic_documents(documents=300)
TEXTS = [" ".join(word for column in row.indices for word in [WORDS[column]] * int(row[0, column])) for row in COUNTS]
TEXTS += [TEXTS[0], "nothing that it knows", TEXTS[1].upper()]  # a copy, one without known words, a copy in capitals
NEW = [f"{one} {other}" for one, other in zip(TEXTS[:100], TEXTS[100:200], strict=True)]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder that `varitext fit` wrote, and its file."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "texts.csv").write_text("text,kind\n" + "".join(f"{one},{one[:5]}\n" for one in TEXTS))
    options = ("--latent-dim", 4, "--epochs", 8, "--topics", 4, "--threads", 1)
    assert varitext("fit", folder / "texts.csv", "--out", folder / "model", *options).code == 0
    return folder


@pytest.fixture
def folder(fitted, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(fitted, tmp_path / "copy")


@pytest.fixture
def inferred(monkeypatch):
    """The numbers of documents that vectors are inferred of."""
    found, blocks = [], posterior_module._blocks

    def counted(network, compute, counts, *others):
        found.append(counts.shape[0])
        return blocks(network, compute, counts, *others)

    monkeypatch.setattr(posterior_module, "_blocks", counted)
    return found


def assigned(folder, name: str) -> bytes:
    assert varitext("assign", folder / "model", folder / "texts.csv", "--out", folder / name).code == 0
    return (folder / name).read_bytes()


def without_cache(folder, monkeypatch) -> bytes:
    with monkeypatch.context() as context:
        context.setenv(SWITCH, "0")
        return assigned(folder, "without.csv")


def test_commands_after_a_fit_infer_no_vector_of_its_documents_again(folder, inferred, monkeypatch):
    assert assigned(folder, "first.csv") == without_cache(folder, monkeypatch)
    del inferred[:]
    assert assigned(folder, "second.csv") == (folder / "first.csv").read_bytes()
    for arguments in (("topics", folder / "model", "--by", "kind"), ("report", folder / "model", "--by", "kind")):
        assert varitext(*arguments, *(("--out", folder / "r.html") if arguments[0] == "report" else ())).code == 0
    assert sum(inferred) <= 3 * 2 * CHECKED, inferred  # only to check what the file holds


def test_a_fit_keeps_all_but_copies_and_empty_texts(folder, inferred):
    model = DocumentModel.load(folder / "model").use_cache(folder / "model")
    model.document_info(TEXTS)
    assert max(inferred) <= CHECKED
    assert len(load_file(folder / "model" / CACHE)["texts.keys"]) == len({*TEXTS}) - 2


def test_new_documents_are_added_and_the_others_stay(folder):
    model = DocumentModel.load(folder / "model")
    expected = model.posterior(NEW + TEXTS)
    model.use_cache(folder / "model")
    before = len(load_file(folder / "model" / CACHE)["vectors.keys"])
    for _ in range(2):
        assert all(map(np.array_equal, model.posterior(NEW + TEXTS), expected))
    model.save_cache(folder / "model")
    assert len(load_file(folder / "model" / CACHE)["vectors.keys"]) == before + len(NEW) + 1  # and the empty document
    again = DocumentModel.load(folder / "model").use_cache(folder / "model")
    assert all(map(np.array_equal, again.posterior(TEXTS[::-1]), (part[len(NEW) :][::-1] for part in expected)))


def test_counts_with_sentence_vectors_are_kept(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(300, 6))
    counts = scipy.sparse.csr_matrix(COUNTS)
    model = DocumentModel(latent_dim=3, epochs=4, threads=1, n_topics=2).fit(counts, vectors=vectors)
    expected = [model.posterior(counts, vectors=given).mean for given in (vectors, vectors[::-1].copy(), None)]
    model.use_cache()
    for _ in range(2):
        found = [model.posterior(counts, vectors=given).mean for given in (vectors, vectors[::-1].copy(), None)]
        assert all(map(np.array_equal, found, expected))


def wrong_vectors(file):
    return {**file, "vectors.mean": file["vectors.mean"] + 1}


def wrong_counts(file):
    return {**file, "texts.data": file["texts.data"] + 1}


def wrong_width(file):
    return {**file, "vectors.mean": file["vectors.mean"][:, :2].copy()}


def too_few_rows(file):
    return {**file, "vectors.std": file["vectors.std"][1:].copy()}


def outside_the_vocabulary(file):
    return {**file, "texts.indices": file["texts.indices"] + 10**6}


def infinite(file):
    return {**file, "vectors.std": file["vectors.std"] * np.float32(np.inf)}


def nothing_else(file):
    return {"texts.keys": file["texts.keys"]}


CHANGES = (wrong_vectors, wrong_counts, wrong_width, too_few_rows, outside_the_vocabulary, infinite, nothing_else)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_not_right_is_ignored_and_replaced(folder, monkeypatch, change):
    path = folder / "model" / CACHE
    expected = without_cache(folder, monkeypatch)
    save_file(change(load_file(path)), path, {"key": cache_key(folder / "model")})
    assert assigned(folder, "found.csv") == expected
    assert assigned(folder, "again.csv") == expected
    assert set(load_file(path)) >= {"vectors.mean", "texts.data"}


@pytest.mark.parametrize("content", [b"", b"\x80\x04.", b"\xff" * 64, b"{}" * 100])
def test_a_file_of_something_else_is_ignored(folder, monkeypatch, content):
    expected = without_cache(folder, monkeypatch)
    (folder / "model" / CACHE).write_bytes(content)
    assert assigned(folder, "found.csv") == expected


def test_a_cache_of_other_weights_is_ignored(folder, inferred):
    path = folder / "model" / CACHE
    save_file(load_file(path), path, {"key": "of other weights"})
    DocumentModel.load(folder / "model").use_cache(folder / "model").posterior(TEXTS)
    assert max(inferred) == len(TEXTS)


def test_a_folder_without_permission_to_write_is_only_read(folder, monkeypatch):
    (folder / "model" / CACHE).unlink()
    (folder / "model" / CACHE).mkdir()  # also root cannot replace a folder by a file
    assert assigned(folder, "found.csv") == without_cache(folder, monkeypatch)


def test_changed_topics_keep_the_cache_and_other_weights_do_not(folder, inferred):
    assert varitext("topics", folder / "model", "--rename", "0=first").code == 0
    model = DocumentModel.load(folder / "model").use_cache(folder / "model")
    assert len(model.document_info(TEXTS)) == len(TEXTS)
    assert max(inferred) <= CHECKED
    model.partial_fit(NEW, epochs=1)
    assert np.array_equal(model.posterior(TEXTS).mean, model.use_cache().posterior(TEXTS).mean)


def test_a_cache_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(cache_module, "MAX_DOCUMENTS", 70)
    model = DocumentModel.load(folder / "model")
    (folder / "model" / CACHE).unlink()
    expected = model.posterior(TEXTS)
    assert all(map(np.array_equal, model.use_cache(folder / "model").posterior(TEXTS), expected))
    model.save_cache(folder / "model")
    assert len(load_file(folder / "model" / CACHE)["vectors.keys"]) <= 70
    again = DocumentModel.load(folder / "model").use_cache(folder / "model")
    assert all(map(np.array_equal, again.posterior(TEXTS), expected))


def test_the_bound_of_a_document_does_not_depend_on_the_others(folder):
    network, counts = (model := DocumentModel.load(folder / "model")).fitted_.network, model.count(TEXTS[:100])
    nats = nats_per_word(network, counts, 0)
    assert np.array_equal(nats[30:], nats_per_word(network, counts[30:], 0))
    assert np.allclose(nats[:5], nats_per_word(network, counts[:5], 0), atol=1e-5)  # without the others of a block
    bounds = network.evaluate(counts, 200, 0)  # many draws
    assert np.corrcoef(nats, -bounds.elbo / bounds.lengths)[0, 1] > 0.99
    assert np.abs(nats + bounds.elbo / bounds.lengths).mean() < 0.02
    posterior, same = described_documents(network, counts, 0)
    assert np.array_equal(nats, same)
    assert all(map(np.array_equal, posterior, model.posterior(counts)))
