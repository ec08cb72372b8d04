"""Word vectors: read from GloVe and word2vec files (text, binary) and .npz, and matched to a vocabulary."""

import io
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from varitext.corpora.sources import (
    SourceFile,
    check_content,
    content_sha256,
    find,
    open_content,
    read_bytes,
    read_checked,
    source_file,
)
from varitext.errors import InputError, first_line
from varitext.text import Vocabulary

GLOVE_SUBSET = SourceFile(
    "embeddings/glove-6b-100d-subset.npz", "588f78a770a05498192e013d969b321f2cb07d8722c5f99a6587fa2041fc102f"
)
GLOVE = SourceFile("embeddings/glove.6B.100d.txt", "95dde4dfd627ab26608d33e76d1195ec059734bd29089ea52cadb08d07c64544")
# Corpora in the style of the Penn Treebank spell some signs in letters.
BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
SIGNS = {"``": '"', "''": '"', **BRACKETS}


@dataclass(frozen=True, eq=False)
class WordVectors:
    words: tuple[str, ...]
    vectors: np.ndarray  # [words, dim], float32
    source: str = "given"  # for the record: the name of the file
    sha256: str | None = None  # of its content

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            raise InputError(f"{len(self.words)} words, but vectors of shape {self.vectors.shape}")
        if not self.vectors.size:
            raise InputError("there are no word vectors")
        if not np.isfinite(self.vectors).all():
            place = int(np.argmin(np.isfinite(self.vectors).all(1)))
            raise InputError(f"the vector of {self.words[place]!r} is not finite")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word; the first one of a word that occurs twice."""
        return {word: row for row, word in reversed(list(enumerate(self.words)))}


class StartingVectors(NamedTuple):
    """A vector for every word of a vocabulary."""

    matrix: np.ndarray  # [V, dim], float32
    is_known: np.ndarray  # [V], bool: whether the word has a vector, or is initialized at random

    @property
    def n_known(self) -> int:
        return int(self.is_known.sum())


def vectors_for(vocabulary: Vocabulary | Sequence[str], word_vectors: WordVectors, seed: int = 0) -> StartingVectors:
    """A row for every word: its vector, or that of its lower-case form, or of the sign it spells (-lrb-).

    A word without a vector is initialized uniformly between plus and minus the square root of 3 times the standard
    deviation of `word_vectors`, to match the scale of known words. It depends only on the seed and the word's index.
    """
    words = vocabulary.words if isinstance(vocabulary, Vocabulary) else tuple(vocabulary)
    index = word_vectors.index
    rows = np.array([next((index[form] for form in _forms(word) if form in index), -1) for word in words], np.int64)
    limit = np.sqrt(3.0) * word_vectors.vectors.std(dtype=np.float64)
    start = np.random.default_rng(seed).uniform(-limit, limit, (len(words), word_vectors.dim))
    matrix, is_known = start.astype(np.float32), rows >= 0
    matrix[is_known] = word_vectors.vectors[rows[is_known]]
    return StartingVectors(matrix, is_known)


def _forms(word: str) -> tuple[str, ...]:
    """The forms in which a vector file may have a word."""
    return word, word.lower(), SIGNS.get(word.lower(), word)


def known_word_vectors(
    data_dir: Path | str | None = None, only: Collection[str] | None = None, first: int = 0
) -> WordVectors | None:
    """The GloVe vectors of the data folder, VARITEXT_DATA or the cache; None if they are not there.

    The official file (`varitext data fetch glove`) comes before the subset for our corpora, which is read whole.
    """
    if file := find(GLOVE.name, data_dir):
        found = load_word_vectors(file.path, only, first)
        check_content(file, found.sha256 or "", GLOVE.sha256)
        return replace(found, source=Path(GLOVE.name).name)
    if file := find(GLOVE_SUBSET.name, data_dir):
        words, vectors = read_npz(read_checked(file, GLOVE_SUBSET.sha256), str(file.path))
        return _word_vectors(words, vectors, str(file.path), SourceFile(file.path.name, GLOVE_SUBSET.sha256))
    return None


def load_word_vectors(path: Path | str, only: Collection[str] | None = None, first: int = 0) -> WordVectors:
    """Vectors from a GloVe or word2vec text file, a word2vec binary file (both also .gz), or a .npz file.

    With `only`, just those of the words given and of the `first` words of the file, usually the most frequent, so
    that a file of a million words needs little memory.
    """
    path, where = Path(path), str(path)
    wanted = Wanted(None if only is None else {form for word in only for form in _forms(word)}, first)
    if path.suffix.lower() == ".npz":
        content = read_bytes(path)
        loaded = _word_vectors(*read_npz(content, where), where, source_file(path.name, content))
        kept = [row for row, word in enumerate(loaded.words) if wanted.has(word, row + 1)]
        return replace(loaded, words=tuple(loaded.words[row] for row in kept), vectors=loaded.vectors[kept])
    with open_content(path) as stream:
        found = list(entries(stream, where, wanted))
    file = SourceFile(path.name, content_sha256(path))
    return _word_vectors([word for word, _ in found], np.array([vector for _, vector in found]), where, file)


def _word_vectors(words: Sequence[str], vectors: np.ndarray, where: str, file: SourceFile) -> WordVectors:
    if not len(words):
        raise InputError(f"{where} has no vectors, or none for these words")
    try:
        return WordVectors(tuple(words), vectors.astype(np.float32), file.name, file.sha256)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


WRONG_CONTENT = (ValueError, KeyError, TypeError, AttributeError)
MAX_DIM = 10_000
MAX_WORD_LENGTH = 10_000  # bytes; longer ones show that it is another kind of file


class Wanted(NamedTuple):
    """Which words of a file to read: all, or those named and the first few."""

    words: set[str] | None  # None for all
    first: int

    def has(self, word: str, number: int) -> bool:
        return self.words is None or number <= self.first or word in self.words


Entry = tuple[str, np.ndarray]  # a word and its vector, [dim]


def entries(stream: io.BufferedIOBase, where: str, wanted: Wanted) -> Iterator[Entry]:
    """The entries of a file: word2vec starts with a line "words dim", GloVe with the first word and its vector."""
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
        raise InputError(f"{where}, line 1: {dim} dimensions; expected between 1 and {MAX_DIM:,}")
    read = _read_binary if _is_binary(stream, dim) else _read_text
    yield from read(stream, where, wanted, dim, words)


def _is_binary(stream: io.BufferedIOBase, dim: int) -> bool:
    """Whether the first word is followed by bytes that are not all printable, as binary numbers hardly ever are."""
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
        # too many numbers: the first one looks like the end of the word
        if len(numbers) != dim or (b" " in word and _is_number(word.rpartition(b" ")[2])):
            raise InputError(f"{place}: expected a word and {dim} numbers, not {line.count(b' ')} numbers")
        found += 1
        decoded = _decoded(word, place)
        if wanted.has(decoded, found):
            yield decoded, _numbers(numbers, place)
    if expected is not None and found != expected:
        raise InputError(f"{where}: {found:,} words, but the first line announces {expected:,}. Is the file truncated?")


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
        raise InputError(f"{place}: the word is not UTF-8 text. Convert the file first.") from None


def _read_binary(stream: io.BufferedIOBase, where: str, wanted: Wanted, dim: int, expected: int) -> Iterator[Entry]:
    """A word, a space, its numbers as little-endian float32; some writers add a line end before the next word."""
    for number in range(1, expected + 1):
        place = f"{where}, word {number:,}"
        word, numbers = _binary_word(stream, place), stream.read(4 * dim)
        if len(numbers) < 4 * dim:
            raise InputError(f"{place}: the file is truncated; its first line announces {expected:,} words")
        decoded = _decoded(word, place)
        if wanted.has(decoded, number):
            yield decoded, np.frombuffer(numbers, "<f4")
    if stream.read(2).strip():
        raise InputError(f"{where} continues after the {expected:,} words that its first line announces")


def _binary_word(stream: io.BufferedIOBase, place: str) -> bytes:
    letters = bytearray()
    while (letter := stream.read(1)) not in (b" ", b""):
        letters += letter
        if len(letters) > MAX_WORD_LENGTH:
            raise InputError(f"{place}: no word of at most {MAX_WORD_LENGTH:,} bytes. This is not a word2vec file.")
    return bytes(letters).lstrip(b"\n")


def read_npz(content: bytes, where: str) -> tuple[list[str], np.ndarray]:
    """`vectors`, and `words` as one UTF-8 string with a word per line or as an array of strings; no Python objects."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            words, vectors = arrays["words"], np.asarray(arrays["vectors"])
        if words.ndim == 0:
            text = words.item()
            words = (text.decode("utf-8") if isinstance(text, bytes) else text).split("\n")
        if vectors.dtype.kind not in "fiu":
            raise ValueError(f"vectors are {vectors.dtype}")
    except (*WRONG_CONTENT, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{where} is not a readable file of word vectors ({first_line(error)})") from None
    return [str(word) for word in words], vectors
