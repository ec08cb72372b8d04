"""Training in many processes: the model of one process to rounding error, restarts that lose nothing, interruption."""

import dataclasses
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import forked, varitext
from sharded import shards_of
from synthetic import topic_documents
from torch import distributed

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatches
from varitext.documents.fitting import DocumentTask, choose_trainer
from varitext.latent import Bernoullis, Categoricals, DiagonalGaussian
from varitext.models.documents import model_class
from varitext.models.documents.base import DocumentObjective
from varitext.runtime import interruption
from varitext.runtime.processes import ALONE, World, present_world, working_on
from varitext.training.settings import Progress, TrainingSettings
from varitext.training.trainer import Trainer

COUNTS = topic_documents(documents=97, words=24, topics=3, length=15)  # 77 to learn from: the last batch has one
SETTINGS = TrainingSettings(epochs=3, batch_size=19, learning_rate=5e-3, samples=2, rounds_per_epoch=2)
ROUNDING = 2e-4  # of the largest weight: sums of float32 in another order, through a dozen updates of Adam
TRAINING = ("--epochs", 30, "--batch-size", 33, "--learning-rate", 0.005, "--threads", 1)
OPTIONS = ("--model", "nvdm", "--latent-dim", 4, "--topics", 4, *TRAINING)


def trained(world: World, name: str, architecture: dict, changes: dict, progress: Progress | None = None) -> Trainer:
    settings = dataclasses.replace(SETTINGS, **changes)
    torch.manual_seed(3)
    model = model_class(name)(vocabulary_size=COUNTS.shape[1], latent_dim=4, **architecture)
    model.learn_frequencies(torch.from_numpy(np.asarray(COUNTS.sum(0)).ravel()))
    objective = DocumentObjective(length_exponent=0.7, word_dropout=0.5 if name == "nvdm" else 0.0)
    task = DocumentTask(COUNTS[20:], COUNTS[:20], settings, objective, world=world)
    trainer = Trainer(model, task, settings, progress=progress, world=world)
    trainer.train()
    return trainer


def outcome(trainer: Trainer) -> dict[str, torch.Tensor]:
    """The last weights, not only the best: those may be the first."""
    scores = [record["dev_perplexity"] for record in trainer.state.history]
    last = {name: tensor.float() for name, tensor in trainer.safe.tensors.items() if name.startswith("model.")}
    return last | {"scores": torch.tensor(scores)}


