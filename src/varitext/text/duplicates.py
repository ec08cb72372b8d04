"""Copies among texts: the same letters, or nearly the same runs of words.

Near copies are found by min-wise hashing (Broder 1997) of runs of four words. Every candidate is then compared in full:
texts are near copies if they share four fifths of the runs that either has, which allows for one different word in a
text of forty. Texts of fewer than twenty words are copies only if they have the same letters.
"""

from collections.abc import Iterable

import numpy as np

from varitext.text.counting import CHUNK_SIZE, in_chunks
from varitext.text.spans import JoinedTexts, mixed

RUN_WORDS = 4
MIN_RUNS = 17  # twenty words
BANDS, ROWS = 5, 4  # copies that share 80 % of their runs are candidates with a chance of 93 %; at 90 %: 99.5 %
MIN_SHARED = 0.8
NONE = np.uint64(2**64 - 1)


def first_copies(texts: Iterable[str]) -> np.ndarray:
    """For each text the place of the first one that it is a copy of, or its own.  [D]"""
    letters, keys = _hashed(texts := list(texts))
    first = np.arange(len(texts))
    _point_to_first(first, letters)
    originals = np.flatnonzero((first == np.arange(len(texts))) & (keys[:, 0] != NONE))
    for band in range(BANDS):
        _join_near(first, originals, keys[:, band], texts)
        originals = originals[first[originals] == originals]
    while (first[first] != first).any():  # a copy of a text that a later band found to be a copy itself
        first = first[first]
    return first


def _hashed(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The hash of all letters of each text, [D], and one key for each band, [D, BANDS]; NONE for what has none."""
    letters, keys, before = np.full(len(texts), NONE), np.full((len(texts), BANDS), NONE), 0
    for chunk in in_chunks(texts, CHUNK_SIZE):
        joined, places = JoinedTexts.of(chunk), slice(before, before + len(chunk))
        whole, runs = joined.whole(), joined.runs(RUN_WORDS)
        letters[places] = np.where(whole.letters > 0, whole.hashes, NONE)
        number = np.bincount(runs.texts, minlength=len(chunk))
        if len(runs.texts):
            with_runs = np.flatnonzero(number)
            starts = np.searchsorted(runs.texts, with_runs)
            enough = number[with_runs] >= MIN_RUNS
            for band in range(BANDS):
                lowest = [np.minimum.reduceat(mixed(runs.hashes ^ _salt(band, row)), starts) for row in range(ROWS)]
                key = mixed(np.bitwise_xor.reduce([mixed(one + _salt(0, row)) for row, one in enumerate(lowest)]))
                keys[before + with_runs[enough], band] = key[enough]
        before += len(chunk)
    return letters, keys


def _salt(band: int, row: int) -> np.uint64:
    return np.uint64(mixed(np.array([ROWS * band + row + 1], np.uint64))[0])


def _point_to_first(first: np.ndarray, hashes: np.ndarray) -> None:
    """Texts with the same letters are copies of the first of them."""
    order = np.argsort(hashes, kind="stable")
    is_new = np.diff(hashes[order], prepend=~hashes[order][:1]) != 0
    leaders = order[np.flatnonzero(is_new)][np.cumsum(is_new) - 1]
    has_letters = hashes[order] != NONE
    first[order[has_letters]] = leaders[has_letters]


def _join_near(first: np.ndarray, originals: np.ndarray, keys: np.ndarray, texts: list[str]) -> None:
    """Make texts with the same key copies of the first of them, if they share enough with it."""
    order = originals[np.argsort(keys[originals], kind="stable")]
    is_new = np.diff(keys[order], prepend=~keys[order][:1]) != 0
    leaders = order[np.flatnonzero(is_new)][np.cumsum(is_new) - 1] if len(order) else order
    others = order != leaders
    pairs = np.stack([order[others], leaders[others]], 1)
    near = _shares(pairs, texts) >= MIN_SHARED
    first[pairs[near, 0]] = pairs[near, 1]


def _shares(pairs: np.ndarray, texts: list[str]) -> np.ndarray:
    """What `shared_runs` returns for each pair of texts, for many pairs at once."""
    found, before = np.zeros(len(pairs)), 0
    sides = (texts[place] for place in pairs.ravel())
    for chunk in in_chunks(zip(sides, sides, strict=True), CHUNK_SIZE, lambda pair: len(pair[0]) + len(pair[1])):
        found[before : before + len(chunk)] = _shared([text for pair in chunk for text in pair])
        before += len(chunk)
    return found


def _shared(texts: list[str]) -> np.ndarray:
    """The share of the runs of words of texts 0 and 1 that both have; the same for texts 2 and 3; and so on."""
    runs = JoinedTexts.of(texts).runs(RUN_WORDS)
    order = np.lexsort((runs.hashes, runs.texts))
    hashes, owners = runs.hashes[order], runs.texts[order]
    distinct = np.concatenate([np.ones(1, bool), (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])])[
        : len(order)
    ]
    hashes, pairs = hashes[distinct], owners[distinct] // 2
    order = np.lexsort((hashes, pairs))
    hashes, pairs = hashes[order], pairs[order]
    in_both = pairs[1:][(hashes[1:] == hashes[:-1]) & (pairs[1:] == pairs[:-1])]
    shared, all_runs = (np.bincount(each, minlength=len(texts) // 2) for each in (in_both, pairs))
    return np.asarray(shared / np.maximum(all_runs - shared, 1))


def shared_runs(one: str, other: str) -> float:
    """Of the runs of words that either text has, the share that both have."""
    return float(_shared([one, other])[0])
