"""The folder of a run belongs to that run alone, from before its first byte until it ends, however it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from varitext.errors import InputError
from varitext.files import check_can_write, refuse_to_overwrite, remove_unfinished


@contextmanager
def claimed(out: Path) -> Iterator[None]:
    """Refuse a folder that another run writes to, and clear what a killed one left; folders made here go if empty.

    The claim is a lock on the folder itself: the system takes it back when the process ends, by kill -9 too.
    """
    check_can_write(out)
    if out.exists() and not out.is_dir():
        refuse_to_overwrite(out)
    made = [folder for folder in (out.absolute(), *out.absolute().parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _locked(out) as is_locked:
            if is_locked:
                remove_unfinished(out)
            yield
    finally:
        for folder in made:
            with suppress(OSError):  # no longer empty: the model is there, or a checkpoint
                folder.rmdir()


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Whether the folder is locked now: some systems and network disks have no locks on folders."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_locked = True
    except BlockingIOError:
        os.close(handle)
        raise InputError(f"another run is writing to {folder}: wait for it, or name another folder") from None
    except OSError:
        is_locked = False
    try:
        yield is_locked
    finally:
        os.close(handle)
