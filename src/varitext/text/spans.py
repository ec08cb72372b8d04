"""Hashes of lines, of runs of words and of whole texts, for many texts at once.

Only letters count, in lower case: the same words with other numbers, punctuation or spaces have the same hash. The hash
of letters i to j is a difference of two prefix sums (Rabin and Karp 1987), so that any span costs the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

BASE = 0x9E3779B97F4A7C15  # odd; the multiplier of splitmix64
INVERSE = pow(BASE, -1, 1 << 64)
CODES = 1 << 16  # characters beyond, such as emoji, do not count as letters
NEWLINE = ord("\n")
SHIFTS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


class Spans(NamedTuple):
    """Parts of texts, in order."""

    texts: np.ndarray  # the text that each is in
    starts: np.ndarray  # its first character, of all texts joined
    ends: np.ndarray
    letters: np.ndarray  # how many it has
    hashes: np.ndarray

    def only(self, chosen: np.ndarray) -> "Spans":
        return Spans(*(values[chosen] for values in self))


@dataclass(frozen=True)
class JoinedTexts:
    """Texts, one after the other, each followed by the end of a line."""

    codes: np.ndarray  # of characters
    ends: np.ndarray  # of texts

    @classmethod
    def of(cls, texts: Sequence[str]) -> "JoinedTexts":
        joined = "\n".join([*texts, ""]).encode("utf-32-le", "surrogatepass")
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls(np.frombuffer(joined, np.uint32), np.cumsum(lengths + 1))

    def whole(self) -> Spans:
        return self._spans(np.concatenate([np.zeros(1, np.int64), self.ends[:-1]]), self.ends)

    def lines(self) -> Spans:
        """Lines that have letters."""
        ends = np.flatnonzero(self.codes == NEWLINE)
        spans = self._spans(np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1]), ends)
        return spans.only(spans.letters > 0)

    def runs(self, words: int) -> Spans:
        """Every run of that many words of one text; not a word twice in a row, as in lists of tokens."""
        letter = np.concatenate([np.zeros(1, bool), self._is_letter])
        edges = np.flatnonzero(letter[1:] != letter[:-1])
        starts, ends = edges[::2], edges[1::2]
        spans = self._spans(starts[: max(0, len(starts) - words + 1)], ends[words - 1 :])
        doubled = np.cumsum(np.diff(self._spans(starts, ends).hashes, prepend=np.uint64(0)) == 0)
        varied = doubled[: len(spans.starts)] == doubled[words - 1 :]
        return spans.only(varied & (spans.ends <= self.ends[spans.texts]))

    def _spans(self, starts: np.ndarray, ends: np.ndarray) -> Spans:
        before = self._letters_before
        first, last = before[starts], before[ends]
        hashes = (self._sums[last] - self._sums[first]) * _powers(INVERSE, _rounded(len(self._sums)))[first]
        return Spans(np.searchsorted(self.ends, starts, side="right"), starts, ends, last - first, mixed(hashes))

    @cached_property
    def _is_letter(self) -> np.ndarray:
        return np.asarray(_tables().is_letter[np.minimum(self.codes, CODES - 1)])

    @cached_property
    def _letters_before(self) -> np.ndarray:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self._is_letter)])

    @cached_property
    def _sums(self) -> np.ndarray:
        """Prefix sums over letters of value times power, modulo 2^64."""
        values = _tables().values[self.codes[self._is_letter]]
        values *= _powers(BASE, _rounded(len(values) + 1))[: len(values)]
        return np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])


class _Tables(NamedTuple):
    is_letter: np.ndarray
    values: np.ndarray  # 64 bits for every letter, the same in both cases


@cache
def _tables() -> _Tables:
    characters = [chr(code) for code in range(CODES)]
    lower = [ord(small) if len(small := character.lower()) == 1 else ord(character) for character in characters]
    is_letter = np.fromiter(map(str.isalpha, characters), bool, CODES)
    is_letter[CODES - 1] = False  # stands for all characters beyond
    return _Tables(is_letter, mixed(np.array(lower, np.uint64) + np.uint64(1)))


def _rounded(size: int) -> int:
    return 1 << max(16, (size - 1).bit_length())  # few distinct sizes, because powers are kept


@cache
def _powers(base: int, size: int) -> np.ndarray:
    return np.concatenate([np.ones(1, np.uint64), np.cumprod(np.full(size - 1, base, np.uint64), dtype=np.uint64)])


def mixed(values: np.ndarray) -> np.ndarray:
    """Splitmix64: every bit of the input changes about half of the bits."""
    values = values * np.uint64(BASE)
    for shift, multiplier in SHIFTS:
        values = (values ^ (values >> shift)) * multiplier
    return np.asarray(values ^ (values >> np.uint64(31)))
