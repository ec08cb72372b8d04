"""Files that are never half-written: what a failure leaves, and what somebody sees who reads at the same time."""

import errno
import hashlib
import json
import os
import sys
import threading
from pathlib import Path

import pytest
from refusal import refused
from safetensors import SafetensorError

from varitext import files
from varitext.errors import InputError
from varitext.files import UNFINISHED, atomic_file, atomic_folder, read_json, read_text, write_json, write_text


class Stop(BaseException):
    """Like Ctrl-C: not an ordinary exception."""


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_file_appears_whole_with_its_folders_and_the_usual_permissions(tmp_path, usual_umask):
    path = tmp_path / "new" / "folder" / "vectors.npy"
    with atomic_file(path) as temporary:
        assert temporary.parent == path.parent and temporary.suffix == ".npy"
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        write_text(tmp_path / "private.txt", "mine")
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "file").touch()
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "private.txt", tmp_path / "folder" / "file")]
    assert modes == [0o600, 0o600] and (tmp_path / "folder").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, Stop])
def test_a_failure_leaves_the_earlier_file_and_nothing_new(failure, tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("earlier")
    with pytest.raises(failure), atomic_file(path) as temporary:
        temporary.write_text("half")
        raise failure
    assert path.read_text() == "earlier" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(failure), atomic_file(tmp_path / "new" / "folder" / "file.txt"):
        raise failure
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, Stop])
def test_a_failure_leaves_the_earlier_folder_and_nothing_new(failure, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_text("earlier")
    for path in (folder, tmp_path / "new" / "model"):
        with pytest.raises(failure), atomic_folder(path) as temporary:
            (temporary / "weights").write_text("half")
            raise failure
    assert list(tmp_path.iterdir()) == [folder] and (folder / "weights").read_text() == "earlier"


def test_folders_that_hold_something_by_then_are_kept(tmp_path):
    with pytest.raises(ValueError), atomic_file(tmp_path / "new" / "file.txt"):
        (tmp_path / "new" / "of another").write_text("precious")
        raise ValueError
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["of another"]


def test_a_folder_takes_the_place_of_the_earlier_one(tmp_path, usual_umask):
    folder = tmp_path / "model"
    for content in ("earlier", "later"):
        with atomic_folder(folder) as temporary:
            (temporary / content).write_text(content)
            (temporary / content).chmod(0o600)  # as safetensors makes its files
    assert [path.name for path in folder.iterdir()] == ["later"] and list(tmp_path.iterdir()) == [folder]
    assert (folder.stat().st_mode & 0o777, (folder / "later").stat().st_mode & 0o777) == (0o755, 0o644)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges folders in a single step")
def test_no_moment_without_a_folder_while_it_is_replaced(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("moved in two steps"))
    with atomic_folder(folder) as temporary:
        (temporary / "later").touch()
    assert [path.name for path in folder.iterdir()] == ["later"] and list(tmp_path.iterdir()) == [folder]


def test_what_a_kill_left_is_removed_and_nothing_else(tmp_path):
    folder, kept = (
        tmp_path / "model",
        {"model", ".model.unfinished", ".models.unfinished-1", ".model.backup", "weights"},
    )
    folder.mkdir()
    for name in kept - {"model", "weights"}:
        (tmp_path / name).touch()
    (folder / "weights").touch()
    for killed in (atomic_folder(folder), atomic_file(folder / "checkpoint")):
        temporary = killed.__enter__()  # and never left, as after kill -9
        assert temporary.exists() and UNFINISHED in temporary.name
    files.remove_unfinished(folder)
    assert {path.name for path in tmp_path.rglob("*")} == kept | {"model", "weights"}


def test_the_earlier_folder_is_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_text("earlier")
    replace = os.replace

    def replace_but_not_by_the_new_one(source: Path, target: Path) -> None:
        if Path(target) == folder and (Path(source) / "new").exists():
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_but_not_by_the_new_one)
    monkeypatch.setattr("varitext.files._exchange", lambda one, other: False)  # as where the system cannot
    with pytest.raises(OSError, match="Input/output error"), atomic_folder(folder) as temporary:
        (temporary / "new").touch()
    assert list(tmp_path.iterdir()) == [folder] and (folder / "weights").read_text() == "earlier"


