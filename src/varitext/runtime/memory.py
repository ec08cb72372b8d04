"""Memory of this process (Linux)."""

import ctypes
import sys
from pathlib import Path


def status(name: str) -> float | None:
    """A line of /proc/self/status in megabytes: VmRSS, the memory now, or VmHWM, its peak."""
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    found = [line for line in lines if line.startswith(name)]
    return int(found[0].split()[1]) / 1024 if found else None


def peak_so_far() -> float:
    """Peak memory in megabytes; 0 where the system does not report it."""
    if (found := status("VmHWM")) is not None:
        return found
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def release_free_memory() -> None:
    """Return freed memory to the system, where the C library would keep it for later (glibc)."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
