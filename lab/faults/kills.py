"""kill -9 during `varitext fit`: a loadable folder or a clean --resume to identical bytes, and nothing left behind.

The moment is random over the whole run, or before each file operation in turn, since the harmful moments are too short
to be hit by chance.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.faults import corpora
from lab.faults.commands import Outcome, emptied, refused, run
from lab.faults.tally import Fault, Tally
from varitext.errors import InputError
from varitext.files import read_json, sha256_of
from varitext.loading import load_any
from varitext.models.answers.pretrained import is_installed
from varitext.store import CHECKPOINT
from varitext.training import trainer

FILE_OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}
ENDED = "ended before the kill"


class Fit(NamedTuple):
    """A fit to kill, and its result if it is not killed."""

    arguments: tuple[object, ...]
    reference: dict[str, Any]
    seconds: float


def measure(tally: Tally, times: int, folder: Path) -> None:
    """A quarter each: documents or answers, at a random moment or before a file operation; then MiniLM's frozen
    encoder, whose encoding takes longer than training the ranker."""
    documents = uninterrupted(folder, corpora.write_documents(folder / "documents.jsonl"), corpora.DOCUMENT_OPTIONS)
    answers = uninterrupted(folder, corpora.write_questions(folder / "questions.jsonl"), corpora.ANSWER_OPTIONS)
    for part, fit in (("documents", documents), ("answers", answers)):
        tally.run(f"{part}, at a random moment", times // 4, partial(killed_at_random, fit, folder))
        operations = count_operations(fit, folder)
        tried = np.unique(np.linspace(0, operations - 1, min(times // 4, operations)).astype(int))
        kill = partial(killed_at_operation, fit, folder, tried)
        tally.run(f"{part}, before one of its {operations} operations on files", len(tried), kill)
    if is_installed():
        questions = corpora.write_questions(folder / "long.jsonl", 150, more_words=40)
        minilm = uninterrupted(folder, questions, corpora.MINILM_OPTIONS)
        tally.run("minilm, at a random moment", times // 4, partial(killed_at_random, minilm, folder))


def uninterrupted(folder: Path, corpus: Path, options: tuple[str, ...], command: Callable[..., Outcome] = run) -> Fit:
    arguments, out = ("fit", corpus, *options), folder / "reference" / "model"
    outcome = command(*arguments, "--out", out)
    if outcome.code:
        raise Fault(f"the undisturbed run fails: {outcome.err}")
    fit = Fit(arguments, learned(out), outcome.seconds)
    shutil.rmtree(out.parent)
    return fit


def learned(folder: Path) -> dict[str, Any]:
    """Everything in a model folder except times."""
    config = read_json(folder / "config.json")
    config["learned"]["fit_seconds"] = config["sha256"]["metrics.jsonl"] = config["config_sha256"] = None
    metrics = [json.loads(line) | {"seconds": None} for line in (folder / "metrics.jsonl").read_text().splitlines()]
    files = {
        path.name: sha256_of(path) for path in folder.iterdir() if path.name not in ("config.json", "metrics.jsonl")
    }
    return {"config": config, "metrics": metrics, "files": files}


# The moment


def killed_at_random(fit: Fit, folder: Path, number: int) -> str:
    return killed_in_time(fit, folder, np.random.default_rng(number), run)


def killed_in_time(fit: Fit, folder: Path, generator: np.random.Generator, command: Callable[..., Outcome]) -> str:
    """Kill at a moment of the run; if it had already ended, at an earlier one."""
    seconds, found = fit.seconds, ENDED
    while found == ENDED:
        moment = seconds * generator.random()
        found = survived(fit, folder, partial(command, kill_after=moment), command)
        seconds = moment
    return found


def killed_at_operation(fit: Fit, folder: Path, tried: np.ndarray, number: int) -> str:
    return survived(fit, folder, partial(run, first=partial(die_before, int(tried[number]), folder)))


def die_before(operation: int, folder: Path) -> None:
    """Kill this process before that file operation below `folder`, counted from 0, with a checkpoint of every round."""
    seen, trainer.WRITE_EVERY = 0, 0.0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if _writes(event, arguments) and str(arguments[0]).startswith(str(folder)):
            if seen == operation:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    sys.addaudithook(count)


def count_operations(fit: Fit, folder: Path) -> int:
    """The number of file operations of the whole run, by bisection."""
    low, high = 0, 1
    while _is_killed(fit, folder, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_killed(fit, folder, middle) else (low, middle)
    return high


def _is_killed(fit: Fit, folder: Path, operation: int) -> bool:
    work = emptied(folder / "work")
    return run(*fit.arguments, "--out", work / "model", first=partial(die_before, operation, folder)).code < 0


def _writes(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether an audit event is a file operation that changes the disk."""
    if event == "open":
        return isinstance(arguments[2], int) and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
    return event in FILE_OPERATIONS


# What is left


def survived(fit: Fit, folder: Path, kill: Callable[..., Outcome], command: Callable[..., Outcome] = run) -> str:
    """Fit and kill, inspect what is left, resume; the outcome in words, or a `Fault`."""
    work = emptied(folder / "work")
    out = work / "model"
    if (outcome := kill(*fit.arguments, "--out", out)).code == 0:
        found = ENDED
    elif outcome.code > 0 and "Traceback" in outcome.err:
        raise Fault(f"a traceback: {outcome.err[-500:]}")
    else:
        found = _state(out)
    resumed = command(*fit.arguments, "--out", out, "--resume")
    if resumed.code and "nothing to resume" not in refused(resumed):
        raise Fault(f"{found}, and --resume is refused: {resumed.err}")
    if learned(out) != fit.reference:
        raise Fault(f"{found}, and other bytes after --resume")
    if left := [path.name for path in work.iterdir() if path != out]:
        raise Fault(f"{found}, and left behind: {left}")
    return found


def _state(out: Path) -> str:
    """The state that a killed run left, in words."""
    if not out.exists() or not any(path for path in out.iterdir() if not path.name.startswith(".")):
        return "nothing saved yet, fitted again to identical bytes"
    try:
        load_any(out)
    except InputError as error:
        if "holds an unfinished run" not in str(error):
            raise Fault(f"a folder that cannot be loaded: {error}") from None
        if not (out / CHECKPOINT).exists():
            return "what the encoder had read, resumed to identical bytes"
        return "a checkpoint, resumed to identical bytes"
    if (out / CHECKPOINT).exists():
        return "a loadable model with its checkpoint, resumed to identical bytes"
    return "a complete, loadable model"
