"""The training loop with one weight, given losses and scores: schedule, clock, rollback, several processes."""

import dataclasses
import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from varitext.errors import InputError, TrainingDiverged
from varitext.runtime.processes import World
from varitext.training import trainer
from varitext.training.settings import PartOfProgress, Score, StepLoss, TrainingSettings
from varitext.training.trainer import RESCUE_FACTOR, RESCUES, Trainer, load_checkpoint

SETTINGS = TrainingSettings(epochs=10, learning_rate=0.5, learning_rate_warm_up=0.2, kl_warm_up=0.4, patience=99)


class Slope:
    """The loss is `-slope * weight`; what happens is kept."""

    fingerprint = "a slope"

    def __init__(self, scores=None, slopes=None, steps_per_epoch=1):
        self.scores, self.slopes, self.steps_per_epoch = scores or (lambda weight: 0.0), slopes or {}, steps_per_epoch
        self.kl_weights, self.modes, self.drawn, self.seen = [], [], [], []

    def batches(self, epoch):
        return iter([(epoch, place) for place in range(self.steps_per_epoch)])

    def loss(self, model, batch, kl_weight):
        self.seen.append(batch)
        self.modes.append(model.training)
        self.drawn.append(torch.rand(()).item())
        loss = -self.slopes.get(len(self.kl_weights), 1.0) * model.weight.sum()
        self.kl_weights.append(kl_weight)
        return StepLoss(loss, torch.tensor(3.0), torch.tensor(4.0))

    def score(self, model):
        self.modes.append(model.training)
        self.drawn.append(torch.rand(()).item())
        return Score(self.scores(model.weight.item()), {"dev": model.weight.item()})


class Seen:
    def __init__(self):
        self.steps, self.rounds, self.notes = [], [], []

    def step(self, share_done, elbo, kl):
        self.steps.append((share_done, elbo, kl))

    def round(self, record):
        self.rounds.append(record)

    def note(self, message):
        self.notes.append(message)


class Stops(Seen):
    """Ends the process, as it were, in the round of a given step."""

    def __init__(self, step):
        super().__init__()
        self.last = step

    def round(self, record):
        super().round(record)
        if record["step"] == self.last:
            raise KeyboardInterrupt


def run(task, progress=None, checkpoint=None, **changes):
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    return Trainer(model, task, dataclasses.replace(SETTINGS, **changes), checkpoint, progress)


def test_rates_and_kl_weights_follow_the_schedule():
    task, seen = Slope(), Seen()
    state = run(task, seen).train()
    shares = [step / 10 for step in range(11)]
    rates = [0.5 * min(1, (share + 0.1) / 0.2) * 0.5 * (1 + math.cos(math.pi * share)) for share in shares]
    assert [record["learning_rate"] for record in state.history] == pytest.approx(rates)
    assert rates[0] == 0.25 and rates[-1] == 0 and max(rates) < 0.5
    kl_weights = [min(1, 0.1 + 0.9 * share / 0.4) for share in shares]
    assert [record["kl_weight"] for record in state.history] == pytest.approx(kl_weights)
    assert task.kl_weights == pytest.approx(kl_weights[:-1])  # of each update, as it began
    assert [(record["step"], record["epoch"]) for record in state.history] == [(n, n) for n in range(11)]
    assert seen.rounds == state.history and seen.steps == [(pytest.approx(share), 3.0, 4.0) for share in shares[1:]]
    # Adam moves by the learning rate when the gradient is the same all along
    moves = torch.tensor([record["dev"] for record in state.history]).diff()
    torch.testing.assert_close(moves, torch.tensor(rates[:-1]), rtol=1e-4, atol=1e-6)


def test_the_weight_of_the_kl_rises_in_each_of_four_cycles():
    task = Slope()
    state = run(task, epochs=16, kl_schedule="cyclical", kl_warm_up=0.5).train()
    cycle = [0.1, 0.55, 1.0, 1.0]  # by hand: 0.1 + 0.9 (place / 4) / 0.5 at places 0, 1, 2, 3
    assert task.kl_weights == pytest.approx(cycle * 4)
    assert [record["kl_weight"] for record in state.history] == pytest.approx([*cycle * 4, 1.0])  # full at the end


def test_rounds_of_a_cycle_without_the_full_kl_do_not_end_training():
    state = run(Slope(), epochs=16, kl_schedule="cyclical", kl_warm_up=0.5, patience=5).train()
    assert (state.stopped, state.step) == ("early", 10)  # after rounds 2, 3, 6, 7 and 10


