"""Check that the weights in a model folder (`store.py`) match the architecture that config.json describes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from varitext.errors import InputError
from varitext.layers.shapes import check_numbers, check_shapes

MAX_UNSTORED = 25_000_000  # numbers of a network that are not stored in its weights: an identity of 5,000 dimensions
MAX_CALLS = 5_000  # of torch functions while a network is built
MAX_CALLS_PER_TENSOR = 50  # further calls per tensor of the weights
SAME_SHAPE = ("normal_", "uniform_", "add_", "div_", "remainder", "__mod__")  # functions that change only values
BY_NUMBER = ("mul", "div")  # the same, where the second argument is a number


def check_architecture(
    build: Callable[[], nn.Module], architecture: Mapping[str, Any], weights: Mapping[str, Tensor], folder: Path
) -> None:
    """Refuse an architecture that does not match the weights, before a network takes any memory."""
    config = folder / "config.json"
    check_numbers(architecture, folder)
    with torch.device("meta"), _LimitedCalls(MAX_CALLS + MAX_CALLS_PER_TENSOR * len(weights), config):
        network = build()
    check_shapes(network.state_dict(), weights, folder)
    held = sum(tensor.numel() for tensor in (*network.parameters(), *network.buffers()) if tensor.is_meta)
    if held > sum(tensor.numel() for tensor in weights.values()) + MAX_UNSTORED:
        raise InputError(f"{config}: the model would hold {held:,} numbers, far more than its weights")


class _LimitedCalls(TorchFunctionMode):
    """Within this context, the number of torch calls is limited: nobody needs a million layers."""

    def __init__(self, most: int, config: Path):
        super().__init__()
        self.left, self.config = most, config

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.left -= 1
        if self.left < 0:
            raise InputError(f"{self.config}: the model has far more layers than its weights")
        return _without_values(function, args, kwargs or {})


def _without_values(function: Any, args: Any, kwargs: Any) -> Any:
    """Apply the function to shapes only. For tensors without values, torch computes some functions in Python and
    imports its compiler for that, which takes two seconds."""
    if function is torch.eye:
        function, args = torch.zeros, (args[0], args[-1])
    elif function is torch.arange and len(args) == 1 and not kwargs:
        function, kwargs = torch.zeros, {"dtype": torch.long}
    elif function in (torch.rand, torch.randn):
        function = torch.zeros
    elif function.__name__ in BY_NUMBER and isinstance(args[1], int | float):
        return args[0]
    elif function.__name__ in SAME_SHAPE or getattr(function, "__module__", None) == "torch.nn.init":
        return args[0] if args else kwargs["tensor"]
    return kwargs["out"] if "out" in kwargs else function(*args, **kwargs)


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Load the weights into a newly built model; all must be present, with the right shapes."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise InputError(f"{folder}: the weights do not fit the model in config.json ({first})") from None
