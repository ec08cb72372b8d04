"""Files that are never half-written, and their fingerprints."""

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


def read_config(folder: Path, expected: str, newest: int, what: str) -> dict[str, Any]:
    """The config.json of a folder of ours: of the format expected, and of a version that this varitext reads."""
    config = read_json(folder / "config.json")
    if not isinstance(config, dict) or config.get("format") != expected:
        raise InputError(f"{folder / 'config.json'} is not that of a {what}")
    version = config.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{folder / 'config.json'} has no valid format_version")
    if version > newest:
        raise InputError(
            f"{folder} was written by a newer varitext (format {version}; this one reads up to {newest}): "
            "upgrade with pip install -U varitext"
        )
    return config


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_sha256(path: Path, expected: str, what: str) -> None:
    """Whether a file of a folder of ours, which is `what`, is there and as it was written."""
    if not path.is_file():
        raise InputError(f"{path} is missing: the {what} is incomplete")
    found = sha256_of(path)
    if found != expected:
        raise InputError(f"{path} is damaged or was changed (sha256 {found[:12]}..., expected {str(expected)[:12]}...)")


def check_can_write(path: Path) -> None:
    """Say so before an hour of work, not after, if nothing can be written at `path`."""
    folder = path.absolute().parent
    try:
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):  # the only sure way to know
            pass
    except NotADirectoryError:
        raise InputError(f"cannot write {path}: {folder} is not a folder") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {folder} does not let you ({error.strerror})") from None


def remove_unfinished(path: Path) -> None:
    """Remove what writers of `path`, or of files in it, left when they were killed; nobody may be writing there now."""
    name = re.escape(f".{path.name}{UNFINISHED}")
    beside = [entry for entry in path.absolute().parent.iterdir() if re.match(name, entry.name)]
    inside = [entry for entry in path.iterdir() if entry.name.startswith(".") and UNFINISHED in entry.name]
    for entry in beside + inside:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def refuse_to_overwrite(folder: Path) -> None:
    """A folder that exists is somebody's work."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already: name another folder, or remove it first")


# Inside


@contextmanager
def _folder_of(path: Path) -> Iterator[Path]:
    """The folder that `path` lies in, made if need be; if the block fails, what was made here is gone again."""
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
    """Errors of writing name the file that was asked for, not the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # as numpy tells it: "1000 requested and 0 written"
            raise OSError(errno.EIO, f"could not be written whole, is the disk full? ({error})", str(path)) from None
        error.filename, error.filename2 = str(path), None
        raise
    except SafetensorError as error:  # a full disk, as safetensors tells it: "I/O error: ... (os error 28)"
        code = re.search(r"os error (\d+)", str(error))
        number = int(code[1]) if code else errno.EIO
        raise OSError(number, os.strerror(number) if code else str(error), str(path)) from None


def _replace_folder(new: Path, path: Path) -> None:
    """Put `new` where `path` is; the old one is back if that fails, or in `new`'s place if it could be exchanged."""
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
    """Swap two folders in a single step, so that no kill can fall in between; False where the system has no way to."""
    current_folder, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    return (
        rename is not None and rename(current_folder, os.fsencode(one), current_folder, os.fsencode(other), swap) == 0
    )


def _permissions(most: int) -> int:
    """What the user's umask leaves of `most`; temporary files are made private."""
    mask = os.umask(0)
    os.umask(mask)
    return most & ~mask
