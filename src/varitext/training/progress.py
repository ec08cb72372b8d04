"""Progress of training on standard error: a live bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from varitext.errors import printable

LINE_EVERY = 5.0  # seconds between plain lines


class BarProgress:
    """A live bar with the bound, KL, held-out metric and time left; below it, the number of active units."""

    def __init__(self, has_latent: bool) -> None:
        self._has_latent = has_latent
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=14),  # leaves room for the numbers on a terminal of 80 columns
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(file=getattr(sys.stderr, "unescaped", sys.stderr), stderr=True),
        )
        self._dev = self._active = ""
        self._task = self._bar.add_task("counting", total=1.0, numbers="")

    def __enter__(self) -> "BarProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, share_done: float, elbo: float, kl: float) -> None:
        numbers = f"bound {elbo:.2f} KL {_nats(kl)}{self._dev}{self._active}"
        self._bar.update(self._task, description="fitting", completed=share_done, numbers=numbers)

    def round(self, record: dict[str, Any]) -> None:
        self._dev = f" dev {_headline(record)[1]:.4g}"
        self._active = f"\n{_active_units(record)}" if self._has_latent else ""

    def note(self, message: str) -> None:
        self._bar.console.print(printable(message), markup=False, highlight=False)


class LineProgress:
    """The same information as plain lines, at most one every few seconds."""

    def __init__(self, unit: str, has_latent: bool) -> None:
        self._unit, self._has_latent = unit, has_latent
        self._share, self._elbo, self._kl = 0.0, 0.0, 0.0
        self._first_share = self._last = 0.0
        self._started: float | None = None
        self._unprinted: dict[str, Any] | None = None

    def __enter__(self) -> "LineProgress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._unprinted and self._share >= 1:
            self._print(self._unprinted)

    def step(self, share_done: float, elbo: float, kl: float) -> None:
        if self._started is None:
            self._started = self._last = time.monotonic()
            self._first_share = share_done  # above zero if the run continues from a checkpoint
        self._share, self._elbo, self._kl = share_done, elbo, kl

    def round(self, record: dict[str, Any]) -> None:
        if self._started is None:  # the score before the first step
            return
        if time.monotonic() - self._last < LINE_EVERY and self._share < 1:
            self._unprinted = record
        else:
            self._print(record)

    def _print(self, record: dict[str, Any]) -> None:
        assert self._started is not None  # only records after the first step are printed
        now, self._unprinted = time.monotonic(), None
        self._last = now
        name, value = _headline(record)
        active = f"  {_active_units(record)}" if self._has_latent else ""
        gained = self._share - self._first_share
        left = f"  {(now - self._started) * (1 - self._share) / gained:.0f} s left" if gained > 0 else ""
        self.note(
            f"{self._share:4.0%}  epoch {record['epoch']:g}  bound {self._elbo:.3f}/{self._unit}  "
            f"KL {_nats(self._kl)}  {name} {value:.4g}{active}{left}"
        )

    def note(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)


def show_progress(unit: str = "word", has_latent: bool = True) -> BarProgress | LineProgress:
    """A bar or plain lines; the bound is shown per `unit`: word of a document, or pair of question and answer."""
    is_live = sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return BarProgress(has_latent) if is_live else LineProgress(unit, has_latent)


def _headline(record: dict[str, Any]) -> tuple[str, float]:
    """The first held-out metric of a round, with its readable name: dev perplexity, dev map."""
    name = next(name for name in record if name.startswith("dev_"))
    return name.replace("_", " "), record[name]


def _active_units(record: dict[str, Any]) -> str:
    """The number of active units; for answers also the posterior-prior gap in log likelihood."""
    units = record.get("active_units", 0)
    active = f"{units} active units" if units else "posterior collapse"
    if "posterior_prior_gap" not in record:
        return active
    return f"{active}, gap {round(record['posterior_prior_gap'], 3) + 0.0:.3f}"  # never -0.000


def _nats(kl: float) -> str:
    return f"{kl:.1f}" if kl >= 10 else f"{kl:.2f}"
