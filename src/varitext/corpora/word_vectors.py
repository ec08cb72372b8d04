"""Vectors of words: read from GloVe and word2vec files, and set out for a vocabulary."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from varitext.corpora.sources import KnownFile, find, open_content, read_bytes, read_checked
from varitext.corpora.word_vector_files import Wanted, entries, read_npz
from varitext.errors import InputError
from varitext.text import Vocabulary

GLOVE_SUBSET = KnownFile(
    "embeddings/glove-6b-100d-subset.npz", "588f78a770a05498192e013d969b321f2cb07d8722c5f99a6587fa2041fc102f"
)
# Corpora in the manner of the Penn Treebank write some signs in letters.
SIGNS = {
    "``": '"',
    "''": '"',
    "-lrb-": "(",
    "-rrb-": ")",
    "-lsb-": "[",
    "-rsb-": "]",
    "-lcb-": "{",
    "-rcb-": "}",
}


@dataclass(frozen=True, eq=False)
class WordVectors:
    words: tuple[str, ...]
    vectors: np.ndarray  # [words, dim], float32

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            raise InputError(f"{len(self.words)} words have vectors of shape {self.vectors.shape}")
        if not self.vectors.size:
            raise InputError("there are no word vectors")
        if not np.isfinite(self.vectors).all():
            place = int(np.argmin(np.isfinite(self.vectors).all(1)))
            raise InputError(f"the vector of {self.words[place]!r} has a number that is not finite")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """Each word's row; of a word that stands twice the first, as files have the most frequent first."""
        return {word: row for row, word in reversed(list(enumerate(self.words)))}


class StartingVectors(NamedTuple):
    """A vector for every word of a vocabulary."""

    matrix: np.ndarray  # [V, dim], float32
    is_known: np.ndarray  # [V], bool: whether the word has a vector of its own, or a random start

    @property
    def n_known(self) -> int:
        return int(self.is_known.sum())


def vectors_for(vocabulary: Vocabulary | Sequence[str], word_vectors: WordVectors, seed: int = 0) -> StartingVectors:
    """A row for every word: its vector, or that of its lower case, or that of the sign it stands for (-lrb- is one).

    A word without any starts at random, uniformly between plus and minus the square root of 3 times the standard
    deviation of all numbers in `word_vectors`: as large as known words are, so that neither drowns the other. The start
    depends on the seed and the word's place only.
    """
    words = vocabulary.words if isinstance(vocabulary, Vocabulary) else tuple(vocabulary)
    rows = np.array([_row_of(word, word_vectors.index) for word in words], np.int64)
    limit = np.sqrt(3.0) * word_vectors.vectors.std(dtype=np.float64)
    start = np.random.default_rng(seed).uniform(-limit, limit, (len(words), word_vectors.dim))
    matrix, is_known = start.astype(np.float32), rows >= 0
    matrix[is_known] = word_vectors.vectors[rows[is_known]]
    return StartingVectors(matrix, is_known)


def _row_of(word: str, index: dict[str, int]) -> int:
    return next((index[form] for form in _forms(word) if form in index), -1)


def _forms(word: str) -> tuple[str, ...]:
    """How a vector file may spell a word."""
    return word, word.lower(), SIGNS.get(word.lower(), word)


def known_word_vectors(data_dir: Path | str | None = None) -> WordVectors | None:
    """The GloVe vectors of the data folder, VARITEXT_DATA or the cache, if they are there."""
    file = find(GLOVE_SUBSET.name, data_dir)
    if file is None:
        return None
    return _word_vectors(*read_npz(read_checked(file, GLOVE_SUBSET.sha256), str(file.path)), str(file.path))


def load_word_vectors(path: Path | str, only: Collection[str] | None = None, first: int = 0) -> WordVectors:
    """Vectors from GloVe or word2vec text, word2vec binary, .gz of these, or .npz as in `data/embeddings`.

    With `only`, those of the words given, however the file spells them, and the `first` few of the file, which in
    most files are the most frequent: files of a million words then need no memory.
    """
    path, where = Path(path), str(path)
    wanted = Wanted(None if only is None else {form for word in only for form in _forms(word)}, first)
    if path.suffix.lower() == ".npz":
        loaded = _word_vectors(*read_npz(read_bytes(path), where), where)
        kept = [row for row, word in enumerate(loaded.words) if wanted.has(word, row + 1)]
        return _word_vectors([loaded.words[row] for row in kept], loaded.vectors[kept], where)
    with open_content(path) as stream:
        found = list(entries(stream, where, wanted))
    return _word_vectors([entry.word for entry in found], np.array([entry.vector for entry in found]), where)


def _word_vectors(words: Sequence[str], vectors: np.ndarray, where: str) -> WordVectors:
    if not len(words):
        raise InputError(f"{where} has no vectors, or none of the words asked for")
    try:
        return WordVectors(tuple(words), vectors.astype(np.float32))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
