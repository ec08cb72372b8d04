"""States of sentences on disk, beside an index, so that the pretrained encoder does not read a sentence twice.

A SQLite file has one row per sentence: its key is the SHA-256 of the encoder's weights and the words, its value the
states in 16 bits with a checksum. Rows are read when they are requested, so memory does not grow. The file is a cache:
a damaged row, or the whole file, is computed again, and a process that may not write does without it.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np

NAME = "states.sqlite"
MAX_BYTES = 1_000_000_000  # some 50,000 sentences; beyond it, the oldest tenth is dropped
AT_ONCE = 500  # keys in a query
WAIT_SECONDS = 2.0  # for another process that writes
CHECKSUM_BYTES = 4

Words = tuple[str, ...]


class StateStore:
    """States of sentences in a file. `encoder` is the SHA-256 of its weights, `width` that of its states."""

    def __init__(self, path: Path, encoder: str, width: int):
        self._path, self._encoder, self._width = path, encoder, width

    def get(self, sentences: Sequence[Words]) -> dict[Words, np.ndarray]:
        """The states, [T, H], of those sentences that are there."""
        keys = {self._key(words): words for words in sentences}
        found: dict[Words, np.ndarray] = {}
        if not self._path.is_file():
            return found
        try:
            with self._opened() as database:
                for key, value in _rows(database, list(keys)):
                    if (states := self._states(value, len(keys[key]))) is not None:
                        found[keys[key]] = states
        except sqlite3.Error:
            self._remove_damaged()
        return found

    def put(self, states: Mapping[Words, np.ndarray]) -> None:
        rows = [(self._key(words), _value(one)) for words, one in states.items()]
        if not rows:
            return
        try:
            with self._opened() as database, database:  # the inner one is the transaction
                database.execute("CREATE TABLE IF NOT EXISTS states (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
                database.executemany("INSERT OR REPLACE INTO states VALUES (?, ?)", rows)
                _drop_oldest(database)
        except sqlite3.Error:
            self._remove_damaged()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=WAIT_SECONDS)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            yield database

    def _remove_damaged(self) -> None:
        """Remove a file that is not a database, or is a damaged one; leave one that another process has locked."""
        try:
            with self._opened() as database:
                if database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                    return
        except sqlite3.OperationalError:
            return
        except sqlite3.DatabaseError:
            pass
        with suppress(OSError):  # the folder may be read-only
            self._path.unlink(missing_ok=True)

    def _key(self, words: Words) -> bytes:
        return hashlib.sha256("\0".join((self._encoder, *words)).encode("utf-8", "surrogatepass")).digest()

    def _states(self, value: object, n_words: int) -> np.ndarray | None:
        """The states in a row; None if they are not what was written."""
        if not isinstance(value, bytes) or len(value) != CHECKSUM_BYTES + 2 * n_words * self._width:
            return None
        content = value[CHECKSUM_BYTES:]
        if value[:CHECKSUM_BYTES] != _checksum(content):
            return None
        return np.frombuffer(content, "<f2").astype(np.float16, copy=False).reshape(n_words, self._width)


def remove_states(folder: Path) -> None:
    """Remove all states: those of deleted documents must not stay."""
    (folder / NAME).unlink(missing_ok=True)


def _rows(database: sqlite3.Connection, keys: list[bytes]) -> Iterator[tuple[bytes, object]]:
    for begin in range(0, len(keys), AT_ONCE):
        some = keys[begin : begin + AT_ONCE]
        yield from database.execute(f"SELECT key, value FROM states WHERE key IN ({','.join('?' * len(some))})", some)


def _drop_oldest(database: sqlite3.Connection) -> None:
    """Drop the oldest tenth if there are too many bytes; pages that become free are used again."""
    size, pages, free = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
    )
    if size * (pages - free) > MAX_BYTES:
        first, last = database.execute("SELECT min(rowid), max(rowid) FROM states").fetchone()
        database.execute("DELETE FROM states WHERE rowid <= ?", (first + (last - first) // 10,))


def _value(states: np.ndarray) -> bytes:
    content = states.astype("<f2").tobytes()
    return _checksum(content) + content


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(CHECKSUM_BYTES, "little")
