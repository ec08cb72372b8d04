"""The processes of one training run, started by Ray Train instead of `torchrun`: `processes.py` does the rest."""

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from varitext.errors import InputError
from varitext.ray.cluster import LOCAL, connected

RESTARTS = 3  # of the whole run, from its checkpoint, when a worker dies


def run_in_workers(
    work: Callable[[dict[str, Any]], None],
    settings: dict[str, Any],
    workers: int,
    beside: Path,
    device: str = "cpu",
    address: str = LOCAL,
) -> None:
    """Call `work(settings)` in `workers` processes that know each other, again if one dies.

    Ray keeps notes in a hidden folder beside the model, which all machines must see; they are gone afterwards.
    """
    with connected(address), tempfile.TemporaryDirectory(dir=beside, prefix=".ray.") as notes:
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        on_gpu = device.startswith("cuda")
        trainer = TorchTrainer(
            _on_own_device(work),
            train_loop_config=settings,
            torch_config=TorchConfig(backend="nccl" if on_gpu else "gloo"),
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=on_gpu),
            run_config=RunConfig(storage_path=notes, failure_config=FailureConfig(max_failures=RESTARTS)),
        )
        try:
            with _own_ctrl_c():
                trainer.fit()
        except Exception as error:
            if (told := _told_by_a_worker(error)) is None:
                raise
            raise InputError(told) from None


@contextmanager
def _own_ctrl_c() -> Iterator[None]:
    """Ray Train takes Ctrl-C for itself and would keep it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _on_own_device(work: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def run(settings: dict[str, Any]) -> None:
        from ray.train.torch import get_device

        if get_device().type == "cuda":
            torch.cuda.set_device(get_device())
        work(settings)

    return run


def _told_by_a_worker(error: Exception) -> str | None:
    """The line that a worker had for the user, if that is why the run ended."""
    failures = getattr(error, "worker_failures", {}).values()
    return next((str(failure) for failure in failures if isinstance(failure, InputError)), None)