@pytest.mark.parametrize(
    "error, number, words",
    [
        (OSError(errno.ENOSPC, "No space left on device", "/a/temporary/name"), errno.ENOSPC, "No space left"),
        (OSError("1000 requested and 0 written"), errno.EIO, "is the disk full"),  # numpy's
        (SafetensorError("I/O error: No space left on device (os error 28)"), errno.ENOSPC, "No space left"),
        (SafetensorError("something else"), errno.EIO, "something else"),
    ],
)
@pytest.mark.parametrize("atomic", [atomic_file, atomic_folder])
def test_errors_name_what_was_asked_for(atomic, error, number, words, tmp_path):
    with pytest.raises(OSError) as raised, atomic(tmp_path / "wanted"):
        raise error
    assert (raised.value.errno, raised.value.filename) == (number, str(tmp_path / "wanted"))
    assert words in raised.value.strerror


def test_a_folder_that_cannot_be_made_is_an_error_with_a_name(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as raised:
        write_text(tmp_path / "file" / "below.txt", "text")
    assert raised.value.filename == str(tmp_path / "file" / "below.txt")


def test_readers_never_see_half_a_file(tmp_path):
    path = tmp_path / "numbers.json"
    versions = [[number] * 20_000 for number in range(30)]
    write_json(path, versions[0])
    seen, done = [], threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(json.loads(path.read_text()))  # half a file is not JSON

    reader = threading.Thread(target=read)
    reader.start()
    for version in versions:
        write_json(path, version)
    done.set()
    reader.join()
    assert seen and all(values == [values[0]] * 20_000 for values in seen)
    assert list(tmp_path.iterdir()) == [path]


def test_writers_at_the_same_time_leave_one_whole_file(tmp_path):
    path = tmp_path / "file.txt"
    texts = [str(number) * 100_000 for number in range(8)]
    writers = [threading.Thread(target=write_text, args=(path, text)) for text in texts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_text() in texts and list(tmp_path.iterdir()) == [path]


def test_text_and_json_come_back(tmp_path):
    write_text(tmp_path / "text.txt", "naïve\n")
    assert read_text(tmp_path / "text.txt") == "naïve\n"
    write_json(tmp_path / "value.json", {"wörd": [1, None, 0.1]})
    assert read_json(tmp_path / "value.json") == {"wörd": [1, None, 0.1]}
    assert "wörd" in (tmp_path / "value.json").read_text(encoding="utf-8")


def test_what_cannot_be_read_is_bad_input_that_names_the_file(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"na\xefve")
    refused(lambda: read_text(tmp_path / "latin.txt"), "latin.txt is not UTF-8 text (byte 2)")
    refused(lambda: read_text(tmp_path / "missing.txt"), "cannot read ", "missing.txt: No such file")
    for content in ('{"unfinished', "[" * 100_000, "1" * 5000):
        (tmp_path / "bad.json").write_text(content)
        refused(lambda: read_json(tmp_path / "bad.json"), "bad.json is not valid JSON")
    (tmp_path / "bad.json").write_bytes(b"\xff")
    refused(lambda: read_json(tmp_path / "bad.json"), "not UTF-8")


def test_a_fingerprint_is_that_of_the_content(tmp_path):
    content = os.urandom(3_000_000)  # more than one block
    (tmp_path / "file").write_bytes(content)
    assert files.sha256_of(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_places_that_cannot_be_written_are_known_before(tmp_path):
    files.check_can_write(tmp_path / "new" / "folder" / "file.txt")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    refused(lambda: files.check_can_write(tmp_path / "file" / "below.txt"), "file is not a folder")
    with pytest.raises(InputError, match=r"cannot write /proc/nowhere/file\.txt: no permission to write in /proc"):
        files.check_can_write(Path("/proc/nowhere/file.txt"))
    refused(lambda: files.check_can_write(tmp_path / ("x" * 300) / "file.txt"), "name too long")


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is root's to write")
def test_a_folder_of_somebody_else_is_known_before(tmp_path):
    tmp_path.chmod(0o555)
    refused(lambda: files.check_can_write(tmp_path / "file.txt"), "no permission")
