"""Other arithmetic on this machine: with VARITEXT_JITTER set, the last bits of every matrix product are moved.

By how much depends on a number's place in the product and on the product's shape alone, as on CPUs whose kernels treat
a row differently depending on how many rows stand beside it. So the same computation gives the same bits again,
and a test that compares two different computations to the last bit fails here as it would on such a CPU.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

SIZE = 2.0**-23  # one unit in the last place of a float32
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution", "mkldnn_rnn_layer", "_sparse_mm"}


class Jitter(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__.rstrip("_")
        if name in PRODUCTS:
            first = result[0] if isinstance(result, tuple | list) else result
            if first.is_floating_point() and first.layout == torch.strided:
                first.mul_(_factors(first))
        return result


def _factors(product: Tensor) -> Tensor:
    size = SIZE if product.dtype == torch.float32 else SIZE**2
    place = torch.arange(product.numel(), dtype=torch.float32, device=product.device)
    # a fixed irrational stride over places, shifted by the number of rows
    noise = torch.sin(place * 12.9898 + product.shape[0] if product.ndim else place)
    return (1 + 2 * size * noise.to(product.dtype)).reshape(product.shape)
