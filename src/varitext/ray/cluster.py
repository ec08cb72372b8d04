"""A Ray cluster: one on this machine for as long as it is needed, or one that runs elsewhere, by its address."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from varitext.errors import InputError

LOCAL = "local"


@contextmanager
def connected(address: str = LOCAL) -> Iterator[ModuleType]:
    """Ray, connected; a cluster that was started here is gone afterwards."""
    ray = _imported()
    _quiet_and_in_order(ray)
    if ray.is_initialized():  # by whoever called us: theirs to end
        yield ray
        return
    try:
        ray.init(address=address, logging_level="error", log_to_driver=False, **_options(address))
    except Exception as error:  # Ray raises just that when its own processes are too slow to start
        ray.shutdown()
        where = "Ray did not start here" if address == LOCAL else f"no Ray cluster answers at {address!r}"
        raise InputError(f"{where} ({' '.join(str(error).split())[:200]})") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _imported() -> ModuleType:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # leaves CUDA_VISIBLE_DEVICES to the user
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError("this needs Ray: pip install 'varitext[ray]'") from None
    return ray


def _quiet_and_in_order(ray: ModuleType) -> None:
    """Ray Data gives rows as they come, unless it is told that their order matters."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    for name in ("ray.data", "ray.train"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _options(address: str) -> dict[str, object]:
    """A cluster that somebody else started has chosen these already."""
    return {"include_dashboard": False} if address == LOCAL else {}
