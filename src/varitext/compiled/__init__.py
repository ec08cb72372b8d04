"""C kernels for work that would take hundreds of short operations in torch.

The library is built when varitext is installed, if there is a C compiler. Without the library, on devices other than
the CPU, in precisions other than single, or with VARITEXT_COMPILED=0, `usable` is false and callers do the same work in
torch. A call releases Python's global interpreter lock.
"""

from __future__ import annotations  # so that checking for the library does not import torch

import ctypes
import os
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 5  # of the C sources; a library built from another version is not used
# the arguments of each kernel: a(rray), n (integer), f(loat)
ARGUMENTS = {
    "count_groups": "nnnn aaaa aaaa",
    "effective_counts": "nn aaa aaa a aaa aaa",
    "urns": "nnn a ff a aaa aaa a a aaa",
    "outer_squares": "nn aa a",
    "inverse_cholesky": "nn f aaa a",
    "covariance_times": "nn aa a",
    "room_of_part": "aa",
    "gradients_of_part": "aaa",
    "infer": "aa",
    "leave_rare": "nn aaaa",
    "count_words": "nnnn aaaa aaaa a",
    "use_columns": "n aaaa",
}
WITHOUT_STATUS = ("effective_counts", "outer_squares", "covariance_times")
WIDER_BUILDS = {256: "kernels_avx2", 512: "kernels_avx512"}  # by the bits of the CPU's registers
HERE = Path(__file__).parent
KINDS = {"a": ctypes.c_void_p, "n": ctypes.c_int64}


def usable(*tensors: Tensor) -> bool:
    """Whether the kernels are available and accept these tensors."""
    import torch

    of_one_kind = all(each.device.type == "cpu" and each.dtype is torch.float32 for each in tensors)
    return of_one_kind and available()


def available() -> bool:
    """Whether the library was built, matches this version and is not switched off."""
    return _library() is not None


@cache
def _library() -> ctypes.CDLL | None:
    if os.environ.get("VARITEXT_COMPILED") == "0":
        return None
    library = _build("kernels")
    wider = WIDER_BUILDS.get(library.registers()) if library else None
    return _build(wider) or library if wider else library


def registers() -> int:
    """The width in bits of this CPU's registers, as far as the library has a build for it."""
    return int(_library().registers())  # type: ignore[union-attr]  # only if it is available


def _build(name: str) -> ctypes.CDLL | None:
    try:
        return load_library(HERE / f"{name}{EXTENSION_SUFFIXES[-1]}")  # as setup.py names it
    except (OSError, AttributeError):  # not built, built for another machine, or from other sources
        return None


def load_library(path: Path, real: type = ctypes.c_float) -> ctypes.CDLL | None:
    """The kernels in a file, for numbers of type `real`; None if they are of another version."""
    library = ctypes.CDLL(str(path))
    if library.version() != VERSION:
        return None
    for name, letters in ARGUMENTS.items():
        kernel = getattr(library, name)
        kernel.argtypes = [(KINDS | {"f": real})[letter] for letter in letters.replace(" ", "")]
        kernel.restype = None if name in WITHOUT_STATUS else ctypes.c_int64
    return library


def call(name: str, *arguments: Tensor | bytes | float | None) -> int:
    """Call a kernel; tensors are passed by their address, everything else as it is."""
    values = [each if each is None or isinstance(each, int | float | bytes) else address(each) for each in arguments]
    status = getattr(_library(), name)(*values)
    if status == -1:
        raise MemoryError(f"no memory for {name}")
    if status == -2:
        raise IndexError("a word or group of words is out of range")
    return status or 0


def address(array: Tensor) -> int:
    if not array.is_contiguous():  # the kernel would read the wrong memory
        raise ValueError(f"kernels need contiguous arrays; strides: {array.stride()}")
    return array.data_ptr()
