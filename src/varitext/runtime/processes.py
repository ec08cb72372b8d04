"""One training run in many processes: the rank of this one, its rows of a batch, and sums over all.

Every process holds the whole model and takes its rows of every batch; gradients are summed, and each makes the same
update. All draw the noise of the whole batch and use that of their own rows (`latent/noise.py`), so that a run does not
depend on how many share it, but for the order in which numbers are added up.

The processes are started by `torchrun` or Ray Train, which also tell each process where the others are.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from varitext.errors import InputError, first_line
from varitext.runtime.interruption import ending_with_launcher


@dataclass(frozen=True)
class World:
    """The processes of a run, and which of them this is. The default is a single process."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"  # where messages must be: nccl takes only tensors on a GPU

    @property
    def is_first(self) -> bool:
        """The first process writes files and talks to the user."""
        return self.rank == 0

    def share(self, rows: int) -> "Share":
        """This process's part of a batch; sizes differ by at most one."""
        start, stop = (rows * place // self.size for place in (self.rank, self.rank + 1))
        return Share(self, start, stop, rows) if stop > start else Share(self, 0, 1, rows, weight=0.0)

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor becomes its sum over all processes: one message for all of them."""
        if self.size == 1:
            return
        bucket = torch.cat([tensor.reshape(-1) for tensor in tensors])
        try:
            distributed.all_reduce(bucket)
        except RuntimeError as error:  # a killed process takes its connections along
            raise LostProcess(f"another of the {self.size} processes went away ({first_line(error)[:100]})") from None
        for tensor, summed in zip(tensors, torch.split(bucket, [tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(summed.view_as(tensor))

    def agree(self, value: Any) -> Any:
        """The value of the first process, sent as JSON: for decisions that must be the same in all processes."""
        if self.size == 1:
            return value
        said = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(self.device)
        try:
            length = torch.tensor(len(said), device=self.device)
            distributed.broadcast(length, 0)
            message = said if self.is_first else said.new_empty(int(length))
            distributed.broadcast(message, 0)
        except RuntimeError as error:
            raise LostProcess(f"another of the {self.size} processes went away ({first_line(error)[:100]})") from None
        return json.loads(bytes(message.tolist()))


ALONE = World()


class LostProcess(InputError):
    """Another process of the run is gone; the launcher starts all of them again, from the checkpoint."""


@dataclass(frozen=True)
class Share:
    """Rows `start` to `stop` of a batch of `whole`.

    A process for which no row is left takes the first one with a weight of 0: it then draws and computes like all.
    """

    world: World
    start: int
    stop: int
    whole: int
    weight: float = 1.0

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)

    def mean(self, values: Tensor) -> Tensor:
        """What this process adds to the mean over the whole batch, whose rows are the last axis."""
        if self.world.size == 1:
            return values.mean()
        return values.sum() * (self.weight / (self.whole * (values.numel() // (self.stop - self.start))))


_current: ContextVar[Share | None] = ContextVar("share", default=None)


@contextmanager
def working_on(share: Share) -> Iterator[None]:
    """Within the block, noise and means are those of the whole batch of which `share` is a part."""
    token = _current.set(share if share.world.size > 1 else None)
    try:
        yield
    finally:
        _current.reset(token)


def current_share() -> Share | None:
    return _current.get()


def mean_over_batch(values: Tensor) -> Tensor:
    """The mean over the whole batch, wherever its rows are; [..., B]."""
    share = current_share()
    if share is None:
        return values.mean()
    mean = share.mean(values)
    share.world.sum_([mean])
    return mean


def variance_over_batch(values: Tensor) -> Tensor:
    if current_share() is None:
        return values.var(correction=0)
    return mean_over_batch((values - mean_over_batch(values)).square())


# Joining


@contextmanager
def joined(device: str) -> Iterator[World]:
    """The world that `torchrun` or Ray has started this process in; a single process if they have not."""
    if distributed.is_initialized():  # by Ray, which also ends it
        yield present_world(device)
        return
    if not was_launched():
        yield ALONE
        return
    backend = "nccl" if device.startswith("cuda") else "gloo"
    use_own_gpu(device)
    with ending_with_launcher():
        store, rank, size = next(rendezvous("env://"))
        # the launcher keeps its store when it restarts processes: they must not find what the dead ones left there
        own = PrefixStore(f"{size} processes, started {1 + restarts()} times", store)
        distributed.init_process_group(backend, store=own, rank=rank, world_size=size)
    try:
        yield present_world(device)
    finally:
        distributed.destroy_process_group()


def present_world(device: str) -> World:
    """The world of a process group that exists already."""
    return World(distributed.get_rank(), distributed.get_world_size(), "cuda" if device.startswith("cuda") else "cpu")


def was_launched() -> bool:
    return distributed.is_torchelastic_launched()


def use_own_gpu(device: str) -> None:
    """From here on `cuda` is the GPU that belongs to this process, on a machine that runs one for each."""
    if was_launched() and device == "cuda" and torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def rank_at_launch() -> int:
    """The rank of this process, known before the processes have found each other."""
    return int(os.environ["RANK"]) if was_launched() else 0


def size_at_launch() -> int:
    return int(os.environ["WORLD_SIZE"]) if was_launched() else 1


def restarts() -> int:
    """How often the launcher has started this run again because a process of it died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