def test_without_a_schedule_the_kl_has_its_full_weight():
    state = run(Slope(), kl_schedule="none", kl_warm_up=0.5).train()
    assert {record["kl_weight"] for record in state.history} == {1.0}


def test_without_warm_ups_all_starts_at_full():
    state = run(Slope(), learning_rate_warm_up=0.0, kl_warm_up=0.0).train()
    assert state.history[0]["learning_rate"] == 0.5 and {record["kl_weight"] for record in state.history} == {1.0}


def test_a_constant_rate_stays_where_it_has_risen_to():
    state = run(Slope(), learning_rate_schedule="constant").train()
    rates = [record["learning_rate"] for record in state.history]
    assert rates[0] < 0.5 and rates[2:] == [0.5] * (len(rates) - 2)


def test_rounds_fall_where_they_are_asked_for():
    state = run(Slope(steps_per_epoch=5), epochs=2, rounds_per_epoch=2).train()
    assert [record["step"] for record in state.history] == [0, 3, 6, 9, 10]
    assert [record["epoch"] for record in state.history] == [0, 0.6, 1.2, 1.8, 2.0]


def test_training_noise_is_not_that_of_scores_and_modes_are_right():
    task = Slope()
    run(task, epochs=2).train()
    scores, updates = task.drawn[0::2], task.drawn[1::2]
    assert len(set(scores)) == 1 and len(set(updates)) == 2 and not set(scores) & set(updates)
    assert task.modes == [False, True, False, True, False]


@pytest.mark.parametrize("patience", [1, 3])
def test_it_stops_after_so_many_rounds_without_gain_once_the_kl_is_whole(patience):
    state = run(Slope(lambda weight: abs(weight - 0.3)), patience=patience, learning_rate_warm_up=0.0).train()
    assert state.stopped == "early" and state.best_step == 1
    assert state.step == 3 + patience and state.rounds_without_gain == patience  # counted from step 4 on


def test_an_equal_score_is_no_gain():
    state = run(Slope(), kl_warm_up=0.0, patience=2).train()
    assert (state.best_step, state.step, state.stopped) == (0, 2, "early")


def test_gradients_are_clipped_by_their_norm():
    """Adam's second move depends on the ratio of the first two gradients."""
    ends = []
    for second, clip in ((2.0, 50.0), (100.0, 2.0), (100.0, 200.0)):
        one = run(Slope(slopes={1: second}), epochs=2, gradient_clip=clip)
        ends.append(one.train().history[-1]["dev"])
    assert ends[1] == pytest.approx(ends[0], rel=1e-4) and ends[2] != pytest.approx(ends[0], rel=1e-2)


def test_weight_decay_pulls_to_zero():
    plain, decayed = run(Slope()), run(Slope(), weight_decay=0.5)
    for one in (plain, decayed):
        one.train()
    assert decayed.state.history[-1]["dev"] < 0.9 * plain.state.history[-1]["dev"]


def test_a_rescue_takes_back_the_weights_and_shrinks_the_steps():
    task, seen = Slope(slopes={4: math.inf}), Seen()
    state = run(task, seen, learning_rate_warm_up=0.0).train()
    assert (state.rescues, state.stopped, state.step) == (1, "finished", 10) and len(seen.notes) == 1
    rates = [record["learning_rate"] for record in state.history]
    expected = [0.25 * (1 + math.cos(math.pi * step / 10)) for step in range(11)]
    expected[5:] = [RESCUE_FACTOR * rate for rate in expected[5:]]  # the round of step 4 was before the fault
    assert rates == pytest.approx(expected)
    moves = torch.tensor([record["dev"] for record in state.history]).diff()
    torch.testing.assert_close(moves[4], torch.tensor(RESCUE_FACTOR * 0.25 * (1 + math.cos(0.4 * math.pi))))


@pytest.mark.parametrize("faults", [RESCUES, RESCUES + 1])
def test_it_gives_up_after_too_many_rescues_with_the_best_weights(faults):
    task = Slope(lambda weight: -weight, slopes={number: math.nan for number in range(2, 2 + faults)})
    one = run(task, seen := Seen())
    if faults > RESCUES:
        with pytest.raises(TrainingDiverged):
            one.train()
        assert one.state.stopped == "diverged"
        assert one.model.weight.item() == one.state.history[-1]["dev"] > 0
    else:
        assert one.train().stopped == "finished"
    assert len(seen.notes) == RESCUES


