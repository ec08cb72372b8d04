"""Where a measured value comes from: the commit of the code, the versions beneath it, and the processor."""

import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

import varitext

CPU_FILE = Path("/proc/cpuinfo")
SOURCE = Path(__file__).resolve().parents[1]


def provenance() -> dict[str, Any]:
    """JSON, for the file of a result."""
    versions = {
        "varitext": varitext.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
    return {"commit": commit(), "versions": versions, "cpu": cpu_name()}


def commit(folder: Path = SOURCE) -> str | None:
    """The commit that the code is at, with `+` if files of the package differ from it; None outside a repository."""
    revision = _git(folder, "rev-parse", "HEAD")
    if revision is None:
        return None
    return revision + ("+" if _git(folder, "status", "--porcelain", "--", str(folder)) else "")


def changed_since(revision: str, paths: list[str], folder: Path = SOURCE) -> list[str] | None:
    """Files of the package under `paths` that differ from that commit; None if the commit is not known here."""
    found = _git(folder, "diff", "--name-only", "--relative", revision.removesuffix("+"), "--", *paths)
    return None if found is None else found.splitlines()


def cpu_name() -> str:
    lines = CPU_FILE.read_text(errors="replace").splitlines() if CPU_FILE.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says; None if it cannot."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
