"""Where tensors live: whether a device can be used here, and random numbers that are drawn on it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from varitext.errors import InputError

RANDOM = "random"  # the name of the CPU's state in a checkpoint; that of a GPU comes after it


def check_device(name: str) -> None:
    """An `InputError` in one line for a device that does not exist or cannot be used on this machine."""
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise InputError(f"{name!r} is not a device: cpu or cuda")
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"the device {name} cannot be used here ({reason}); cpu can") from None


def usable_device(name: str) -> str:
    """The device, or the CPU if a model comes from a machine that had another."""
    try:
        check_device(name)
    except InputError:
        return "cpu"
    return name


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Within, what is drawn on the CPU and on the device depends on `seed` alone; afterwards both go on as before."""
    with torch.random.fork_rng(_gpus(device)):
        torch.manual_seed(seed)
        yield


def random_states(device: torch.device | str) -> dict[str, Tensor]:
    """The states of the generators that work on the device draws from: the CPU's, and that of a GPU."""
    states = {RANDOM: torch.get_rng_state()}
    return states | {f"{RANDOM}.cuda": torch.cuda.get_rng_state(gpu) for gpu in _gpus(device)}


def set_random_states(states: dict[str, Tensor], device: torch.device | str) -> None:
    """Go on drawing from there; a run that changes from a CPU to a GPU has no state for that yet, and keeps its own."""
    torch.set_rng_state(states[RANDOM].cpu())
    for gpu in _gpus(device):
        if f"{RANDOM}.cuda" in states:
            torch.cuda.set_rng_state(states[f"{RANDOM}.cuda"].cpu(), gpu)


def _gpus(device: torch.device | str) -> list[torch.device]:
    device = torch.device(device)
    return [device] if device.type == "cuda" else []
