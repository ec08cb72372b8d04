"""A Ray cluster, on this machine or elsewhere, and the processes of a training run on it.

Ray Train starts the processes instead of `torchrun`; `runtime/processes.py` does the rest.
"""

import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from varitext.errors import InputError, first_line

LOCAL = "local"
RESTARTS = 3  # of the whole run, from its checkpoint, when a worker dies


@contextmanager
def connected(address: str = LOCAL) -> Iterator[ModuleType]:
    """Ray, connected; a cluster that was started here is shut down afterwards."""
    ray = _imported()
    if ray.is_initialized():  # by the caller, who also ends it
        yield ray
        return
    options = {"include_dashboard": False} if address == LOCAL else {}  # a running cluster has chosen already
    try:
        ray.init(address=address, logging_level="error", log_to_driver=False, **options)
    except Exception as error:  # Ray raises just that when its own processes are too slow to start
        ray.shutdown()
        where = "Ray did not start here" if address == LOCAL else f"No Ray cluster answers at {address!r}"
        raise InputError(f"{where} ({' '.join(str(error).split())[:200]})") from None
    try:
        yield ray
    except Exception as error:
        if isinstance(error, ray.exceptions.RayError) and not isinstance(error, ray.exceptions.RayTaskError):
            raise broken_off(error) from None
        raise
    finally:
        ray.shutdown()


def broken_off(error: Exception) -> InputError:
    """The error, in one line for the user, when a process of Ray itself or a machine has died."""
    return InputError(
        f"Ray broke off ({first_line(error)[:200]}). Run the same command again, a fit with --resume: "
        "it continues from its checkpoint"
    )


def _imported() -> ModuleType:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # leaves CUDA_VISIBLE_DEVICES to the user
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError("Ray is not installed: pip install 'varitext[ray]'") from None
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True  # by default Ray Data yields rows as they come
    for name in ("ray.data", "ray.train"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return ray


# Training


def run_in_workers(
    work: Callable[[dict[str, Any]], None],
    settings: dict[str, Any],
    workers: int,
    beside: Path,
    device: str = "cpu",
    address: str = LOCAL,
) -> None:
    """Call `work(settings)` in `workers` processes of one group, again if one dies.

    Ray keeps its state in a hidden folder beside the model, which all machines must see; it is removed afterwards.
    """
    with connected(address), tempfile.TemporaryDirectory(dir=beside, prefix=".ray.") as state:
        from ray.train import ControllerError, FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        on_gpu = device.startswith("cuda")
        trainer = TorchTrainer(
            _on_own_device(work),
            train_loop_config=settings,
            torch_config=TorchConfig(backend="nccl" if on_gpu else "gloo"),
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=on_gpu),
            run_config=RunConfig(storage_path=state, failure_config=FailureConfig(max_failures=RESTARTS)),
        )
        try:
            with _own_ctrl_c():
                trainer.fit()
        except Exception as error:
            failures = getattr(error, "worker_failures", {}).values()
            for failure in failures:
                if isinstance(failure, InputError):  # for the user, in one line
                    raise InputError(str(failure)) from None
            if isinstance(error, ControllerError):
                raise broken_off(error) from None
            raise


@contextmanager
def _own_ctrl_c() -> Iterator[None]:
    """Ray Train installs its own handler of Ctrl-C and would leave it there."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _on_own_device(work: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def run(settings: dict[str, Any]) -> None:
        import torch
        from ray.train.torch import get_device

        if get_device().type == "cuda":
            torch.cuda.set_device(get_device())
        work(settings)

    return run