@pytest.mark.parametrize(
    ("first", "bad", "rescued"),
    [
        *((2.0, 19.9, False), (2.0, 20.0, False), (2.0, 20.1, True), (2.0, math.nan, True)),
        *((-2.0, 15.9, False), (-2.0, 16.1, True), (0.0, 0.1, True)),
    ],
)
def test_a_score_nine_times_the_first_away_from_it_is_a_fault(first, bad, rescued):
    scores = iter([first, bad, *[first - 0.5] * 20])
    task = Slope(lambda weight: next(scores), steps_per_epoch=4)
    state = run(task, epochs=1, rounds_per_epoch=2).train()
    assert state.rescues == rescued and state.stopped == "finished" and state.best == first - 0.5
    assert [place for _, place in task.seen] == ([0, 1, 0, 1, 2, 3] if rescued else [0, 1, 2, 3])  # rolled back: again


def test_a_first_score_that_is_infinite_is_refused():
    with pytest.raises(InputError, match="untrained"):
        run(Slope(lambda weight: math.inf)).train()


def test_a_resumed_run_goes_on_with_the_batches_that_its_epoch_has_left(tmp_path):
    shape = {"checkpoint": tmp_path / "checkpoint", "epochs": 2, "rounds_per_epoch": 2}  # rounds at steps 3, 6, 9, 10
    with pytest.raises(KeyboardInterrupt):
        run(Slope(steps_per_epoch=5), Stops(6), **shape).train()
    task = Slope(steps_per_epoch=5)
    run(task, **shape).train(resume=True)
    assert task.seen == [(0, 3), (0, 4), *((1, place) for place in range(5))]


def test_without_resume_a_checkpoint_is_written_anew(tmp_path):
    for epochs in (3, 4):
        assert run(Slope(), checkpoint=tmp_path / "checkpoint", epochs=epochs).train().step == epochs


@pytest.mark.parametrize(("smoothing", "kept"), [(1, 2), (3, 6)])
def test_a_lucky_round_is_not_kept_when_scores_are_smoothed(smoothing, kept):
    losses = [9.0, 8.0, 1.0, 8.0, 5.0, 2.0, 3.0, 6.0]  # round 2 is lucky; rounds 4 to 6 have the lowest mean of three
    scores = iter(losses)
    one = run(Slope(lambda weight: next(scores)), epochs=7, smoothing=smoothing, kl_warm_up=0.0)
    state = one.train()
    assert state.best_step == kept and state.best_record["step"] == kept
    assert state.best == pytest.approx(sum(losses[kept - smoothing + 1 : kept + 1]) / smoothing)
    assert one.model.weight.item() == state.history[kept]["dev"] != state.history[-1]["dev"]


def test_averaged_weights_are_scored_and_kept():
    plain, averaged = (run(Slope(lambda weight: -weight), averaging=value) for value in (0.0, 0.5))
    for one in (plain, averaged):
        one.train()
    weights = [record["dev"] for record in plain.state.history]
    expected = [weights[0]]
    for weight in weights[1:]:
        expected.append(0.5 * (expected[-1] + weight))
    assert [record["dev"] for record in averaged.state.history] == pytest.approx(expected, rel=1e-5)
    assert averaged.model.weight.item() == pytest.approx(expected[-1], rel=1e-5)


LEAST = {"epochs": 1, "batch_size": 1, "samples": 1, "patience": 1, "smoothing": 1, "rounds_per_epoch": 1}
EDGES = [{name: value} for name, value in LEAST.items()]
EDGES += [{name: share} for name in ("learning_rate_warm_up", "kl_warm_up") for share in (0.0, 1.0)]
EDGES += [{"averaging": 0.0}, {"averaging": 0.999}, {"time_limit": None}, {"time_limit": 1e-3}]
REFUSED = [{name: 0} for name in LEAST] + [{name: -1} for name in (*LEAST, "averaging", "time_limit", "kl_warm_up")]
REFUSED += [{name: math.inf} for name in ("learning_rate", "gradient_clip")] + [{"gradient_clip": 0.0}]
REFUSED += [
    {"updates": "both"},
    {"kl_schedule": "cosine"},
    {"learning_rate_schedule": "linear"},
    {"alternate_every": 0},
    {"learning_rate": math.nan},
    {"averaging": 1.0},
    {"averaging": 1.5},
    {"learning_rate_warm_up": 1.1},
    {"learning_rate_warm_up": -0.1},
]


