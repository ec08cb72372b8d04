"""AdamW against torch's; the moving average of weights by hand."""

import pytest
import torch
from torch import nn

from varitext.training.optimizer import AdamW, WeightAverage


def parameters():
    generator = torch.Generator().manual_seed(3)
    return [nn.Parameter(torch.randn(size, generator=generator)) for size in ((4, 3), (5,), (2, 2))]


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    drawn = [torch.randn(size, generator=generator) for size in ((4, 3), (5,), (2, 2))]
    return drawn if step % 3 else [drawn[0], None, drawn[2]]  # one of them has none now and then


def put(parameters, step):
    for parameter, gradient in zip(parameters, gradients(step), strict=True):
        parameter.grad = gradient


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_it_takes_torchs_steps_to_the_bit(weight_decay):
    ours, theirs = parameters(), parameters()
    mine, reference = AdamW(ours, weight_decay), torch.optim.AdamW(theirs, 0.1, weight_decay=weight_decay, fused=True)
    for step in range(7):
        rate = 0.1 / (1 + step)
        for group in (ours, theirs):
            put(group, step)
        reference.param_groups[0]["lr"] = rate
        reference.step()
        mine.step(rate)
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[1], parameters()[1])


def test_what_it_remembers_goes_on_to_the_same_bits_and_is_a_copy():
    whole, first, second = parameters(), parameters(), parameters()
    uninterrupted, before, after = AdamW(whole, 0.1), AdamW(first, 0.1), AdamW(second, 0.1)
    for step in range(1, 5):
        put(whole, step)
        uninterrupted.step(0.1)
    for step in range(1, 3):
        put(first, step)
        before.step(0.1)
    after.restore(before.tensors())
    with torch.no_grad():
        for old, new in zip(first, second, strict=True):
            new.copy_(old)
    put(first, 9)
    before.step(0.1)  # must not move what the other remembers
    for step in range(3, 5):
        put(second, step)
        after.step(0.1)
    assert all(torch.equal(a, b) for a, b in zip(whole, second, strict=True))


def test_nothing_moves_without_gradients_and_none_are_left_after_zero_grad():
    some = parameters()
    optimizer = AdamW(some, 0.1)
    optimizer.step(0.1)
    assert optimizer.tensors() == {} and all(torch.equal(a, b) for a, b in zip(some, parameters(), strict=True))
    put(some, 1)
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in some)


def test_what_it_remembered_of_other_parameters_is_forgotten_with_a_restore():
    some, other = parameters(), parameters()
    put(some, 3)  # the second parameter has no gradient
    put(other, 1)
    before, after = AdamW(some, 0.1), AdamW(other, 0.1)
    before.step(0.1)
    after.step(0.1)
    assert {name.split(".")[0] for name in after.tensors()} == {"0", "1", "2"}
    after.restore(before.tensors())
    assert after.tensors().keys() == before.tensors().keys()
    assert {name.split(".")[0] for name in after.tensors()} == {"0", "2"}


def test_steps_are_counted_as_torch_counts_them_whatever_the_default_type():
    """The count is a 32-bit number in a checkpoint; a process may have another default."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        some = parameters()
        put(some, 1)
        optimizer = AdamW(some)
        optimizer.step(0.1)
    finally:
        torch.set_default_dtype(before)
    found = optimizer.tensors()
    assert found["0.step"].dtype == torch.float32 and found["0.step"].item() == 1
    assert found["0.exp_avg"].dtype == torch.float64


# The moving average of weights


def fill(model: nn.Linear, value: float) -> None:
    with torch.no_grad():
        model.weight.fill_(value)


def test_average_by_hand():
    model = nn.Linear(1, 1, bias=False)
    fill(model, 0.0)
    average, expected = WeightAverage(model, decay=0.5), 0.0
    for step, value in enumerate((4.0, 8.0, 2.0), 1):
        fill(model, value)
        average.update(model, step)
        share = max(0.5, 1 / (1 + step))
        expected += share * (value - expected)
    assert average.weights["weight"].item() == pytest.approx(expected)
    with average.applied(model):
        assert model.weight.item() == pytest.approx(expected)
    assert model.weight.item() == 2.0


def test_early_on_it_is_the_mean_of_the_start_and_of_all_steps():
    model = nn.Linear(1, 1, bias=False)
    values = [3.0, 5.0, -2.0, 7.0, 1.0]
    fill(model, values[0])
    average = WeightAverage(model, decay=0.99)
    for step, value in enumerate(values[1:], 1):
        fill(model, value)
        average.update(model, step)
        assert average.weights["weight"].item() == pytest.approx(sum(values[: step + 1]) / (step + 1), rel=1e-5)


def test_the_weights_are_put_back_after_an_error():
    model = nn.Linear(1, 1, bias=False)
    average, own = WeightAverage(model, decay=0.5), model.weight.data
    with torch.no_grad():
        model.weight.add_(1.0)
    with pytest.raises(ZeroDivisionError), average.applied(model):
        assert model.weight.data is not own and model.weight.item() == average.weights["weight"].item()
        raise ZeroDivisionError
    assert model.weight.item() == pytest.approx(average.weights["weight"].item() + 1.0)


def test_buffers_are_not_averaged():
    model = nn.BatchNorm1d(1)
    average = WeightAverage(model, decay=0.5)
    assert average.weights.keys() == {"weight", "bias"}
    model.running_mean.fill_(8.0)
    with average.applied(model):
        assert model.running_mean.item() == 8.0
