"""Measurements in a process of their own, with its own threads, memory and, if needed, packages.

Packages that should not be installed beside varitext's, such as BERTopic's, are in the folder that the environment
variable VARITEXT_PEERS names by its absolute path (`make peers`). Only a child that needs such a package sees it.
"""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.import_graph import ROOT
from varitext.errors import InputError

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def peer_packages() -> Path | None:
    """The folder of VARITEXT_PEERS; None if it is not set. A relative path is refused."""
    if not (named := os.environ.get("VARITEXT_PEERS")):
        return None
    if not (folder := Path(named)).is_absolute():
        raise InputError(f"VARITEXT_PEERS must be an absolute path, not {named!r}: `make peers` prints it")
    return folder if folder.is_dir() else None


def is_available(package: str) -> bool:
    """Whether a package is installed here or in the folder of peers."""
    folder = peer_packages()
    return importlib.util.find_spec(package) is not None or bool(folder and (folder / package).is_dir())


def in_child(function: str, task: dict[str, Any], threads: int, package: str | None = None) -> dict[str, Any]:
    """The result of a function, named `module:name`, in a process of its own. Raises InputError if it fails.

    `package` is one that the function needs and that may be in the folder of peers.
    """
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    peers = peer_packages() if package and importlib.util.find_spec(package) is None else None
    folders = [str(ROOT), environment.get("PYTHONPATH"), peers and str(peers)]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    command = [sys.executable, "-P", "-W", "ignore", "-m", "lab.child", function, json.dumps(task)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise InputError(f"{function} failed with {task}: {reason[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(function: str, task: str) -> None:
    """Run the function; whatever it or a peer prints is not the result."""
    printed, sys.stdout = sys.stdout, sys.stderr
    module, _, name = function.partition(":")
    print(json.dumps(getattr(importlib.import_module(module), name)(**json.loads(task))), file=printed, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
