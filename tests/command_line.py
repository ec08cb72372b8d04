"""The command line, as tests type it."""

import contextlib
import functools
import hashlib
import io
import os
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn
from unittest import mock

import pytest
import torch
import typer

from varitext.cli import main

COMMAND = Path(sys.executable).with_name("varitext")
MODEL_FILES = ["config.json", "metrics.jsonl", "vocabulary.txt", "weights.safetensors"]
TOPIC_FILES = ["cache.safetensors", "topics.json", "topics.safetensors"]  # of models of documents, besides


command_of = functools.cache(typer.main.get_command)  # of an app: as long as the shortest commands take


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def varitext(*arguments: object) -> Outcome:
    """Run the command in this process: starting Python and importing torch anew takes seconds."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    typed = ["varitext", *map(str, arguments)]
    with (
        mock.patch.object(sys, "argv", typed),
        mock.patch.object(typer.main, "get_command", command_of),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Outcome(ended.value.code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def fit(corpus: Path, out: Path, *options: object) -> str:
    """What a fit that must succeed says on standard error."""
    outcome = varitext("fit", corpus, "--out", out, *options)
    assert (outcome.code, outcome.out) == (0, ""), outcome
    return outcome.err


def process(*arguments: object, **options: object) -> subprocess.Popen:
    """Run the real command."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([COMMAND, *map(str, arguments)], **pipes)


def forked(*arguments: object, run: Callable[[], None] = main, **options: object) -> subprocess.Popen:
    """Run the command in a process of its own that starts as a copy of this one, with torch and all else imported.

    It can be stopped, killed and talked to like any other; how Python starts is for `process` to test.
    """

    def instead_of_a_program() -> NoReturn:
        _leave_open_files()
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering) for number, buffering in ((1, -1), (2, 1)))
        sys.argv = ["varitext", *map(str, arguments)]
        torch.set_num_threads(1)  # the threads of the other process are not here
        os._exit(_exit_code(run))

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    # signals stay as Python has them: a program's own Python would ignore a closed pipe again
    return subprocess.Popen([COMMAND], preexec_fn=instead_of_a_program, restore_signals=False, **pipes)


def _leave_open_files() -> None:
    """Those of the tests lead nowhere from here; to close them would let others have their numbers.

    One is the pipe from which `Popen` hears that a program has started, when it is closed.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/dev/fd")):
        if number > 2 and number != nowhere:
            with contextlib.suppress(OSError):  # that of the list itself is closed by now
                os.fstat(number)
                os.dup2(nowhere, number, inheritable=False)


def _exit_code(run: Callable[[], None]) -> int:
    """What Python would exit with; nothing of the tests may go on in the copy."""
    code = 0
    try:
        run()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    return code


def contents(folder: Path) -> dict[str, str]:
    """Every file and folder below, with a fingerprint."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def refused(folder: Path, *arguments: object) -> str:
    """The one line that the command has for bad input; nothing in `folder` may change."""
    before = contents(folder)
    outcome = varitext(*arguments)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("varitext: ") and outcome.err.endswith("\n") and outcome.err.count("\n") == 1
    assert contents(folder) == before
    return outcome.err


@contextlib.contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """To the code this is a disk that fills up: writing fails half-way."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
