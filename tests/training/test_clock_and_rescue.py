"""When a run stops and what it goes back to: by a clock that only tests move, with scores and faults as given."""

import math
from types import SimpleNamespace

import pytest
import torch
from test_schedule import Seen, Slope, run

from varitext.errors import InputError, TrainingDiverged
from varitext.training import trainer
from varitext.training.trainer import load_checkpoint


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(trainer, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


class Timed(Slope):
    """Every update takes so many seconds; the higher the weight, the better the score."""

    def __init__(self, clock, seconds=1.0, scores=lambda weight: -weight, **others):
        super().__init__(scores, **others)
        self.clock, self.seconds = clock, seconds

    def loss(self, model, batch, kl_weight):
        self.clock.seconds += self.seconds
        return super().loss(model, batch, kl_weight)


class Stops(Seen):
    """Ends the process, as it were, in the round of a given step."""

    def __init__(self, step):
        super().__init__()
        self.last = step

    def round(self, record):
        super().round(record)
        if record["step"] == self.last:
            raise KeyboardInterrupt


# The clock


def test_a_run_is_over_once_its_seconds_are_used_to_the_last(clock):
    state = run(Timed(clock), time_limit=4.0).train()
    assert (state.stopped, state.step, state.seconds) == ("time", 4, 4.0)


def test_time_that_is_up_within_a_round_keeps_the_weights_but_not_the_checkpoint(clock, tmp_path):
    """Resuming from the last whole round repeats the run that nobody stopped."""
    stopped = run(Timed(clock, steps_per_epoch=5), checkpoint=tmp_path / "checkpoint", time_limit=7.0)
    state = stopped.train()
    assert (state.stopped, state.step, state.best_step) == ("time", 7, 7)
    assert stopped.model.weight.item() == state.history[-1]["dev"] and state.history[-1]["step"] == 7
    kept = load_checkpoint(tmp_path / "checkpoint").state
    assert (kept["step"], kept["stopped"], kept["seconds"]) == (5, "", 5.0)


def test_a_hopeless_score_when_time_is_up_is_neither_kept_nor_a_reason_to_go_back(clock):
    scores = iter([2.0, 1.0, math.inf])
    state = run(Timed(clock, scores=lambda weight: next(scores)), time_limit=2.0).train()
    assert (state.stopped, state.step, state.rescues, state.best_step, len(state.history)) == ("time", 2, 0, 1, 2)


def test_seconds_are_told_to_the_millisecond_and_kept_in_full(clock):
    state = run(Timed(clock, seconds=0.123456789), epochs=2).train()
    assert [record["seconds"] for record in state.history] == [0.0, 0.123, 0.247]
    assert state.seconds == pytest.approx(2 * 0.123456789, rel=1e-12)


def test_a_resumed_run_counts_its_seconds_on(clock, tmp_path):
    shape = {"checkpoint": tmp_path / "checkpoint", "epochs": 4}
    with pytest.raises(KeyboardInterrupt):
        run(Timed(clock), Stops(3), **shape).train()
    clock.seconds = 5000.0  # much later
    state = run(Timed(clock), **shape).train(resume=True)
    assert [record["seconds"] for record in state.history] == [0, 1, 2, 3, 4]


def test_a_run_that_is_killed_before_its_first_round_has_a_checkpoint(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Slope(), Stops(1), checkpoint=tmp_path / "checkpoint").train()
    assert load_checkpoint(tmp_path / "checkpoint").state["step"] == 0


def test_a_resumed_run_trains_though_the_model_came_in_evaluation_mode(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Slope(), Stops(2), checkpoint=tmp_path / "checkpoint", epochs=2).train()
    task = Slope()
    resumed = run(task, checkpoint=tmp_path / "checkpoint", epochs=2)
    resumed.model.eval()
    resumed.train(resume=True)
    assert task.modes == [True, False]  # one update, one score


# Asked to stop


@pytest.mark.parametrize(
    ("all_asked", "size", "asked_here", "stops"),
    [
        (True, 1, False, True),
        (False, 1, True, True),  # after the update was made: no need to make another
        (True, 2, False, True),
        (False, 2, True, False),  # the others do not know yet: all stop after the next update
        (False, 1, False, False),
    ],
)
def test_whoever_is_asked_to_stop_stops_together_with_all_others(all_asked, size, asked_here, stops):
    one = run(Slope())
    one.asked_to_stop, one.interruption = all_asked, SimpleNamespace(requested=asked_here)
    one.world = SimpleNamespace(size=size)
    assert one._reason_to_stop() == ("interrupted" if stops else "")


def test_who_is_asked_to_stop_within_a_round_leaves_the_checkpoint_of_the_last_one(tmp_path):
    class AskedAtStep7(Seen):
        def step(self, share_done, elbo, kl):
            super().step(share_done, elbo, kl)
            one.interruption.requested |= len(self.steps) == 7

    one = run(Slope(lambda weight: -weight, steps_per_epoch=5), AskedAtStep7(), checkpoint=tmp_path / "checkpoint")
    state = one.train()
    assert (state.stopped, state.step, state.best_step) == ("interrupted", 7, 7)
    assert load_checkpoint(tmp_path / "checkpoint").state["step"] == 5


# Rescues


@pytest.mark.parametrize(
    ("first", "second", "rescued"), [(2.0, 20.0, False), (-2.0, 15.9, False), (-2.0, 16.1, True), (0.0, 0.1, True)]
)
def test_a_fault_is_nine_times_the_first_score_away_from_it(first, second, rescued):
    scores = iter([first, second, *[first] * 20])
    state = run(Slope(lambda weight: next(scores)), epochs=3).train()
    assert state.rescues == rescued and state.stopped == "finished"


def test_an_infinite_loss_goes_back_to_the_first_batch_after_the_last_round():
    task = Slope(steps_per_epoch=4, slopes={3: math.inf})
    state = run(task, epochs=1, rounds_per_epoch=2).train()
    assert [place for _, place in task.seen] == [0, 1, 2, 3, 2, 3] and (state.step, state.rescues) == (4, 1)


def test_the_very_first_update_can_be_rescued():
    state = run(Slope(slopes={0: math.inf}), epochs=2).train()
    assert (state.step, state.rescues, state.stopped) == (2, 1, "finished")


def test_a_resumed_run_can_be_rescued_before_its_first_round(tmp_path):
    shape = {"checkpoint": tmp_path / "checkpoint", "epochs": 4}
    with pytest.raises(KeyboardInterrupt):
        run(Slope(), Stops(3), **shape).train()
    task = Slope(slopes={0: math.inf})
    state = run(task, **shape).train(resume=True)
    assert (state.step, state.rescues, state.stopped) == (4, 1, "finished")
    assert task.seen == [(2, 0), (2, 0), (3, 0)]


def test_a_hopeless_score_at_the_end_takes_the_last_round_again():
    scores = iter([2.0, 1.5, 1.4, math.nan, 1.3])
    state = run(Slope(lambda weight: next(scores)), epochs=3).train()
    assert (state.step, state.rescues, state.best, state.stopped) == (3, 1, 1.3, "finished")
    assert [record["step"] for record in state.history] == [0, 1, 2, 3]


def test_a_run_that_is_given_up_has_the_best_weights_and_not_the_last_good_ones():
    scores = iter([3.0, 1.0, 2.0])
    task = Slope(lambda weight: next(scores), slopes=dict.fromkeys(range(2, 30), math.nan))
    one = run(task)
    with pytest.raises(TrainingDiverged):
        one.train()
    weights = [record["dev"] for record in one.state.history]
    assert len(weights) == 3 and one.model.weight.item() == weights[1] != weights[2]


class Noisy(Slope):
    """Gradients are drawn, so that weights tell which noise they have seen."""

    def loss(self, model, batch, kl_weight):
        found = super().loss(model, batch, kl_weight)
        return found._replace(loss=found.loss * (0.5 + torch.rand(())))


@pytest.mark.parametrize("averaging", [0.0, 0.5])
@pytest.mark.parametrize("smoothing", [1, 3])
def test_a_rescue_brings_back_all_of_the_moment_it_goes_back_to(monkeypatch, averaging, smoothing):
    """With steps as large as before, all that comes after is as without a fault: weights, moments, noise, average."""
    monkeypatch.setattr(trainer, "RESCUE_FACTOR", 1.0)
    found = []
    for slopes in ({}, {7: math.inf}):  # the fault is at the second update of the fourth round
        task = Noisy(lambda weight: -weight, slopes=slopes, steps_per_epoch=4)
        one = run(task, epochs=3, rounds_per_epoch=2, averaging=averaging, smoothing=smoothing)
        state = one.train()
        history = [{name: value for name, value in each.items() if name != "seconds"} for each in state.history]
        found.append((history, one.model.weight.item(), state.best, state.last_scores, state.step))
    assert state.rescues == 1 and len(task.seen) == 14
    assert found[0] == found[1]


# Updates


def test_a_gradient_of_just_the_largest_norm_is_not_touched():
    ends = []
    for clip in (1.0, 50.0):
        one = run(Slope(slopes={0: 0.5}), epochs=2, gradient_clip=clip)  # the second gradient is 1
        ends.append([record["dev"] for record in one.train().history])
    assert ends[0] == ends[1]


def test_alternating_updates_need_to_know_what_is_inference():
    with pytest.raises(InputError, match="Linear has no inference_parameters"):
        run(Slope(), updates="alternating")


def test_sides_alternate_after_at_least_one_step():
    with pytest.raises(InputError, match="alternate_every"):
        run(Slope(), alternate_every=0)
