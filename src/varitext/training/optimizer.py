"""The optimizer, and a moving average of the weights.

`AdamW` (Loshchilov and Hutter 2019) is the fused step of `torch.optim.AdamW`, bit-for-bit. Every optimizer of
`torch.optim` imports torch's compiler before its first step, which would add over a second to every fit.

`WeightAverage` is not `torch.optim.swa_utils.AveragedModel`: that is a copy of the whole module under other names that
freezes or averages buffers (the moving averages of NVIL, the chains of RSM) and drops the initial weights at its first
update. Here only parameters are averaged, from initialization on, and the model itself is scored with them in place.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

FIRST_DECAY, SECOND_DECAY = 0.9, 0.999  # of the moving averages of the gradient and its square
EPSILON = 1e-8


class Moments(NamedTuple):
    """Moments of a parameter, by their names in checkpoints and in torch."""

    step: Tensor  # scalar
    exp_avg: Tensor
    exp_avg_sq: Tensor


class AdamW:
    """AdamW; with a weight decay of 0, Adam."""

    def __init__(self, parameters: Sequence[nn.Parameter], weight_decay: float = 0.0):
        self.parameters, self.weight_decay = list(parameters), weight_decay
        self.moments: dict[int, Moments] = {}  # by the index of a parameter, from its first gradient on

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Update all parameters that have a gradient."""
        given = [(place, each, each.grad) for place, each in enumerate(self.parameters) if each.grad is not None]
        if not given:
            return
        for place, parameter, _ in given:
            if place not in self.moments:
                step = torch.zeros((), dtype=torch.float32, device=parameter.device)
                self.moments[place] = Moments(step, torch.zeros_like(parameter), torch.zeros_like(parameter))
        steps, first, second = (list(each) for each in zip(*(self.moments[place] for place, *_ in given), strict=True))
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            [parameter for _, parameter, _ in given],
            [gradient for *_, gradient in given],
            first,
            second,
            [],
            steps,
            lr=learning_rate,
            beta1=FIRST_DECAY,
            beta2=SECOND_DECAY,
            weight_decay=self.weight_decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """All moments, by their names in a checkpoint."""
        return {
            f"{place}.{name}": tensor
            for place, moments in self.moments.items()
            for name, tensor in moments._asdict().items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned, from any device."""
        self.moments = {}
        for place in sorted({int(name.split(".", 1)[0]) for name in tensors}):
            device = self.parameters[place].device
            own = (tensors[f"{place}.{name}"].to(device, copy=True) for name in Moments._fields)
            self.moments[place] = Moments(*own)


class WeightAverage:
    """The mean of about the last 1 / (1 - decay) steps; early on, of all steps so far."""

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
        """Within this context, the model has the averaged weights."""
        own = {name: parameter.data for name, parameter in model.named_parameters()}
        try:
            for name, parameter in model.named_parameters():
                parameter.data = self.weights[name]
            yield
        finally:
            for name, parameter in model.named_parameters():
                parameter.data = own[name]
