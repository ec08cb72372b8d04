"""The moving average of weights: by hand, and put back after use."""

import pytest
import torch
from torch import nn

from varitext.training.averaging import WeightAverage


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
