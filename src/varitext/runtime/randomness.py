"""Random numbers: one stream per purpose from the user's one seed, and generators on any device.

If initial weights, training noise and evaluation noise shared one seed, noise would equal rows of the initial decoder
(both are the first normal numbers of one generator), and results would depend on it.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from torch import Tensor

RANDOM = "random"  # the name of the CPU generator's state in a checkpoint; a GPU's is derived from it

Purpose = Literal[
    "initial weights",
    "initial word vectors",  # of words that a file of vectors does not have
    "training noise",  # draws of h, dropout inside networks
    "shuffles",  # the order of training examples and which words are dropped, epoch by epoch
    "hold-out",  # which training examples choose when to stop
    "folds",  # which training questions are predicted together for the second stage
    "mixed lists",  # which candidates of other questions a training question is ranked among
    "left out",  # which training questions without an answer the joint model is fitted on
    "dev noise",  # draws of h for the held-out score of a round
    "evaluation noise",  # draws of h for an evaluation or a prediction
    "documents for axes",  # those that readable axes are found from
]


def stream(seed: int, purpose: Purpose) -> int:
    """The seed of one purpose's stream, below 2^32.

    numpy's SeedSequence mixes `seed` with a hash of the purpose; numpy guarantees that its values never change.
    """
    return int(np.random.SeedSequence((seed, zlib.crc32(purpose.encode()))).generate_state(1)[0])


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Within the block, draws on the CPU and the device depend on `seed` alone; afterwards both continue as before."""
    with torch.random.fork_rng(_gpus(device)):
        torch.manual_seed(seed)
        yield


def random_states(device: torch.device | str) -> dict[str, Tensor]:
    """The states of the generators in use: the CPU's, and the GPU's if the device is one."""
    states = {RANDOM: torch.get_rng_state()}
    return states | {f"{RANDOM}.cuda": torch.cuda.get_rng_state(gpu) for gpu in _gpus(device)}


def set_random_states(states: dict[str, Tensor], device: torch.device | str) -> None:
    """Draw on from these states. A run that moves from a CPU to a GPU has no GPU state yet and keeps its own."""
    torch.set_rng_state(states[RANDOM].cpu())
    for gpu in _gpus(device):
        if f"{RANDOM}.cuda" in states:
            torch.cuda.set_rng_state(states[f"{RANDOM}.cuda"].cpu(), gpu)


def _gpus(device: torch.device | str) -> list[torch.device]:
    device = torch.device(device)
    return [device] if device.type == "cuda" else []
