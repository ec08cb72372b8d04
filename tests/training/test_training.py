"""The training loop: same bits, resume, interruption, divergence, schedule."""

import dataclasses
import math
import os
import signal

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import topic_documents

from varitext.batches.counts import CountBatch
from varitext.documents.fitting import DocumentTask
from varitext.errors import InputError, TrainingDiverged
from varitext.latent import Bound
from varitext.models.documents.base import DocumentObjective
from varitext.models.documents.nvdm import NVDM
from varitext.training.settings import TrainingSettings
from varitext.training.trainer import Trainer, load_checkpoint

SETTINGS = TrainingSettings(epochs=6, batch_size=32, learning_rate=5e-3)


def trainer(counts=None, checkpoint=None, progress=None, **changes):
    counts = topic_documents() if counts is None else counts
    settings = dataclasses.replace(SETTINGS, **changes)
    torch.manual_seed(settings.seed)
    model = NVDM(counts.shape[1], latent_dim=4, hidden_dim=16)
    model.learn_frequencies(torch.from_numpy(np.asarray(counts.sum(0)).ravel()))
    task = DocumentTask(counts[40:], counts[:40], settings, DocumentObjective(length_exponent=0.7, word_dropout=0.5))
    return Trainer(model, task, settings, checkpoint, progress)


def weights(trained):
    return torch.cat([tensor.flatten() for tensor in trained.model.state_dict().values()])


class Watcher:
    """Does something in a given round; keeps what it saw."""

    def __init__(self, at_round=None, action=None):
        self.at_round, self.action, self.rounds, self.notes = at_round, action, 0, []

    def step(self, share_done, elbo, kl):
        self.share_done = share_done

    def round(self, record):
        self.rounds += 1
        if self.rounds == self.at_round:
            self.action()

    def note(self, message):
        self.notes.append(message)


def test_training_learns_and_keeps_the_best():
    run = trainer(epochs=15)
    state = run.train()
    perplexities = [record["dev_perplexity"] for record in state.history]
    assert state.stopped in ("finished", "early")
    assert state.best == min(perplexities) < 0.75 * perplexities[0]
    assert run.task.score(run.model).loss == pytest.approx(state.best, rel=0.02)


def test_same_seed_same_bits_and_other_seed_other_bits():
    first, second, other = trainer(), trainer(), trainer(seed=1)
    for run in (first, second, other):
        run.train()
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(other))


def test_training_leaves_the_global_random_state_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run = trainer()
    torch.manual_seed(5)
    run.train()
    assert torch.equal(torch.rand(3), expected)


class Killed(Exception):
    pass


def kill():
    raise Killed


@pytest.mark.parametrize("settings", [{"updates": "joint"}, {"updates": "alternating"}, {"averaging": 0.9}])
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, settings):
    whole = trainer(**settings)
    whole_state = whole.train()
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Killed):
        trainer(checkpoint=path, progress=Watcher(4, kill), **settings).train()
    resumed = trainer(checkpoint=path, **settings)
    resumed_state = resumed.train(resume=True)
    assert torch.equal(weights(whole), weights(resumed))
    timeless = [{key: value for key, value in record.items() if key != "seconds"} for record in whole_state.history]
    assert timeless == [{k: v for k, v in record.items() if k != "seconds"} for record in resumed_state.history]


def test_every_epoch_has_the_same_documents_in_another_order():
    task = DocumentTask(topic_documents(), topic_documents(20, seed=1), SETTINGS, DocumentObjective())
    orders = [torch.cat([batch.lengths for batch in task.batches(epoch)]) for epoch in (0, 1, 2, 0)]
    assert torch.equal(orders[0], orders[3])
    for order in orders[1:3]:
        assert not torch.equal(order, orders[0]) and torch.equal(order.sort().values, orders[0].sort().values)
    assert not torch.equal(orders[1], orders[2])


class KnownBounds:
    """Says of every document what it is told to."""

    def __init__(self, values):
        self.values = torch.tensor(values)

    def set_gradients(self, batch, weights, samples, kl_weight):
        return None

    def objective(self, batch, samples, kl_weight):
        return self.values, Bound(self.values, torch.zeros(len(batch), 1))


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0])
def test_a_document_weighs_its_length_to_the_power_of_minus_the_exponent(exponent):
    lengths, bounds = np.array([2.0, 50.0]), np.array([-3.0, -11.0])
    counts = scipy.sparse.csr_matrix(lengths[:, None].astype(np.float32))
    task = DocumentTask(counts, counts, SETTINGS, DocumentObjective(length_exponent=exponent))
    found = task.loss(KnownBounds(bounds), CountBatch.from_rows(counts), kl_weight=1.0)
    expected = -(lengths**-exponent * bounds).mean() / (lengths ** (1 - exponent)).mean()
    assert found.loss.item() == pytest.approx(expected, rel=1e-5)
    assert found.elbo.item() == pytest.approx((bounds / lengths).mean(), rel=1e-5)


