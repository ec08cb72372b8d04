"""The default document model (`models/documents/nvdm_dcm.py`) in C: gradients of part of a batch, and q(h | X)."""

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from varitext import compiled


class CompiledModel(NamedTuple):
    """The model: parameters, word groups and constants."""

    parameters: Sequence[Tensor]  # two of each layer; heads of mean and log std, two each; gates; R, l, b, log s
    group_of_word: Tensor  # [V]
    limits: Sequence[float]  # of what is clamped, and the jitter, in the order of model.h


class Documents(NamedTuple):
    starts: Tensor  # [B + 1]
    words: Tensor  # [n]   of these documents only
    counts: Tensor  # [n]
    lengths: Tensor  # [B]


class Gradients(NamedTuple):
    """The parts of the bounds of some documents, once `compute` has been called; it also writes their gradients."""

    log_likelihood: Tensor  # [B]   mean over samples
    kl: Tensor  # [B]
    compute: Callable[[], None]


class Memory:
    """Memory that many calls use, one after the other: the system would clear a new one for each call."""

    def __init__(self) -> None:
        self.room = torch.empty(0, dtype=torch.uint8)

    def of(self, size: int) -> Tensor:
        if len(self.room) < size:
            self.room = torch.empty(math.ceil(1.2 * size), dtype=torch.uint8)  # batches differ in their words
        return self.room


def gradients_of_part(
    model: CompiledModel,
    documents: Documents,
    noise: Tensor,
    weights: Tensor,
    kl_weight: float,
    gradients: list[Tensor],
    memory: Memory,
) -> Gradients:
    """Gradients at `noise` [S, B, K] and `weights` of the bounds [B]; `gradients` have the shapes of the parameters."""
    log_likelihood, kl = documents.lengths.new_empty(2, len(documents.lengths))
    others = len(noise), noise, weights, kl_weight, _pointers(gradients), log_likelihood, kl
    asked = _asked(model, documents, "PART", others)

    def compute() -> None:
        asked.call("gradients_of_part", memory.of(asked.call("room_of_part")))

    return Gradients(log_likelihood, kl, compute)


class Inferred(NamedTuple):
    """q(h | X) = N(mean, S M^T M S), with S = diag(stretch) and M a root."""

    mean: Tensor  # [B, K]
    stretch: Tensor  # [B, K]
    root: Tensor  # [B, K, K]; empty if not requested


def infer(model: CompiledModel, documents: Documents, steps: int, rounding: float, with_root: bool = True) -> Inferred:
    """q(h | X) after `steps` Newton steps; `rounding` is the relative accuracy of log p(h, X)."""
    size, k = len(documents.lengths), model.parameters[-4].shape[1]
    mean, stretch = documents.lengths.new_empty(2, size, k)
    root = documents.lengths.new_empty(size if with_root else 0, k, k)
    others = steps, rounding, mean, stretch, root if with_root else None
    _asked(model, documents, "INFERENCE", others).call("infer")
    return Inferred(mean, stretch, root)


class _Asked(NamedTuple):
    """The two structures that a kernel reads."""

    model: ctypes.Structure
    of_documents: ctypes.Structure
    alive: object  # the tensors that the structures point at

    def call(self, function: str, *others: Tensor) -> int:
        return compiled.call(function, ctypes.addressof(self.model), ctypes.addressof(self.of_documents), *others)


def _asked(model: CompiledModel, documents: Documents, structure: str, others: tuple[Any, ...]) -> _Asked:
    real = ctypes.c_double if documents.lengths.dtype is torch.float64 else ctypes.c_float
    (vocabulary, size), layers = model.parameters[-4].shape, (len(model.parameters) - 9) // 2
    sizes = vocabulary, len(model.parameters[-1]), size, len(model.parameters[1]) if layers else 0, layers
    of_model = *sizes, _pointers(model.parameters), model.group_of_word, *model.limits
    of_documents = len(documents.lengths), len(documents.words), *documents, *others
    told, of_part = _structure("MODEL", real), _structure(structure, real)
    return _Asked(told(*_addressed(of_model)), of_part(*_addressed(of_documents)), (of_model, of_documents))


def _addressed(values: tuple[Any, ...]) -> list[Any]:
    return [compiled.address(each) if isinstance(each, Tensor) else each for each in values]


def _pointers(tensors: Iterable[Tensor]) -> Any:
    addresses = [*map(compiled.address, tensors)]
    return (ctypes.c_void_p * len(addresses))(*addresses)


@cache
def _structure(name: str, real: type) -> type[ctypes.Structure]:
    """A structure of model.h, as declared there."""
    whole, array, arrays = ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
    documents: list[type[Any]] = [whole, whole, array, array, array, array]
    kinds: dict[str, list[type[Any]]] = {
        "MODEL": [*[whole] * 5, arrays, array, *[real] * 9],
        "PART": [*documents, whole, array, array, real, arrays, array, array],
        "INFERENCE": [*documents, whole, real, array, array, array],
    }
    fields = [(f"field_{place}", kind) for place, kind in enumerate(kinds[name])]
    return type(name, (ctypes.Structure,), {"_fields_": fields})
