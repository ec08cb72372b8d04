"""States of sentences on disk: what was written comes back; damage, other encoders and locks cost time, never truth."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from varitext.models.answers import state_store
from varitext.models.answers.state_store import NAME, StateStore

SENTENCES = [("who", "was", "king"), ("the", "king"), (), ("\ud800",)]


def states(width: int = 8) -> dict:
    generator = np.random.default_rng(0)
    return {words: generator.normal(size=(len(words), width)).astype(np.float16) for words in SENTENCES}


def same(found: dict, expected: dict) -> bool:
    return found.keys() == expected.keys() and all(np.array_equal(found[words], expected[words]) for words in found)


@pytest.fixture
def store(tmp_path) -> StateStore:
    store = StateStore(tmp_path / NAME, "encoder", 8)
    store.put(states())
    return store


def test_what_was_put_comes_back_to_the_bit_in_another_process(store, tmp_path):
    again = StateStore(tmp_path / NAME, "encoder", 8)
    assert same(again.get([*SENTENCES, ("new",)]), states())
    assert again.get([("whowas", "king")]) == {}  # words are told apart


def test_another_encoder_finds_nothing(store, tmp_path):
    assert StateStore(tmp_path / NAME, "other", 8).get(SENTENCES) == {}
    assert StateStore(tmp_path / NAME, "encoder", 4).get(SENTENCES).keys() == {()}


def test_changed_values_are_not_used(store, tmp_path):
    with closing(sqlite3.connect(tmp_path / NAME)) as database, database:
        rows = database.execute("SELECT key, value FROM states").fetchall()
        for place, (key, value) in enumerate(rows):
            other = (value[:-1] + bytes([value[-1] ^ 1]), value[:-2], "text", value)[place]
            database.execute("UPDATE states SET value = ? WHERE key = ?", (other, key))
    assert store.get(SENTENCES).keys() == {words for place, words in enumerate(SENTENCES) if place == 3}


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to look like a file", b"SQLite format 3\0"]
)
def test_a_file_that_is_no_database_is_replaced(tmp_path, content):
    (tmp_path / NAME).write_bytes(content)
    store = StateStore(tmp_path / NAME, "encoder", 8)
    assert store.get(SENTENCES) == {}
    store.put(states())
    store.put(states())
    assert same(store.get(SENTENCES), states())


def test_damaged_pages_are_noticed(store, tmp_path):
    many = {("word", str(n)): np.ones((2, 8), np.float16) for n in range(2000)}
    store.put(many)
    content = bytearray((tmp_path / NAME).read_bytes())
    content[4096 : len(content) // 2] = b"x" * (len(content) // 2 - 4096)
    (tmp_path / NAME).write_bytes(content)
    found = store.get(list(many))
    assert all(np.array_equal(one, many[words]) for words, one in found.items())
    store.put(many)
    store.put(many)
    assert same(store.get(list(many)), many)


def test_whoever_cannot_write_does_without(store, tmp_path, monkeypatch):
    monkeypatch.setattr(state_store, "WAIT_SECONDS", 0.01)
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        store.put({("new",): np.ones((1, 8), np.float16)})
        assert store.get(SENTENCES) == {}
        other.execute("COMMIT")
    assert same(store.get([*SENTENCES, ("new",)]), states())
    nowhere = StateStore(tmp_path / "nothing" / NAME, "encoder", 8)
    nowhere.put(states())
    assert nowhere.get(SENTENCES) == {} and not (tmp_path / "nothing").exists()


def test_the_file_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(state_store, "MAX_BYTES", 200_000)
    store = StateStore(tmp_path / NAME, "encoder", 8)
    for begin in range(0, 6000, 200):
        store.put({(str(n),): np.full((1, 8), n, np.float16) for n in range(begin, begin + 200)})
    assert (tmp_path / NAME).stat().st_size < 300_000
    assert ("5999",) in store.get([("5999",)]) and store.get([("0",)]) == {}
