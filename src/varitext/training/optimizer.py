"""The optimizer, and a moving average of the weights.

`AdamW` (Loshchilov and Hutter 2019) is bit-for-bit identical to the fused step of `torch.optim.AdamW`. Every optimizer
of `torch.optim` imports torch's compiler before its first step, which would add over a second to every fit.

`TorchOptimizer` wraps an optimizer of `torch.optim` that the user made (`Optimization`) in the same methods.

`WeightAverage` is not `torch.optim.swa_utils.AveragedModel`: that is a copy of the whole module under other names that
freezes or averages buffers (the moving averages of NVIL, the chains of RSM) and drops the initial weights at its first
update. Here only parameters are averaged, from initialization on, and the model itself is scored with them in place.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from varitext.errors import InputError

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


class TorchOptimizer:
    """An optimizer of `torch.optim`, or of another package, with the methods that the trainer needs."""

    def __init__(self, parameters: Sequence[nn.Parameter], make: "MakeOptimizer"):
        self.parameters = list(parameters)
        self.own = own = make(self.parameters)
        if not isinstance(own, torch.optim.Optimizer):
            raise InputError(f"optimizer must return a torch.optim.Optimizer, not {own!r}")
        required = [one for one in inspect.signature(own.step).parameters.values() if one.default is one.empty]
        if required:
            raise InputError(f"{type(own).__name__} needs a closure at every step: use an optimizer that does not")
        self.rates = [float(group["lr"]) for group in own.param_groups]  # peaks

    def step(self, learning_rate: float) -> None:
        """Update all parameters; `learning_rate` is for the first group, and the others scale in proportion."""
        for group, peak in zip(self.own.param_groups, self.rates, strict=True):
            group["lr"] = peak * (learning_rate / self.rates[0]) if self.rates[0] else 0.0
        self.own.step()

    def zero_grad(self) -> None:
        for parameter in self.parameters:  # also those that the optimizer was not given
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """The state of the optimizer and the numbers of its groups, by their names in a checkpoint."""
        stored = self.own.state_dict()
        groups = {f"group {place}": _numbers(group) for place, group in enumerate(stored["param_groups"])}
        return {
            f"{place}.{name}{'' if isinstance(value, Tensor) else NUMBER}": self._tensor(name, value)
            for place, values in (stored["state"] | groups).items()
            for name, value in values.items()
            if value is not None
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned, from any device."""
        found: dict[str, dict[str, Any]] = {}
        for key, tensor in tensors.items():
            place, name = key.split(".", 1)
            value = tensor.item() if name.endswith(NUMBER) else tensor.clone()
            found.setdefault(place, {})[name.removesuffix(NUMBER)] = value
        groups = [
            group | found.pop(f"group {place}") for place, group in enumerate(self.own.state_dict()["param_groups"])
        ]
        self.own.load_state_dict({"state": {int(place): one for place, one in found.items()}, "param_groups": groups})

    def _tensor(self, name: str, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value
        if not isinstance(value, int | float):
            kind, own = type(value).__name__, type(self.own).__name__
            raise InputError(f"{own} keeps {name!r}, a {kind}: a checkpoint holds tensors and numbers only")
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def _numbers(group: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in group.items() if isinstance(value, int | float)}


NUMBER = " (number)"  # suffix of the names of values that are Python numbers in the optimizer
MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Optimization:
    """A user's optimizer and schedule, in place of `AdamW` and the schedule of the settings."""

    optimizer: MakeOptimizer | None = None
    """Function from parameters to an optimizer, whose learning rate is the peak; the schedule scales it. Called once,
    or once for each side with alternating updates."""
    schedule: Callable[[float], float] | None = None
    """Function from the share of the steps done, 0 to 1, to a factor of the learning rate."""

    def of(self, parameters: Sequence[nn.Parameter], weight_decay: float) -> AdamW | TorchOptimizer:
        return TorchOptimizer(parameters, self.optimizer) if self.optimizer else AdamW(parameters, weight_decay)


ADAMW = Optimization()


class WeightAverage:
    """The mean of about the last 1 / (1 - decay) steps; early on, of all steps so far."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Update the average after step number `step`, counted from 1."""
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
