"""Run `varitext` in a process that can be killed or limited; forked, because importing torch takes seconds."""

import fcntl
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn

import torch

import varitext.answers.ranker
import varitext.report  # noqa: F401
from lab.faults.corpora import texts
from lab.faults.tally import Fault
from varitext import DocumentModel
from varitext.cli import main

PATIENCE = 300.0  # seconds; longer is a hang
PIPE_SIZE = 1 << 20  # read only after the command has ended


class Outcome(NamedTuple):
    code: int  # below zero: the signal that ended it
    out: str
    err: str
    seconds: float


def run(*arguments: object, first: Callable[[], None] | None = None, kill_after: float | None = None) -> Outcome:
    """Run the command to its end, or for `kill_after` seconds; `first` runs in its process before it."""
    _load_all()
    started, (out, out_end), (err, err_end) = time.monotonic(), _pipe(), _pipe()
    process = os.fork()
    if process == 0:
        _become_the_command([str(argument) for argument in arguments], (out_end, err_end), first)
    for end in (out_end, err_end):
        os.close(end)
    code = _wait(process, started, kill_after)
    return Outcome(code, _text(out), _text(err), time.monotonic() - started)


@cache
def _load_all() -> None:
    """Load what a first fit loads, once for all forks, on one thread, because other threads are not forked."""
    torch.set_num_threads(1)
    DocumentModel(latent_dim=2, epochs=1, threads=1).fit(texts(20))


def refused(outcome: Outcome) -> str:
    """The one-line message of a command that refused bad input or a bad disk; otherwise a `Fault`."""
    lines = outcome.err.splitlines()
    if outcome.code != 2 or not lines or not lines[-1].startswith("varitext: ") or "Traceback" in outcome.err:
        raise Fault(f"code {outcome.code}, printed {outcome.err[-500:]!r}")
    return lines[-1]


def _become_the_command(arguments: list[str], streams: tuple[int, int], first: Callable[[], None] | None) -> NoReturn:
    code: object = 70
    try:
        for number, stream in enumerate(streams, start=1):
            os.dup2(stream, number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        sys.argv = ["varitext", *arguments]
        if first:
            first()
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code if isinstance(code, int) else 70)


def _wait(process: int, started: float, kill_after: float | None) -> int:
    """The exit code; the process is killed after `kill_after` seconds, or after the much longer limit for a hang."""
    end = started + (PATIENCE if kill_after is None else kill_after)
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            os.kill(process, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            if kill_after is None:
                raise Fault(f"still running after {PATIENCE:.0f} s")
            return code
        time.sleep(0.001)


def _pipe() -> tuple[int, int]:
    """Output goes through pipes: a limit on file sizes would also limit an output file."""
    ends = os.pipe()
    fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return ends


def _text(pipe: int) -> str:
    with os.fdopen(pipe, "rb") as stream:
        return stream.read().decode(errors="replace")


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
