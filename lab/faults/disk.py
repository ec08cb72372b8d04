"""Full and read-only disks, for every command that writes: one line, exit code 2, nothing half-written.

A disk is full in two ways: files may not grow beyond a limit (`RLIMIT_FSIZE`), from nothing to just below what the
command writes; or a small file system in memory is almost full. The small and the read-only file system
need the right to mount, in a separate namespace; without it they are skipped.
"""

import ctypes
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lab.faults import corpora
from lab.faults.commands import Outcome, emptied, refused, run
from lab.faults.tally import Fault, Tally

SHARES = (0.0, 0.1, 0.5, 0.9, 0.999)  # of the largest file that the command writes
NEW_NAME_SPACE, READ_ONLY, REMOUNT, BIND, PRIVATE, DETACH = 0x20000, 1, 32, 4096, 0x44000, 2  # of Linux


class Command(NamedTuple):
    """A command that writes, without its target."""

    name: str
    arguments: tuple[object, ...]
    option: str
    target: str


def measure(tally: Tally, times: int, folder: Path) -> None:
    mounts = can_mount()
    for command in commands(folder):
        largest = _largest_file(command, folder)
        limits = sorted({int(share * largest) for share in SHARES})
        tally.run(f"{command.name}, files limited", min(len(limits), times), partial(limited, command, folder, limits))
        if mounts:
            sizes = sorted({int(share * largest) // 4096 * 4096 for share in SHARES})
            tally.run(f"{command.name}, full disk", min(len(sizes), times), partial(full, command, folder, sizes))
            tally.run(f"{command.name}, read-only disk", 1, partial(read_only, command, folder))


def commands(folder: Path) -> list[Command]:
    documents, questions = folder / "documents.jsonl", folder / "questions.jsonl"
    fit_documents = ("fit", corpora.write_documents(documents), *corpora.DOCUMENT_OPTIONS)
    fit_answers = ("fit", corpora.write_questions(questions), *corpora.ANSWER_OPTIONS)
    model, ranker = folder / "model", folder / "ranker"
    for arguments, out in ((fit_documents, model), (fit_answers, ranker)):
        if (done := run(*arguments, "--out", out)).code:
            raise Fault(f"the undisturbed fit fails: {done.err}")
    show = ("--corpus", documents, "--part", "train", "--threads", 1)
    evaluate = ("evaluate", ranker, questions, "--part", "train", "--threads", 1)
    transform = ("transform", model, documents, "--part", "train", "--threads", 1)
    return [
        Command("fit, documents", fit_documents, "--out", "model"),
        Command("fit, answers", fit_answers, "--out", "model"),
        Command("prepare", ("prepare", documents), "--out", "shards"),
        *(Command(f"transform, {kind}", transform, "--out", f"vectors.{kind}") for kind in ("npy", "csv", "parquet")),
        Command("report", ("report", model, *show), "--out", "report.html"),
        Command("figures", ("figures", model, *show), "--out", "figures"),
        Command("evaluate, TREC run", evaluate, "--run", "run.txt"),
        Command("evaluate, TREC labels", evaluate, "--qrels", "labels.txt"),
    ]


# The disks


def limited(command: Command, folder: Path, limits: list[int], number: int) -> str:
    work = emptied(folder / "work")
    size = limits[number]  # Python ignores the signal that comes with it
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))
    return left(_run(command, work, limit), work)


def full(command: Command, folder: Path, sizes: list[int], number: int) -> str:
    work = emptied(folder / "work")
    with mounted("tmpfs", work, "tmpfs", 0, f"size={max(sizes[number], 4096)}"):
        return left(_run(command, work), work)


def read_only(command: Command, folder: Path, number: int) -> str:
    work = emptied(folder / "work")
    with mounted(str(work), work, "", BIND, ""):
        _mount(str(work), work, "", BIND | REMOUNT | READ_ONLY, "")
        return left(_run(command, work), work)


def left(outcome: Outcome, work: Path) -> str:
    """Check for a one-line refusal with nothing left behind; a disk that was large enough is not a fault."""
    if outcome.code == 0:
        return "written whole"
    refused(outcome)
    if found := sorted(str(path.relative_to(work)) for path in work.rglob("*")):
        raise Fault(f"left behind: {found}")
    return "refused in one line, nothing left"


def can_mount() -> bool:
    """Make further mounts of this process visible only to itself and its children; False if that is refused."""
    try:
        if ctypes.CDLL(None).unshare(NEW_NAME_SPACE):
            return False
        _mount("none", Path("/"), "", PRIVATE, "")
    except (AttributeError, OSError):
        return False
    return True


@contextmanager
def mounted(source: str, place: Path, kind: str, flags: int, options: str) -> Iterator[None]:
    _mount(source, place, kind, flags, options)
    try:
        yield
    finally:
        ctypes.CDLL(None).umount2(os.fsencode(place), DETACH)


def _run(command: Command, place: Path, first: Callable[[], None] | None = None) -> Outcome:
    return run(*command.arguments, command.option, place / command.target, first=first)


def _mount(source: str, place: Path, kind: str, flags: int, options: str) -> None:
    names = (source.encode(), os.fsencode(place), kind.encode() or None, flags, options.encode() or None)
    if ctypes.CDLL(None, use_errno=True).mount(*names):
        raise OSError(ctypes.get_errno(), f"{source} cannot be mounted at {place}")


def _largest_file(command: Command, folder: Path) -> int:
    work = emptied(folder / "work")
    if (outcome := run(*command.arguments, command.option, work / command.target)).code:
        raise Fault(f"{command.name} fails on a good disk: {outcome.err}")
    return max(path.stat().st_size for path in work.rglob("*") if path.is_file())
