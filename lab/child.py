"""A module run as a process of its own, with threads, memory and, if it must be, packages of its own.

Packages that should not be installed beside ours, such as BERTopic's, lie in one folder, made with `pip install
--target`: `VARITEXT_PEERS` names it, else it is build/peers. Only a child that is started for such a package sees it.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
Record = dict[str, Any]


def peer_packages() -> Path:
    return Path(os.environ.get("VARITEXT_PEERS", "build/peers")).absolute()


def is_available(package: str) -> bool:
    """Installed here, or in the folder of peers."""
    return importlib.util.find_spec(package) is not None or (peer_packages() / package).is_dir()


def in_child(
    module: str, task: Record, threads: int, say: Callable[[str], None], package: str | None = None
) -> Record | None:
    """What the module prints in a process of its own; None, with the reason said, if it fails.

    `package` is one that the module needs and that may lie in the folder of peers.
    """
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    if package and importlib.util.find_spec(package) is None:
        folders = [environment.get("PYTHONPATH"), str(peer_packages())]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    command = [sys.executable, "-W", "ignore", "-m", module, json.dumps(task)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        record: Record = json.loads(done.stdout)
        return record
    reason = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    say(f"{task.get('system', module)}: failed: {reason[-1]}")
    return None
