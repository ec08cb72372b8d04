"""On Ray, in a cluster on this machine: the same shards, vectors and models; a worker that is killed costs no row."""

import contextlib
import json
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch
from command_line import contents, varitext
from sharded import EVERY_WORD, SMALL, shards_of
from synthetic import topic_documents

from varitext import DocumentModel, InputError
from varitext.cli import fit as fit_command
from varitext.corpora import load_documents
from varitext.corpora.prepare import prepare
from varitext.corpora.shards import ShardSizes
from varitext.store import checkpoints

pytest.importorskip("ray", reason="Ray is not installed: pip install 'varitext[ray]'")
pyarrow = pytest.importorskip("pyarrow")

from pyarrow import parquet  # noqa: E402

from varitext.ray import counting, transforming  # noqa: E402
from varitext.ray.cluster import connected  # noqa: E402
from varitext.ray.pieces import cut  # noqa: E402
from varitext.runtime.processes import present_world  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, about its future
DOCUMENTS = 200
TRAINING = ("--epochs", 12, "--batch-size", 32, "--learning-rate", 0.005, "--threads", 1)
OPTIONS = ("--model", "nvdm", "--latent-dim", 4, "--topics", 4, *TRAINING)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A Parquet file of ten row groups, and a model of its documents."""
    folder = tmp_path_factory.mktemp("ray")
    names = np.array([a + b for a in "bcdfgh" for b in ("at", "en", "ig", "ox", "up")] * 2)
    names[30:] = np.char.add(names[30:], "s")
    rows = topic_documents(DOCUMENTS, words=60, length=20).toarray().astype(int)
    texts = [" ".join(np.repeat(names, row)) for row in rows]
    parquet.write_table(pyarrow.table({"body": texts}), folder / "texts.parquet", row_group_size=20)
    prepare([folder / "texts.parquet"], folder / "shards", vocabulary_rules=EVERY_WORD, sizes=ShardSizes(documents=50))
    DocumentModel(**SMALL).fit(load_documents(str(folder / "shards"))).save(folder / "model")
    return folder


@pytest.fixture(scope="module")
def cluster():
    """One for all tests: it takes seconds to start, and Ray gives up on a machine where it takes more than thirty."""
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")  # not two seconds until it sees that a worker is dead
        patch.setenv("RAY_worker_niceness", "0")  # not 15: other tests would leave its workers no time on these cores
        try:
            ray = stack.enter_context(connected())
        except InputError as error:
            pytest.skip(str(error))
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests
        yield ray


def once(marker):
    """Whether nobody asked before, in whichever process."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def test_pieces_are_all_documents_in_order(corpus):
    """No cluster: which documents a worker would read."""
    path = corpus / "texts.parquet"
    whole = parquet.read_table(path)["body"].to_pylist()
    for documents, number in ((1, 10), (50, 4), (60, 4), (10_000, 1)):
        pieces, sources = cut([path, path], "train", None, documents), []
        assert len(pieces) == 2 * number
        assert [text for piece in pieces for text in piece.texts(sources)] == whole * 2
        assert [source.name for source in sources] == ["texts.parquet"] * 2
    shards = load_documents(str(corpus / "shards")).counts
    parts = [piece.counts(shards.vocabulary) for piece in cut([corpus / "shards"], "train", None)]
    assert [part.shape[0] for part in parts] == [50] * 4
    assert sum((part != shards[50 * number : 50 * number + 50]).nnz for number, part in enumerate(parts)) == 0


def test_shards_are_the_same_though_a_worker_is_killed(corpus, cluster, tmp_path, monkeypatch):
    count, marker = counting.count_piece, tmp_path / "killed"

    def count_and_die(piece, find_words, known):
        for row in count(piece, find_words, known):
            yield row
            if piece.first == 5 and once(marker):  # the chunk is on its way, the end of the piece is not
                os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(counting, "count_piece", count_and_die)
    sizes = ShardSizes(documents=50)
    prepare(
        [corpus / "texts.parquet"],
        tmp_path / "s",
        vocabulary_rules=EVERY_WORD,
        sizes=sizes,
        counter=counting.ray_counter(),
    )
    assert marker.exists()
    assert contents(tmp_path / "s") == contents(corpus / "shards")


