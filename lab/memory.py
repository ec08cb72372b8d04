"""Peak memory of this process and its children during a block (Linux)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from varitext.runtime.memory import status

EVERY = 0.1  # seconds between two looks at the processes that this one started
PROCESSES = Path("/proc")


@dataclass
class Peak:
    """Megabytes; None where the system does not tell."""

    above: float | None = None


@contextmanager
def watched() -> Iterator[Peak]:
    """The peak during the block: this process's as reported by the kernel, plus the private memory of its children.

    Children are sampled ten times a second and count in full: starting another Python is part of a tool's cost.
    """
    peak = Peak()
    before = status("VmRSS")
    if before is None:
        yield peak
        return
    with suppress(OSError):  # not allowed: then the peak of the imports is the least it can be
        (PROCESSES / "self" / "clear_refs").write_text("5")  # the kernel's peak counts from here
    children, done = [_of_children()], threading.Event()  # those of before are no part of the block

    def watch() -> None:
        while not done.wait(EVERY):
            children.append(_of_children())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        peak.above = (status("VmHWM") or before) - before + max(children) - children[0]


def _of_children() -> float:
    """Private memory of these processes."""
    texts = (_text(PROCESSES / process / "smaps_rollup") for process in _descendants("self"))
    lines = (line for text in texts for line in text.splitlines() if line.startswith("Private_"))
    return sum(float(line.split()[1]) for line in lines) / 1024


def _descendants(process: str) -> list[str]:
    """All processes below this one, by number."""
    found: list[str] = []
    for task in _entries(PROCESSES / process / "task"):
        for child in _text(task / "children").split():
            found += [child, *_descendants(child)]
    return found


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # it has ended
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
