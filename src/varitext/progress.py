"""How a run shows itself, on standard error: a live bar on a terminal, plain lines elsewhere."""

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_EVERY = 5.0  # seconds between plain lines


class BarProgress:
    """A live bar with bound, KL, held-out perplexity and time left."""

    def __init__(self, console: Console):
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("bound {task.fields[elbo]:.3f}/word  KL {task.fields[kl]:.1f}  dev {task.fields[dev]:.0f}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=False,
        )
        self._task = self._bar.add_task("fitting", total=1.0, elbo=0.0, kl=0.0, dev=0.0)

    def __enter__(self) -> "BarProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, share_done: float, elbo: float, kl: float) -> None:
        self._bar.update(self._task, completed=share_done, elbo=elbo, kl=kl)

    def round(self, record: dict[str, Any]) -> None:
        self._bar.update(self._task, dev=record["dev_perplexity"])

    def note(self, message: str) -> None:
        self._bar.console.print(message)


class LineProgress:
    """The same as plain lines, at most one every few seconds."""

    def __init__(self, console: Console):
        self._console = console
        self._started = self._last = time.monotonic()
        self._share, self._elbo, self._kl = 0.0, 0.0, 0.0

    def __enter__(self) -> "LineProgress":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def step(self, share_done: float, elbo: float, kl: float) -> None:
        self._share, self._elbo, self._kl = share_done, elbo, kl

    def round(self, record: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._last < LINE_EVERY and self._share < 1:
            return
        self._last = now
        left = (now - self._started) * (1 - self._share) / max(self._share, 1e-9)
        self.note(
            f"{self._share:4.0%}  epoch {record['epoch']:g}  bound {self._elbo:.3f}/word  KL {self._kl:.1f}  "
            f"dev perplexity {record['dev_perplexity']:.0f}  {left:.0f} s left"
        )

    def note(self, message: str) -> None:
        self._console.print(message, highlight=False)


def show_progress() -> BarProgress | LineProgress:
    console = Console(stderr=True)
    return BarProgress(console) if sys.stderr.isatty() else LineProgress(console)
