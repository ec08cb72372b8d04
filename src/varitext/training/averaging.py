"""A moving average of a model's weights over the steps of training: what small data needs against lucky last steps.

Not `torch.optim.swa_utils.AveragedModel`: that is a copy of the whole module with names of its own, whose buffers (the
moving averages of NVIL, the chains of RSM) stand still or are averaged too, and whose first update replaces the start.
Here only parameters are averaged, the start counts, and the model itself is scored with them in place.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The mean of the last 1 / (1 - decay) steps or so; early on, of all steps so far."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """After step number `step`, counted from 1."""
        share = max(1 - self.decay, 1 / (1 + step))
        names, parameters = zip(*model.named_parameters(), strict=True)
        torch._foreach_lerp_([self.weights[name] for name in names], [one.data for one in parameters], share)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Within, the model has the averaged weights."""
        own = {name: parameter.data for name, parameter in model.named_parameters()}
        try:
            self._point(model, self.weights)
            yield
        finally:
            self._point(model, own)

    @staticmethod
    def _point(model: nn.Module, weights: dict[str, Tensor]) -> None:
        for name, parameter in model.named_parameters():
            parameter.data = weights[name]
