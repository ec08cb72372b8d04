"""Where a measured value comes from: the commit of the code, the versions of its dependencies, and the processor."""

import hashlib
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

import varitext

CPU_FILE = Path("/proc/cpuinfo")
SOURCE = Path(__file__).resolve().parents[1]


def provenance() -> dict[str, Any]:
    versions = {module.__name__: module.__version__ for module in (torch, np, scipy)}
    versions = {"varitext": varitext.__version__, **versions, "python": platform.python_version()}
    return {"commit": commit(), "versions": versions, "cpu": cpu_name()}


def commit(folder: Path = SOURCE) -> str | None:
    """The commit of the code, with `+` if files of the package differ from it; None outside a repository."""
    try:
        revision, changes = (
            subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", str(folder)))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return revision + ("+" if changes else "")


@cache  # files do not change under a process that has read them
def code_fingerprint(folder: Path = SOURCE) -> str:
    """A short hash of all code of the package, in a repository or not: models fitted by other code have another."""
    digest = hashlib.sha256()
    for path in sorted(path for ending in ("py", "c") for path in folder.rglob(f"*.{ending}")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def cpu_name() -> str:
    lines = CPU_FILE.read_text(errors="replace").splitlines() if CPU_FILE.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
