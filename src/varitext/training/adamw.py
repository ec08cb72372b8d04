"""AdamW (Loshchilov and Hutter 2019): the fused step of `torch.optim.AdamW`, to the bit, and nothing around it.

Every optimiser of `torch.optim` imports torch's compiler before its first step. Nobody compiles here, and it would take
over a second of every process that fits a model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

FIRST_DECAY, SECOND_DECAY = 0.9, 0.999  # of the moving averages of the gradient and of its square
EPSILON = 1e-8


class Moments(NamedTuple):
    """What is remembered of a parameter; the names are those in a checkpoint, and torch's."""

    step: Tensor  # scalar
    exp_avg: Tensor
    exp_avg_sq: Tensor

    @classmethod
    def none_of(cls, parameter: Tensor) -> "Moments":
        step = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return cls(step, torch.zeros_like(parameter), torch.zeros_like(parameter))


class AdamW:
    """With a weight decay of 0 it is Adam."""

    def __init__(self, parameters: Sequence[nn.Parameter], weight_decay: float = 0.0):
        self.parameters, self.weight_decay = list(parameters), weight_decay
        self.moments: dict[int, Moments] = {}  # by the place of a parameter, from its first gradient on

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move all parameters that have a gradient."""
        given = [(place, each, each.grad) for place, each in enumerate(self.parameters) if each.grad is not None]
        if not given:
            return
        for place, parameter, _ in given:
            if place not in self.moments:
                self.moments[place] = Moments.none_of(parameter)
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
        """All that it remembers, as a checkpoint names it."""
        return {
            f"{place}.{name}": tensor
            for place, moments in self.moments.items()
            for name, tensor in moments._asdict().items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """What `tensors` gave at that moment, wherever it lies."""
        self.moments = {}
        for place in sorted({int(name.split(".", 1)[0]) for name in tensors}):
            device = self.parameters[place].device
            own = (tensors[f"{place}.{name}"].to(device, copy=True) for name in Moments._fields)
            self.moments[place] = Moments(*own)
