"""Files that are never half-written, and their hashes."""

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from varitext.errors import InputError

UNFINISHED = ".unfinished-"  # in the names of temporary files and folders, which only a kill leaves behind


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place only if the block succeeds."""
    with _errors_name(path), _folder_of(path) as folder:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}{UNFINISHED}", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(_permissions(0o666))
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it takes `path`'s place only if the block succeeds."""
    with _errors_name(path), _folder_of(path) as folder:
        temporary = Path(tempfile.mkdtemp(dir=folder, prefix=f".{path.name}{UNFINISHED}"))
        try:
            yield temporary
            for entry in temporary.rglob("*"):
                entry.chmod(_permissions(0o777 if entry.is_dir() else 0o666))
            temporary.chmod(_permissions(0o777))
            _replace_folder(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_text(path: Path) -> str:
    """The file's text, or an `InputError` that names the file and the first byte that is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}); convert it first") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not valid JSON ({error})") from None


def read_config(folder: Path, expected: str, version: int, what: str) -> dict[str, Any]:
    """The config.json of a model or shard folder, which must have the expected format and version."""
    config = read_json(folder / "config.json")
    if not isinstance(config, dict) or config.get("format") != expected:
        raise InputError(f"{folder / 'config.json'} does not belong to a {what}")
    found = config.get("format_version")
    if found != version or isinstance(found, bool):
        raise InputError(
            f"{folder}: format version {found}, but this varitext reads version {version}. "
            "Install the varitext version that wrote it, or write it again."
        )
    return config


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_sha256(path: Path, expected: str, what: str) -> None:
    """Refuse a file of a folder (`what`) that is missing or was changed."""
    if not path.is_file():
        raise InputError(f"{path} is missing: the {what} is incomplete")
    found = sha256_of(path)
    if found != expected:
        raise InputError(f"{path} is damaged or was changed (sha256 {found[:12]}..., expected {str(expected)[:12]}...)")


def check_can_write(path: Path) -> None:
    """Refuse, before an hour of work, a path at which nothing can be written."""
    folder = path.absolute().parent
    try:
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):  # the only reliable check
            pass
    except NotADirectoryError:
        raise InputError(f"cannot write {path}: {folder} is not a folder") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: no permission to write in {folder} ({error.strerror})") from None


def remove_unfinished(path: Path) -> None:
    """Remove temporary files that killed writers left in or beside `path`; nothing may be writing there now."""
    name = re.escape(f".{path.name}{UNFINISHED}")
    beside = [entry for entry in path.absolute().parent.iterdir() if re.match(name, entry.name)]
    inside = [entry for entry in path.iterdir() if entry.name.startswith(".") and UNFINISHED in entry.name]
    for entry in beside + inside:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def refuse_to_overwrite(folder: Path, hint: str = "Name another folder, or remove it first.") -> None:
    """Refuse a folder that exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already. {hint}")


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Lock the folder, or refuse it if another process has and `wait` is False. The system always releases it.

    Yields whether it is locked: some systems and network disks have no locks on folders.
    """
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
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


# Inside


@contextmanager
def _folder_of(path: Path) -> Iterator[Path]:
    """The folder of `path`, created if needed; if the block fails, folders that were created are removed."""
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path.parent
    except BaseException:
        for folder in missing:
            with suppress(OSError):  # not made, or no longer empty
                folder.rmdir()
        raise


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Errors name the file that was asked for, not the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # from numpy: "1000 requested and 0 written"
            raise OSError(
                errno.EIO, f"could not be written completely; is the disk full? ({error})", str(path)
            ) from None
        error.filename, error.filename2 = str(path), None
        raise
    except SafetensorError as error:  # a full disk: "I/O error: ... (os error 28)"
        code = re.search(r"(?:os error|code:) (\d+)", str(error))
        number = int(code[1]) if code else errno.EIO
        raise OSError(number, os.strerror(number) if code else str(error), str(path)) from None


def _replace_folder(new: Path, path: Path) -> None:
    """Replace `path` by `new`; if that fails, `path` is as it was."""
    if not path.exists():
        return os.replace(new, path)
    if _exchange(new, path):
        return
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old."))
    try:
        os.replace(path, aside / path.name)
        try:
            os.replace(new, path)
        except BaseException:
            os.replace(aside / path.name, path)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically, so that a kill cannot fall in between; False if the system cannot."""
    current_folder, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    return (
        rename is not None and rename(current_folder, os.fsencode(one), current_folder, os.fsencode(other), swap) == 0
    )


def _permissions(most: int) -> int:
    """`most` without the bits of the user's umask; temporary files are created private."""
    mask = os.umask(0)
    os.umask(mask)
    return most & ~mask