@pytest.mark.parametrize("change", EDGES, ids=str)
def test_settings_at_the_edge_are_taken(change):
    dataclasses.replace(SETTINGS, **change)


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_settings_beyond_the_edge_are_refused_by_name(change):
    with pytest.raises(InputError, match=next(iter(change))):
        dataclasses.replace(SETTINGS, **change)


def test_a_part_of_a_whole_progress():
    seen = Seen()
    part = PartOfProgress(seen, 0.25, 0.75)
    part.step(0.5, 1.0, 2.0)
    part.round({"step": 1})
    part.note("words")
    assert (seen.steps, seen.rounds, seen.notes) == ([(0.5, 1.0, 2.0)], [{"step": 1}], ["words"])
    part.step(1.0, 1.0, 2.0)
    assert seen.steps[-1][0] == 0.75


# The clock


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


def test_who_is_asked_to_stop_within_a_round_leaves_the_checkpoint_of_the_last_one(tmp_path):
    class AskedAtStep7(Seen):
        def step(self, share_done, elbo, kl):
            super().step(share_done, elbo, kl)
            one.interruption.requested |= len(self.steps) == 7

    one = run(Slope(lambda weight: -weight, steps_per_epoch=5), AskedAtStep7(), checkpoint=tmp_path / "checkpoint")
    state = one.train()
    assert (state.stopped, state.step, state.best_step) == ("interrupted", 7, 7)
    assert load_checkpoint(tmp_path / "checkpoint").state["step"] == 5


@pytest.mark.parametrize(("fault", "seen"), [(3, [0, 1, 2, 3, 2, 3]), (0, [0, 0, 1, 2, 3])])
def test_an_infinite_loss_goes_back_to_the_first_batch_after_the_last_round(fault, seen):
    task = Slope(steps_per_epoch=4, slopes={fault: math.inf})
    state = run(task, epochs=1, rounds_per_epoch=2).train()
    assert [place for _, place in task.seen] == seen
    assert (state.step, state.rescues, state.stopped) == (4, 1, "finished")


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


def test_a_gradient_of_just_the_largest_norm_is_not_touched():
    ends = []
    for clip in (1.0, 50.0):
        one = run(Slope(slopes={0: 0.5}), epochs=2, gradient_clip=clip)  # the second gradient is 1
        ends.append([record["dev"] for record in one.train().history])
    assert ends[0] == ends[1]


def test_alternating_updates_need_to_know_what_is_inference():
    with pytest.raises(InputError, match="Linear has no inference_parameters"):
        run(Slope(), updates="alternating")


# Several processes


@dataclass(frozen=True)
class Two(World):
    """The other process adds `theirs` to what is summed last, and 1 to every gradient; the first says `said`."""

    size: int = 2
    theirs: tuple[float, ...] = (0.0,) * 5
    said: list = field(default_factory=list)

    def sum_(self, tensors):
        for gradient in tensors[:-1]:
            gradient += 1.0
        tensors[-1].add_(torch.tensor(self.theirs))

    def agree(self, value):
        return value if self.is_first else self.said.pop(0)


def test_the_second_process_takes_scores_from_the_first_and_writes_nothing(tmp_path):
    said = [False, [5.0, {"dev": 1.0}], [3.0, {"dev": 2.0}], [4.0, {"dev": 3.0}]]  # no resuming; then three scores
    one = run(task := Slope(lambda weight: pytest.fail("only the first takes scores")), epochs=2)
    one.checkpoint, one.world = tmp_path / "checkpoint", Two(1, theirs=(0.0,) * 5, said=said)
    state = one.train()
    assert (state.best, state.best_step, state.step) == (3.0, 1, 2) and not said
    assert [record["dev"] for record in state.history] == [1.0, 2.0, 3.0]
    assert len(task.seen) == 2 and not list(tmp_path.iterdir())


def test_the_first_process_stops_when_another_was_asked_to(tmp_path):
    one = run(Slope())
    one.checkpoint, one.world = tmp_path / "checkpoint", Two(0, theirs=(0.0, 0.0, 0.0, 1.0, 0.0))
    state = one.train()
    assert (state.stopped, state.step) == ("interrupted", 1) and one.checkpoint.exists()
