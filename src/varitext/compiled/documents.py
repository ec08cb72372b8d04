"""The default document model (`models/documents/nvdm_dcm.py`) in C: gradients of part of a batch, and q(h | X)."""

import ctypes
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


def gradients_of_part(
    model: CompiledModel,
    documents: Documents,
    noise: Tensor,
    weights: Tensor,
    kl_weight: float,
    gradients: list[Tensor],
) -> Gradients:
    """Gradients at `noise` [S, B, K] and `weights` of the bounds [B]; `gradients` have the shapes of the parameters."""
    log_likelihood, kl = documents.lengths.new_empty(2, len(documents.lengths))
    others = len(noise), noise, weights, kl_weight, _pointers(gradients), log_likelihood, kl
    return Gradients(log_likelihood, kl, _prepared("gradients_of_part", model, documents, "PART", others))


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
    _prepared("infer", model, documents, "INFERENCE", others)()
    return Inferred(mean, stretch, root)


def _prepared(
    function: str, model: CompiledModel, documents: Documents, structure: str, others: tuple[Any, ...]
) -> Callable[[], None]:
    real = ctypes.c_double if documents.lengths.dtype is torch.float64 else ctypes.c_float
    (vocabulary, size), layers = model.parameters[-4].shape, (len(model.parameters) - 9) // 2
    sizes = vocabulary, len(model.parameters[-1]), size, len(model.parameters[1]) if layers else 0, layers
    of_model = *sizes, _pointers(model.parameters), model.group_of_word, *model.limits
    of_documents = len(documents.lengths), len(documents.words), *documents, *others
    told = _structure("MODEL", real)(*_addressed(of_model))
    asked = _structure(structure, real)(*_addressed(of_documents))

    def call(alive: object = (of_model, of_documents)) -> None:  # the structures only point at these tensors
        compiled.call(function, ctypes.addressof(told), ctypes.addressof(asked))

    return call


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