def in_processes(size: int, folder: Path, work: Callable[[World], dict[str, torch.Tensor]]) -> list[dict]:
    """What `work` gives in each of `size` processes that know each other. Forked: importing torch takes seconds."""

    def run(rank: int) -> None:
        torch.set_num_threads(1)
        distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=size)
        torch.save(work(present_world("cpu")), folder / f"{rank}.pt")
        distributed.destroy_process_group()

    started = [multiprocessing.get_context("fork").Process(target=run, args=(rank,)) for rank in range(size)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * size
    return [torch.load(folder / f"{rank}.pt") for rank in range(size)]


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, expected in one.items():
        scale = max(1.0, float(expected.abs().max()))
        assert torch.allclose(other[name].double(), expected.double(), rtol=0, atol=ROUNDING * scale), name


# The same model


@pytest.mark.parametrize(
    ("name", "architecture", "changes"),
    [
        ("nvdm", {"inference": "words", "hidden_dim": 16}, {"averaging": 0.9}),
        ("nvdm", {"inference": "statistics", "hidden_dim": 16, "activation": "silu"}, {"updates": "alternating"}),
        ("sbn", {"estimator": "nvil"}, {}),
        ("sbn", {"estimator": "local_expectation"}, {}),
        ("nvdm_categorical", {"estimator": "leave_one_out"}, {}),
        ("swv", {}, {}),
    ],
)
def test_two_processes_learn_what_one_learns(tmp_path, name, architecture, changes):
    alone = outcome(trained(ALONE, name, architecture, changes))
    first, second = in_processes(2, tmp_path, lambda world: outcome(trained(world, name, architecture, changes)))
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert_close(alone, first)
    assert not torch.equal(alone["scores"][-1], alone["scores"][0])


def test_three_processes_share_a_batch_of_one_document(tmp_path):
    """Two of them have no row of it, yet draw and sum like the third."""
    settings = {"batch_size": 4, "epochs": 1}
    alone = outcome(trained(ALONE, "nvdm", {"hidden_dim": 16}, settings))
    for found in in_processes(3, tmp_path, lambda world: outcome(trained(world, "nvdm", {"hidden_dim": 16}, settings))):
        assert_close(alone, found)


class Asking:
    """Presses Ctrl-C, once, after some steps."""

    def __init__(self):
        self.steps = 0

    def step(self, *_: float) -> None:
        self.steps += 1
        if self.steps == 7:
            signal.raise_signal(signal.SIGINT)

    def round(self, _: dict[str, float]) -> None: ...

    def note(self, _: str) -> None: ...


def test_one_who_is_asked_to_stop_stops_all(tmp_path):
    def work(world: World) -> dict[str, torch.Tensor]:
        progress = Asking() if world.rank == 1 else None  # not the first, which has to be told
        run = trained(world, "nvdm", {"hidden_dim": 16}, {"epochs": 100_000, "patience": 10**6}, progress)
        return {"stopped": torch.tensor(run.state.stopped == "interrupted"), "step": torch.tensor(run.state.step)}

    first, second = in_processes(2, tmp_path, work)
    assert first["stopped"] and second["stopped"] and first["step"] == second["step"]


def test_the_clock_of_the_first_process_counts_for_all(tmp_path):
    def work(world: World) -> dict[str, torch.Tensor]:
        run = trained(world, "nvdm", {"hidden_dim": 16}, {"epochs": 100_000, "time_limit": 0.5, "patience": 10**6})
        return outcome(run) | {"step": torch.tensor(run.state.step), "seconds": torch.tensor(run.state.seconds)}

    first, second = in_processes(2, tmp_path, work)
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert first["seconds"] >= 0.5


# Shares and their noise


@pytest.mark.parametrize("rows", [1, 2, 5, 128])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shares_are_all_rows_once(rows, size):
    shares = [World(rank, size).share(rows) for rank in range(size)]
    counted = np.concatenate([np.arange(rows)[share.rows] for share in shares if share.weight])
    assert counted.tolist() == list(range(rows))
    assert all(share.stop > share.start and share.whole == rows for share in shares)
    lengths = [share.stop - share.start for share in shares if share.weight]
    assert max(lengths) - min(lengths) <= 1
    values = torch.arange(rows, dtype=torch.float64).expand(2, rows)
    assert sum(share.mean(values[:, share.rows]) for share in shares) == pytest.approx(values.mean())


@pytest.mark.parametrize(
    "draw",
    [
        lambda rows: DiagonalGaussian(rows, rows / 3).rsample(3),
        lambda rows: Bernoullis(rows).sample(3),
        lambda rows: Categoricals(rows).sample(3),
        lambda rows: Categoricals(rows[..., None] * torch.ones(2)).sample(3),
    ],
)
def test_noise_does_not_depend_on_the_number_of_processes(draw):
    rows = torch.linspace(-1, 1, 35).view(7, 5)

    def drawn(world: World) -> torch.Tensor:
        torch.manual_seed(1)
        share = world.share(7)
        with working_on(share):
            return draw(rows[share.rows])

    whole = drawn(ALONE)
    assert torch.equal(whole, torch.cat([drawn(World(rank, 3)) for rank in range(3)], 1))


@pytest.mark.parametrize("word_dropout", [0.0, 0.6])
def test_shares_of_the_batches_are_the_batches(tmp_path, word_dropout):
    counts = shards_of(tmp_path / "shards", COUNTS, documents=20).counts
    whole = list(CountBatches(counts).shuffled(30, (0, 1), word_dropout))
    parts = [list(CountBatches(counts).shuffled(30, (0, 1), word_dropout, World(rank, 2))) for rank in range(2)]
    assert len(whole) == len(parts[0]) == len(parts[1]) == 4
    for batch, *shares in zip(whole, *parts, strict=True):
        assert torch.equal(batch.words, torch.cat([share.words for share in shares]))
        assert torch.equal(batch.counts, torch.cat([share.counts for share in shares]))


@pytest.mark.parametrize("name", ["rsm", "docnade", "lda"])
def test_models_whose_documents_do_not_draw_alone_are_refused(name):
    model = DocumentModel(name, latent_dim=4)
    network = model_class(name)(vocabulary_size=24, latent_dim=4)
    recipe = model_class(name).recipe(model.preset, 97, 15.0)
    with pytest.raises(InputError, match="in one process only"):
        choose_trainer(network, recipe, COUNTS, COUNTS, "cpu", world=World(0, 2))


# The launcher


COMMAND_LINE = Path(interruption.__file__).parents[1] / "__main__.py"
LAUNCH = ("--standalone", "--nproc-per-node", 2, "--monitor-interval", 0.1)


def torchrun(*arguments: object) -> subprocess.Popen:
    """As people type it: three imports of torch."""
    typed = [sys.executable, "-m", "torch.distributed.run", *LAUNCH, "-m", "varitext", "fit", *arguments, *OPTIONS]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(list(map(str, typed)), env=environment, **pipes)


def forked_torchrun(*arguments: object, restarts: int) -> subprocess.Popen:
    """The same launcher, forked from here, that forks its workers, also those that it starts again."""
    how = ("--max-restarts", restarts, "--start-method", "fork", "--run-path", COMMAND_LINE)

    def launch() -> None:
        from torch.distributed import run as distributed_run

        os.environ["OMP_NUM_THREADS"] = "1"
        interruption.STARTED_BY = os.getpid()  # what the workers would note, if it were they who import it
        distributed_run.main(list(map(str, (*LAUNCH, *how, "fit", *arguments, *OPTIONS))))

    return forked(run=launch)


def wait_for(path: Path, launched: subprocess.Popen) -> None:
    while not path.exists():
        assert launched.poll() is None, launched.communicate()
        time.sleep(0.02)


def children(launched: subprocess.Popen) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{launched.pid}/task/{launched.pid}/children").read_text().split()]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return DocumentModel.load(folder).fitted_.network.state_dict()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Shards, and beside them what one process learns from them."""
    folder = tmp_path_factory.mktemp("many")
    shards_of(folder / "shards", topic_documents(), documents=50)
    assert varitext("fit", folder / "shards", "--out", folder / "alone", *OPTIONS).code == 0
    return folder


def test_a_killed_process_is_started_again_and_nothing_is_lost(alone, tmp_path):
    launched = forked_torchrun(alone / "shards", "--out", tmp_path / "model", restarts=1)
    wait_for(tmp_path / "model" / "checkpoint.safetensors", launched)
    os.kill(children(launched)[-1], signal.SIGKILL)
    _, err = launched.communicate()
    assert launched.returncode == 0, err
    assert err.count("model in") == 1
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == sorted(
        path.name for path in (alone / "alone").iterdir()
    )
    assert_close(weights(alone / "alone"), weights(tmp_path / "model"))
    steps = [json.loads(line)["step"] for line in (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [json.loads(line)["step"] for line in (alone / "alone" / "metrics.jsonl").read_text().splitlines()]


def test_processes_end_with_a_launcher_that_dies_before_they_have_found_each_other():
    """Two of three that are to come: the third never does."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "3", "RANK": "1"}
    waiting = "from varitext.runtime.processes import joined\nprint(1, flush=True)\nwith joined('cpu'): pass"
    launcher = (
        "import subprocess, sys\n"
        f"worker = subprocess.Popen([sys.executable, '-c', {waiting!r}], stdout=subprocess.PIPE)\n"
        "worker.stdout.readline()\n"
        "print(1, flush=True)\n"
        "worker.wait()"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", launcher], env=environment, **pipes) as launched:
        launched.stdout.readline()  # the worker waits for the others
        launched.kill()
        _, err = launched.communicate(timeout=60)  # until whoever holds the pipe is gone, the worker too
    assert err == "varitext: the launcher went away before all processes had started\n"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_launcher_that_is_asked_to_stop_leaves_a_run_that_goes_on(alone, tmp_path):
    """Stopped in two processes, resumed in one."""
    launched = torchrun(alone / "shards", "--out", tmp_path / "model")
    wait_for(tmp_path / "model" / "checkpoint.safetensors", launched)
    launched.terminate()
    launched.communicate()
    assert (tmp_path / "model" / "checkpoint.safetensors").exists()
    assert varitext("fit", alone / "shards", "--out", tmp_path / "model", *OPTIONS, "--resume").code == 0
    assert_close(weights(alone / "alone"), weights(tmp_path / "model"))
