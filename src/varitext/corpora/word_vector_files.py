"""Files of word vectors, entry by entry: GloVe and word2vec text, word2vec binary, and .npz."""

import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from varitext.errors import InputError

MAX_DIM = 10_000
MAX_WORD_LENGTH = 10_000  # bytes; to give up on a file that is none of these


class Wanted(NamedTuple):
    """Which of a file's words to read: all, or those named and the first few."""

    words: set[str] | None  # None for all
    first: int

    def has(self, word: str, number: int) -> bool:
        return self.words is None or number <= self.first or word in self.words


class Entry(NamedTuple):
    word: str
    vector: np.ndarray  # [dim]


def entries(stream: io.BufferedIOBase, where: str, wanted: Wanted) -> Iterator[Entry]:
    """Text or binary: both of word2vec's start with a line "words dim", GloVe's with the first word and its vector."""
    first = stream.readline()
    fields = first.split()
    if not fields and not stream.read(1):
        raise InputError(f"{where} is empty")
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        dim = max(first.rstrip(b" \r\n").count(b" "), 1)
        yield from _read_text(chain([first], stream), where, wanted, dim, None)
        return
    words, dim = map(int, fields)
    if not 1 <= dim <= MAX_DIM:
        raise InputError(f"{where}, line 1: word vectors have between 1 and {MAX_DIM:,} dimensions, not {dim}")
    read = _read_binary if _is_binary(stream, dim) else _read_text
    yield from read(stream, where, wanted, dim, words)


def _is_binary(stream: io.BufferedIOBase, dim: int) -> bool:
    """Whether what follows the first word is no line of text: numbers as bytes are hardly ever all printable."""
    place = stream.tell()
    start = stream.read(MAX_WORD_LENGTH + 4 * dim)
    stream.seek(place)
    vector = start.partition(b" ")[2][: 4 * dim].split(b"\n")[0].rstrip(b"\r")
    return bool(start) and (not vector or not all(32 <= byte < 127 for byte in vector))


def _read_text(lines: Iterable[bytes], where: str, wanted: Wanted, dim: int, expected: int | None) -> Iterator[Entry]:
    found = 0
    for number, line in enumerate(lines, start=1 if expected is None else 2):
        line, place = line.rstrip(b" \r\n"), f"{where}, line {number}"
        if not line:
            continue
        word, *numbers = line.rsplit(b" ", dim)  # some words of GloVe have spaces in them
        if len(numbers) != dim or _ends_in_number(word):
            raise InputError(f"{place}: a word and {dim} numbers are expected, not {line.count(b' ')} numbers")
        found += 1
        decoded = _decoded(word, place)
        if wanted.has(decoded, found):
            yield Entry(decoded, _numbers(numbers, place))
    if expected is not None and found != expected:
        raise InputError(f"{where}: {found:,} words, where its first line says {expected:,}; is the file cut short?")


def _ends_in_number(word: bytes) -> bool:
    """Whether a line has more numbers than expected: the first of them then looks like the end of the word."""
    return b" " in word and _is_number(word.rpartition(b" ")[2])


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _numbers(fields: list[bytes], place: str) -> np.ndarray:
    try:
        return np.array(fields).astype(np.float32)
    except ValueError:
        wrong = next((field for field in fields if not _is_number(field)), b"")
        raise InputError(f"{place}: {wrong.decode('utf-8', 'replace')[:40]!r} is not a number") from None


def _decoded(word: bytes, place: str) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{place}: the word is not UTF-8 text; convert the file first") from None


def _read_binary(stream: io.BufferedIOBase, where: str, wanted: Wanted, dim: int, expected: int) -> Iterator[Entry]:
    """A word, a space, its numbers as little-endian float32; some writers put a line end before the next word."""
    for number in range(1, expected + 1):
        place = f"{where}, word {number:,}"
        word, numbers = _binary_word(stream, place), stream.read(4 * dim)
        if len(numbers) < 4 * dim:
            raise InputError(f"{place}: the file is cut short, its first line says {expected:,} words")
        decoded = _decoded(word, place)
        if wanted.has(decoded, number):
            yield Entry(decoded, np.frombuffer(numbers, "<f4"))
    if stream.read(2).strip():
        raise InputError(f"{where} goes on after the {expected:,} words that its first line says")


def _binary_word(stream: io.BufferedIOBase, place: str) -> bytes:
    letters = bytearray()
    while (letter := stream.read(1)) not in (b" ", b""):
        letters += letter
        if len(letters) > MAX_WORD_LENGTH:
            raise InputError(f"{place}: no word of at most {MAX_WORD_LENGTH:,} bytes; this is no word2vec file")
    return bytes(letters).lstrip(b"\n")


def read_npz(content: bytes, where: str) -> tuple[list[str], np.ndarray]:
    """`vectors`, and `words` as one UTF-8 string with a word a line, or as an array of strings; no Python objects."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            words, vectors = arrays["words"], np.asarray(arrays["vectors"])
        if words.ndim == 0:
            text = words.item()
            words = (text.decode("utf-8") if isinstance(text, bytes) else text).split("\n")
        if vectors.dtype.kind not in "fiu":
            raise ValueError(f"vectors are {vectors.dtype}")
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OSError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{where} is not a file of word vectors that can be read ({reason})") from None
    return [str(word) for word in words], vectors
