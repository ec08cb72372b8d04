"""Two simultaneous fits into one folder, and a clock that jumps."""

import os
import random
import time
from functools import partial
from pathlib import Path

from lab.faults import corpora
from lab.faults.commands import emptied, run
from lab.faults.kills import Fit, learned, uninterrupted
from lab.faults.tally import Fault, Tally
from varitext.loading import load_any


def measure(tally: Tally, times: int, folder: Path) -> None:
    corpus = corpora.write_documents(folder / "documents.jsonl")
    fit = uninterrupted(folder, corpus, corpora.DOCUMENT_OPTIONS)
    tally.run("two fits into one folder", times, partial(raced, fit, folder))
    tally.run("a clock that goes backwards", times, partial(fitted_with_jumps, fit, folder, -3600))
    tally.run("a clock that jumps ahead", times, partial(fitted_with_jumps, fit, folder, 30 * 86_400))


def raced(fit: Fit, folder: Path, number: int) -> str:
    """The second fit starts during the first, with another seed: in the end there is one complete model."""
    work = emptied(folder / "work")
    arguments = (*fit.arguments, "--out", work / "model")
    rival = os.fork()
    if rival == 0:
        outcome = run(*arguments, "--seed", 1)
        os._exit(outcome.code if outcome.code >= 0 else 99)
    time.sleep(random.Random(number).uniform(0, fit.seconds))
    first = run(*arguments)
    second = os.waitstatus_to_exitcode(os.waitpid(rival, 0)[1])
    if sorted((first.code, second)) != [0, 2]:
        raise Fault(f"exit codes {first.code} and {second}: {first.err[-300:]}")
    if left := [path.name for path in work.iterdir() if path.name != "model"]:
        raise Fault(f"left behind: {left}")
    if load_any(work / "model").seed != (0 if first.code == 0 else 1):
        raise Fault("the model is not that of the fit that succeeded")
    return "one succeeds, the other is refused in one line"


def fitted_with_jumps(fit: Fit, folder: Path, seconds: int, number: int) -> str:
    """`time.time` jumps at every call; the model must not depend on it."""
    work = emptied(folder / "work")
    outcome = run(*fit.arguments, "--out", work / "model", first=partial(let_jump, seconds, number))
    if outcome.code or learned(work / "model") != fit.reference:
        raise Fault(f"code {outcome.code}, {outcome.err[-300:]}")
    return "identical bytes"


def let_jump(seconds: int, number: int) -> None:
    now = [time.time() + 86_400 * number]

    def another() -> float:
        now[0] += seconds
        return now[0]

    time.time = another
    time.time_ns = lambda: int(another() * 1e9)
