"""Split texts into words and count them in C (word_counts.c).

Without the library, `text/counting.py` does the same work in Python. A call releases Python's global interpreter lock,
so that threads count on several cores.
"""

from typing import NamedTuple

import numpy as np

from varitext import compiled


class CountedWords(NamedTuple):
    """`counts[i]` occurrences of the word `ids[i]`, document by document."""

    distinct: np.ndarray  # number of entries of each document  [B]
    ids: np.ndarray
    counts: np.ndarray
    words: list[str]


def _call(name: str, *arguments: np.ndarray | bytes | int | None) -> int:
    values = [each.ctypes.data if isinstance(each, np.ndarray) else each for each in arguments]
    return compiled.call(name, *values)


SPLIT, ASCII, UNICODE = range(3)  # words between spaces, in UTF-8; ASCII; UTF-32
MARK, INVISIBLE, RARE = 1 << 31, 1 << 30, 1 << 29  # does not start a word; is ignored; must be split in Python


class WordRules(NamedTuple):
    shortest: int  # in characters
    longest: int
    lowercase: bool
    characters: np.ndarray | None  # for each Unicode character, the letter that it becomes; 0: it ends a word


class EncodedTexts(NamedTuple):
    """Texts of these kinds, each with a space at its end."""

    kinds: np.ndarray
    starts: np.ndarray
    text: bytes

    @classmethod
    def of(cls, texts: list[bytes], kinds: list[int]) -> "EncodedTexts":
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return cls(np.array(kinds, np.uint8), starts, b"".join(texts))


def rare_texts(texts: EncodedTexts, characters: np.ndarray) -> list[int]:
    """Indices of the UTF-32 texts with characters that the C code cannot handle."""
    kinds = texts.kinds.copy()
    _call("leave_rare", len(kinds), len(characters), characters, texts.starts, texts.text, kinds)
    return np.flatnonzero(kinds != texts.kinds).tolist()


def count_words(texts: EncodedTexts, rules: WordRules) -> CountedWords:
    documents, size = len(texts.kinds), len(texts.text)
    distinct, found = np.empty(documents, np.int64), np.empty(2, np.int64)
    most = size // 2 + 1  # a letter and a space
    ids, counts, letters = np.empty(most, np.int32), np.empty(most, np.float32), np.empty(size + 1, np.uint8)
    given = *rules, texts.starts, texts.text, texts.kinds
    entries = _call("count_words", documents, *given, distinct, ids, counts, letters, found)
    words = letters[: found[1]].tobytes().decode().split("\n")[:-1]
    return CountedWords(distinct, ids[:entries].copy(), counts[:entries].copy(), words)


def use_columns(counted: CountedWords, columns: np.ndarray) -> CountedWords:
    """The counts of the words that have a column (not -1), sorted by column in each document."""
    distinct, ids, counts = (
        np.array(each, kind) for each, kind in zip(counted[:3], (np.int64, np.int32, np.float32), strict=True)
    )
    kept = _call("use_columns", len(distinct), columns.astype(np.int32), distinct, ids, counts)
    return CountedWords(distinct, ids[:kept].copy(), counts[:kept].copy(), counted.words)