def test_vectors_are_the_same_though_a_worker_is_killed(corpus, cluster, tmp_path, monkeypatch):
    """By the command, of shards: each is one piece."""
    encoder, marker = transforming.PieceEncoder, tmp_path / "killed"

    class DyingEncoder(encoder):
        def vectors(self, piece):
            for number, block in enumerate(encoder.vectors(self, piece)):
                yield block
                if piece.first == 100 and number == 0 and once(marker):  # the file is begun
                    os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(transforming, "PieceEncoder", DyingEncoder)
    done = varitext("transform", corpus / "model", corpus / "shards", "--ray", "--with-std", "--out", tmp_path / "v")
    assert done.code == 0 and f"{DOCUMENTS} vectors of 4 dimensions" in done.err
    assert marker.exists()
    expected = DocumentModel.load(corpus / "model").posterior(load_documents(str(corpus / "shards")))
    table = parquet.read_table(tmp_path / "v")
    assert table.column_names == [f"{part}_{k}" for part in ("mean", "std") for k in range(4)]
    rows = np.stack([column.to_numpy() for column in table.columns], 1)
    np.testing.assert_allclose(rows, np.hstack(expected), rtol=1e-5, atol=1e-5)  # every row once, in order
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == [f"part-{n:06}.parquet" for n in range(4)]


def test_what_is_wrong_with_a_document_is_told_in_one_line(corpus, cluster, tmp_path):
    """And nothing half-written is left."""
    broken = tmp_path / "broken.parquet"
    parquet.write_table(pyarrow.table({"text": ["a moon", None]}), broken)
    alone = varitext("prepare", broken, "--out", tmp_path / "s")
    ray = varitext("prepare", broken, "--out", tmp_path / "s", "--ray")
    assert ray.code == 2 and ray.err == alone.err and "row 2" in ray.err
    assert varitext("transform", corpus / "model", broken, "--ray", "--out", tmp_path / "w").code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["broken.parquet"]


def test_what_is_not_in_files_is_refused(tmp_path):
    with pytest.raises(InputError, match="on Ray, documents are read from files"):
        prepare(["20newsgroups"], tmp_path / "s", counter=counting.ray_counter())
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(InputError, match="texts or shards"):
        prepare([tmp_path / "a.npy"], tmp_path / "s", counter=counting.ray_counter())


def test_two_workers_learn_what_one_process_learns_though_one_is_killed(cluster, tmp_path, monkeypatch):
    """By the command."""
    shards_of(tmp_path / "shards", topic_documents(), documents=100)
    learn, marker, out = fit_command._fit_in_worker, tmp_path / "killed", tmp_path / "two"
    sizes = tmp_path / "sizes.json"

    def die_after_a_checkpoint():
        while not checkpoints(out):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    def learn_and_die(passed):
        world = present_world("cpu")
        if world.rank == 1 and once(marker):
            threading.Thread(target=die_after_a_checkpoint, daemon=True).start()
        learn(passed)
        if world.is_first:
            sizes.write_text(json.dumps(world.size))

    monkeypatch.setattr(fit_command, "_fit_in_worker", learn_and_die)
    ctrl_c = signal.getsignal(signal.SIGINT)
    done = varitext("fit", tmp_path / "shards", "--ray-workers", 2, *OPTIONS, "--out", out)
    assert done.code == 0 and "model in" in done.err, done
    assert marker.exists() and signal.getsignal(signal.SIGINT) is ctrl_c
    assert json.loads(sizes.read_text()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "shards", "sizes.json", "two"]
    assert varitext("fit", tmp_path / "shards", *OPTIONS, "--out", tmp_path / "one").code == 0
    weights, alone = (DocumentModel.load(tmp_path / name).fitted_.network.state_dict() for name in ("two", "one"))
    for name, expected in alone.items():
        assert torch.allclose(weights[name], expected, atol=2e-4), name
