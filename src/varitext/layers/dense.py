"""Layers on vectors: the MLP of an inference network and the Gaussian head on top of it."""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from varitext.latent.gaussian import DiagonalGaussian

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "silu": functional.silu,
    "tanh": torch.tanh,
}


class MLP(nn.Module):
    """Linear layers, each followed by the activation."""

    def __init__(self, input_dim: int, hidden_dim: int, hidden_layers: int, activation: str = "relu"):
        super().__init__()
        sizes = [input_dim] + [hidden_dim] * hidden_layers
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(sizes))
        self.activation = ACTIVATIONS[activation]

    def forward(self, hidden: Tensor) -> Tensor:
        for layer in self.layers:
            hidden = self.activation(layer(hidden))
        return hidden  # [B, H]


class FasterLinear(nn.Linear):
    """A linear map with `times` the learning rate of other layers, for a random layer next to pretrained ones.

    Its weights are stored divided by `times`; Adam's steps do not depend on the size of the weights.
    """

    def __init__(self, input_dim: int, output_dim: int, times: float):
        super().__init__(input_dim, output_dim)
        self.times = times
        with torch.no_grad():
            for values in self.parameters():
                values.div_(times)

    def forward(self, values: Tensor) -> Tensor:
        return functional.linear(values, self.times * self.weight, self.times * self.bias)


class GaussianHead(nn.Module):
    """mean = l_1(pi), log_std = l_2(pi); log_std is initialized to zero, as in the paper, and clamped."""

    def __init__(self, hidden_dim: int, latent_dim: int):
        super().__init__()
        self.mean = nn.Linear(hidden_dim, latent_dim)
        self.log_std = nn.Linear(hidden_dim, latent_dim)
        nn.init.zeros_(self.log_std.weight)
        nn.init.zeros_(self.log_std.bias)

    def forward(self, hidden: Tensor) -> DiagonalGaussian:
        return DiagonalGaussian(self.mean(hidden), self.log_std(hidden)).within_bounds()