def test_ctrl_c_keeps_the_best_model_and_resumes_to_the_same_bits(tmp_path):
    ctrl_c = signal.getsignal(signal.SIGINT)
    whole = trainer()
    whole.train()
    path = tmp_path / "checkpoint.safetensors"
    interrupted = trainer(checkpoint=path, progress=Watcher(4, lambda: os.kill(os.getpid(), signal.SIGINT)))
    state = interrupted.train()
    assert state.stopped == "interrupted"
    assert torch.equal(weights(interrupted), torch.cat([t.flatten() for t in interrupted.best_weights.values()]))
    resumed = trainer(checkpoint=path)
    assert resumed.train(resume=True).stopped == "finished"
    assert torch.equal(weights(whole), weights(resumed))
    assert signal.getsignal(signal.SIGINT) is ctrl_c


def test_resume_refuses_other_settings_other_data_and_damaged_files(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    trainer(checkpoint=path, epochs=1).train()
    with pytest.raises(InputError, match="other settings"):
        trainer(checkpoint=path, epochs=2).train(resume=True)
    with pytest.raises(InputError, match="other data"):
        trainer(topic_documents(seed=7), checkpoint=path, epochs=1).train(resume=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="damaged or was changed"):
        trainer(checkpoint=path, epochs=1).train(resume=True)
    path.write_bytes(whole[:100])
    with pytest.raises(InputError, match="not a checkpoint"):
        trainer(checkpoint=path, epochs=1).train(resume=True)


def test_how_often_the_score_is_taken_does_not_change_the_run(tmp_path):
    finals = []
    for rounds in (1, 4):
        path = tmp_path / f"{rounds}.safetensors"
        trainer(checkpoint=path, rounds_per_epoch=rounds, patience=100).train()
        finals.append(load_checkpoint(path).tensors)
    for name, tensor in finals[0].items():
        if name.startswith("model."):
            assert torch.equal(tensor, finals[1][name])


def test_early_stopping_waits_for_the_whole_kl():
    state = trainer(epochs=60, patience=3, learning_rate=2e-2, kl_warm_up=0.5).train()
    assert state.stopped == "early"
    assert state.history[-1]["kl_weight"] == 1
    assert state.step < 60 * 9


def test_a_time_limit_ends_the_run_with_the_schedule_run_out():
    state = trainer(epochs=100_000, time_limit=1.0, patience=10**9).train()
    assert state.stopped == "time"
    assert state.history[-1]["learning_rate"] < 0.01 * SETTINGS.learning_rate
    assert state.history[-1]["kl_weight"] == 1


@pytest.mark.parametrize("every", [1, 2])
def test_alternating_updates_change_one_side_at_a_time(every):
    run = trainer(updates="alternating", alternate_every=every)
    generative, inference = run.groups
    assert {id(p) for p in inference} == {id(p) for p in run.model.inference_parameters()}
    batch = next(run.task.batches(0))
    run.state.step = 4
    for changing, still in [(generative, inference)] * every + [(inference, generative)] * every:
        before = [p.detach().clone() for p in changing], [p.detach().clone() for p in still]
        assert run._step(batch)
        assert any(not torch.equal(a, b) for a, b in zip(before[0], changing, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(before[1], still, strict=True))
        assert all(one.grad is None for one in (*changing, *still))  # nothing is left for the next update


@pytest.mark.parametrize("rate", [1.0, 1e3, 1e8])
def test_a_far_too_high_learning_rate_never_ends_in_nan(rate):
    run = trainer(learning_rate=rate, epochs=3)
    try:
        state = run.train()
        assert math.isfinite(state.best)
    except TrainingDiverged as error:
        assert "learning rate" in str(error) and "\n" not in str(error)
    assert torch.isfinite(weights(run)).all()
    assert math.isfinite(run.task.score(run.model).loss)


def test_extreme_documents_do_not_break_training():
    counts = topic_documents(documents=200).tolil()
    counts[50, 3] = 1e7
    counts[60, :] = 5000
    state = trainer(scipy.sparse.csr_matrix(counts), epochs=4).train()
    assert all(math.isfinite(record["dev_perplexity"]) for record in state.history)


def test_checkpoints_are_seconds_apart_and_the_last_state_is_written_even_after_an_error(tmp_path):
    def steps():
        return load_checkpoint(tmp_path / "checkpoint").state["step"]

    def fail():
        assert steps() == 0  # rounds of milliseconds are not written
        raise MemoryError

    run = trainer(checkpoint=tmp_path / "checkpoint", progress=Watcher(4, fail))
    with pytest.raises(MemoryError):
        run.train()
    assert steps() == 2 * run.task.steps_per_epoch  # of the last complete round: the third was not saved yet
