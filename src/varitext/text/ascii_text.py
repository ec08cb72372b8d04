"""The words of ASCII text, found in numpy for many documents at once: the fast way to what `tokenise` gives.

Most words have at most eight letters, and eight letters are one 64-bit integer. So finding the distinct words of a
chunk is sorting integers, and only those few distinct words, and the long ones, are looked up in a dictionary.
"""

from typing import NamedTuple, Protocol

import numpy as np

from varitext.text.tokens import TokenRules, ascii_letters

PACKED_LETTERS = 8
_SPACE = ord(" ")
_FIRST_LETTERS = np.array([(1 << 8 * letters) - 1 for letters in range(PACKED_LETTERS + 1)], dtype="<u8")


class WordIds(Protocol):
    def of(self, words: list[str]) -> np.ndarray: ...


class Occurrences(NamedTuple):
    """One entry for every token: the document it stands in, and the id of the word."""

    documents: np.ndarray
    word_ids: np.ndarray


def plain_occurrences(texts: list[str], rules: TokenRules, ids: WordIds) -> Occurrences:
    """The tokens of `texts`, which are ASCII, or of which only ASCII letters count."""
    encoded = [ascii_letters(text, rules) for text in texts]
    # A space between any two, and room to read eight letters from the start of the last word.
    letters = b" ".join([b"", *encoded, b" " * PACKED_LETTERS])
    starts, lengths = _runs(letters, rules)
    first_of_text = np.cumsum([1, *(len(text) + 1 for text in encoded)])
    tokens_in_text = np.diff(np.searchsorted(starts, first_of_text))
    documents = np.repeat(np.arange(len(texts)), tokens_in_text)
    return Occurrences(documents, _word_ids(letters, starts, lengths, ids))


def _runs(letters: bytes, rules: TokenRules) -> tuple[np.ndarray, np.ndarray]:
    """Where the words start that are neither too short nor too long, and how long they are."""
    is_letter = np.frombuffer(letters, np.uint8) != _SPACE
    edges = np.flatnonzero(is_letter[1:] != is_letter[:-1]) + 1
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    allowed = (lengths >= rules.minimum_length) & (lengths <= rules.maximum_length)
    return starts[allowed], lengths[allowed]


def _word_ids(letters: bytes, starts: np.ndarray, lengths: np.ndarray, ids: WordIds) -> np.ndarray:
    is_short = lengths <= PACKED_LETTERS
    long_starts = starts[~is_short]
    word_ids = np.empty(len(starts), np.int64)
    word_ids[is_short] = _short_ids(letters, starts[is_short], lengths[is_short], ids)
    word_ids[~is_short] = ids.of(_cut(letters, long_starts, long_starts + lengths[~is_short]))
    return word_ids


def _short_ids(letters: bytes, starts: np.ndarray, lengths: np.ndarray, ids: WordIds) -> np.ndarray:
    eight_letters = np.ndarray((len(letters) - PACKED_LETTERS + 1,), "<u8", letters, strides=(1,))  # from every place
    packed = eight_letters[starts] & _FIRST_LETTERS[lengths]
    distinct, places = np.unique(packed, return_inverse=True)
    distinct_words = distinct.view(f"S{PACKED_LETTERS}").astype(f"U{PACKED_LETTERS}").tolist()
    return ids.of(distinct_words)[places]


def _cut(letters: bytes, starts: np.ndarray, ends: np.ndarray) -> list[str]:
    text = letters.decode("ascii")
    return list(map(text.__getitem__, map(slice, starts.tolist(), ends.tolist())))
