"""Where files are: the user's folder, VARITEXT_DATA, the cache. `downloads` fills the cache from elsewhere.

A file that has a known SHA-256 is checked before it is used, and refused by name if it is another. The SHA-256 is that
of the content: it does not matter whether a file is stored compressed.
"""

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from varitext.errors import InputError
from varitext.files import atomic_file


class Unavailable(InputError):
    """A source that cannot be used now; the next in the order may do."""


@dataclass(frozen=True)
class SourceFile:
    """A file that a corpus was read from; the SHA-256 is of its content, uncompressed."""

    name: str
    sha256: str


@dataclass(frozen=True)
class LocalFile:
    """A source file that is on this machine."""

    path: Path
    name: str


@dataclass(frozen=True)
class KnownFile:
    """A file by its name in the data folder, and the SHA-256 that its content must have."""

    name: str
    sha256: str


def cache_folder() -> Path:
    if folder := os.environ.get("VARITEXT_CACHE"):
        return Path(folder)
    import platformdirs

    return Path(platformdirs.user_cache_dir("varitext"))


def folders(data_dir: Path | str | None) -> list[Path]:
    """The folders to look in, in order."""
    chosen = []
    for origin, folder in (("the data folder", data_dir), ("VARITEXT_DATA", os.environ.get("VARITEXT_DATA"))):
        if not folder:
            continue
        if not Path(folder).is_dir():
            raise InputError(f"{origin} {folder} is not a folder")
        chosen.append(Path(folder))
    return [*chosen, cache_folder()]


def find(name: str, data_dir: Path | str | None) -> LocalFile | None:
    """The first of the folders' files of that name, as it is or compressed."""
    for folder in folders(data_dir):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return LocalFile(path, name)
    return None


def find_all(names: list[str], data_dir: Path | str | None) -> list[LocalFile]:
    """All of the files, or none if one is missing."""
    found = [find(name, data_dir) for name in names]
    return [] if None in found else [file for file in found if file]


@contextmanager
def open_content(path: Path) -> Iterator[io.BufferedIOBase]:
    """A file to read from, uncompressed if its name ends in .gz; whatever goes wrong is an `InputError`."""
    try:
        with path.open("rb") as stored:
            yield gzip.GzipFile(fileobj=stored) if path.suffix == ".gz" else stored
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is cut short or damaged ({error})") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def read_bytes(path: Path) -> bytes:
    with open_content(path) as stream:
        return stream.read()


def content_sha256(path: Path) -> str:
    with open_content(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_checked(file: LocalFile, sha256: str) -> bytes:
    """The content of a file that must have this SHA-256."""
    content = read_bytes(file.path)
    actual = hashlib.sha256(content).hexdigest()
    if actual != sha256:
        raise InputError(
            f"{file.path} is not the file expected: its content has SHA-256 {actual[:12]}..., "
            f"not {sha256[:12]}...; replace or remove it"
        )
    return content


def combined_sha256(files: Sequence[SourceFile]) -> str:
    lines = sorted(f"{file.name} {file.sha256}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source_file(name: str, content: bytes) -> SourceFile:
    return SourceFile(name, hashlib.sha256(content).hexdigest())


def store(name: str, content: bytes) -> LocalFile:
    """Keep a file in the cache."""
    path = cache_folder() / name
    try:
        with atomic_file(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise InputError(
            f"cannot keep {path}: {error.strerror or error}; VARITEXT_CACHE can name another folder"
        ) from None
    return LocalFile(path, name)


def not_found(name: str, needed: str, data_dir: Path | str | None, reasons: list[Unavailable]) -> InputError:
    """What to say when every source has failed."""
    looked = ", ".join(str(folder) for folder in folders(data_dir))
    tried = "; ".join(map(str, reasons))
    return InputError(
        f"{name} is not here: looked in {looked}; {tried}. "
        f"Put {needed} (or .gz) into a folder and name that with --data-dir or VARITEXT_DATA"
    )
