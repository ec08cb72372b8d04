"""kill -9 during `varitext fit` under torchrun with two processes: all of them, a worker, or the launcher."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from lab.faults import corpora
from lab.faults.commands import Outcome
from lab.faults.kills import Fit, killed_in_time, uninterrupted
from lab.faults.tally import Tally

KILLED = ("all processes", "a worker", "the launcher")


def measure(tally: Tally, times: int, folder: Path) -> None:
    corpus = corpora.write_documents(folder / "documents.jsonl")
    fit = uninterrupted(folder, corpus, corpora.DOCUMENT_OPTIONS, torchrun)
    for whom, part in enumerate(KILLED):
        share = len(range(whom, times, len(KILLED)))
        tally.run(f"documents, {part} at a random moment", share, partial(killed, fit, folder, whom))


def killed(fit: Fit, folder: Path, whom: int, number: int) -> str:
    return killed_in_time(fit, folder, np.random.default_rng([whom, number]), partial(torchrun, whom=whom))


def torchrun(*arguments: object, kill_after: float | None = None, whom: int = 0) -> Outcome:
    """The command in two processes; `whom` is killed: 0 all of them, 1 a worker, 2 the launcher."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--monitor-interval", "0.1"]
    typed = [sys.executable, *launcher, "-m", "varitext", *map(str, arguments)]
    started = time.monotonic()
    launched = subprocess.Popen(typed, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, err = launched.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        everyone = [launched.pid, *_workers(launched.pid)]
        chosen = (everyone, everyone[-1:], everyone[:1])[whom]
        for process in chosen:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _, err = launched.communicate()
        for process in everyone[1:]:
            _wait_for_end(process)
    code = 2 if "varitext: " in err and launched.returncode == 1 else launched.returncode
    lines = [line for line in err.splitlines() if line.startswith("varitext: ")]  # the rest is the launcher's own
    return Outcome(code, "", "\n".join(lines), time.monotonic() - started)


def _workers(launcher: int) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()]
    except OSError:
        return []


def _wait_for_end(process: int, patience: float = 120.0) -> None:
    """Wait for orphaned workers to end; they are not our children, so they are polled."""
    end = time.monotonic() + patience
    while Path(f"/proc/{process}").exists() and time.monotonic() < end:
        time.sleep(0.02)
