"""The moving average of weights: by hand, and put back after use."""

import pytest
import torch
from torch import nn

from varitext.training.optimizer import WeightAverage


def test_average_by_hand():
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(0.0)
    average, expected = WeightAverage(model, decay=0.5), 0.0
    for step, value in enumerate((4.0, 8.0, 2.0), 1):
        with torch.no_grad():
            model.weight.fill_(value)
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
    with torch.no_grad():
        model.weight.fill_(values[0])
    average = WeightAverage(model, decay=0.99)
    for step, value in enumerate(values[1:], 1):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update(model, step)
        assert average.weights["weight"].item() == pytest.approx(sum(values[: step + 1]) / (step + 1), rel=1e-5)


def test_later_it_forgets_by_its_decay():
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
    average = WeightAverage(model, decay=0.75)
    with torch.no_grad():
        model.weight.fill_(0.0)
    for step in (10, 11):  # a mean of all steps would move it by less
        average.update(model, step)
    assert average.weights["weight"].item() == pytest.approx(0.75**2)


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
