"""One process of two, the other played by the test: what is summed, who decides, who writes."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch
from test_schedule import Slope, run

from varitext.runtime.processes import World
from varitext.training import trainer
from varitext.training.settings import StepLoss


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


def asked(one, requested, seconds=0.0):
    """The trainer as it is within a run that began so many seconds ago."""
    one.started, one.interruption = trainer.time.monotonic() - seconds, SimpleNamespace(requested=requested)
    return one


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(trainer, "time", SimpleNamespace(monotonic=lambda: 1000.0))


def losses():
    return StepLoss(torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0))


@pytest.mark.parametrize(
    ("rank", "here", "theirs", "seconds", "stop"),
    [
        (0, False, (10.0, 20.0, 30.0, 0.0, 0.0), 12.5, False),  # the clock of the first counts
        (0, False, (10.0, 20.0, 30.0, 1.0, 0.0), 12.5, True),
        (1, False, (10.0, 20.0, 30.0, 0.0, 77.0), 77.0, False),
        (1, True, (10.0, 20.0, 30.0, 0.0, 77.0), 77.0, True),
    ],
)
def test_gradients_and_losses_are_sums_and_the_clock_is_that_of_the_first(clock, rank, here, theirs, seconds, stop):
    one = asked(run(Slope()), here, seconds=12.5)
    one.world = Two(rank, theirs=theirs)
    (parameter,) = one.model.parameters()
    parameter.grad, silent = torch.tensor([[4.0]]), torch.nn.Parameter(torch.zeros(2))  # the second has no gradient
    found = one._together([parameter, silent], losses())
    assert [value.item() for value in found] == [11.0, 22.0, 33.0]
    assert parameter.grad.item() == 5.0 and silent.grad is None
    assert (one.state.seconds, one.asked_to_stop) == (seconds, stop)


def test_alone_nothing_is_summed_and_seconds_keep_their_digits(clock):
    one = asked(run(Slope()), True, seconds=0.123456789012)
    given = losses()
    assert one._together(list(one.model.parameters()), given) is given
    assert one.state.seconds == pytest.approx(0.123456789012, rel=1e-10) and one.asked_to_stop


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
