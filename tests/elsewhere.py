"""A device that is not there: tensors that say they are on `meta`, with their values kept on the CPU behind its back.

What runs there runs on the CPU, so that values, branches and shapes are real. But nothing may mix: an operation on one
tensor from here and one from there raises, as it would between a CPU and a GPU; so does `.numpy()`. What is fetched
(`.cpu()`, `.item()`) is counted.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
MOVES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}
FETCHES = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default}


class ElsewhereTensor(Tensor):
    @staticmethod
    def __new__(cls, held: Tensor) -> "ElsewhereTensor":
        made = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=held.requires_grad,
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @property
    def data(self) -> "ElsewhereTensor":
        return self.detach()

    @data.setter
    def data(self, value: "ElsewhereTensor") -> None:
        """Torch's own would change the shape that is shown and leave the values: no dispatch tells of it."""
        assert isinstance(value, ElsewhereTensor) and value.shape == self.shape
        self.held = value.held

    def tolist(self) -> list[float]:
        """Of one dimension. Torch refuses it to subclasses; counted as what is fetched."""
        return [one.item() for one in self]

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{operation} outside of `Elsewhere`")


class Elsewhere(TorchDispatchMode):
    """Within, `meta` is a device like any other, and a hidden way back to the CPU is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, Tensor)]
        there = [one for one in tensors if isinstance(one, ElsewhereTensor)]
        asked = kwargs.get("device")
        goes_there = bool(there) if asked is None else torch.device(asked).type == DEVICE.type
        if asked is not None:
            kwargs["device"] = torch.device("cpu")
        if operation in MOVES:
            if there and not goes_there:
                self.fetched.append("cpu")
            if operation is torch.ops.aten.copy_.default:
                goes_there = isinstance(args[0], ElsewhereTensor)
        elif there and any(one.dim() for one in tensors if not isinstance(one, ElsewhereTensor)):
            raise AssertionError(f"{operation}: tensors of two devices, {[one.device.type for one in tensors]}")
        if operation in FETCHES and there:
            self.fetched.append("item")
            goes_there = False
        held = tree_map(lambda one: one.held if isinstance(one, ElsewhereTensor) else one, (args, kwargs))
        result = operation(*held[0], **held[1])
        if torch.Tag.inplace_view in operation.tags and there:  # squeeze_ and the like: the shape that is shown too
            with no_dispatch():
                return operation(*args, **kwargs)
        back = {id(one.held): one for one in there}  # what was changed in place is the tensor that it was

        def wrapped(one: Any) -> Any:
            if not isinstance(one, Tensor) or not goes_there:
                return one
            return back[id(one)] if id(one) in back else ElsewhereTensor(one)

        return tree_map(wrapped, result)
