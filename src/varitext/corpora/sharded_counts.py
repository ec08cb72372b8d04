"""Counts in shards on disk, used like a matrix: rows are read when they are indexed.

A pass over a corpus goes in windows: as many shards as fit into a fixed number of documents and entries. Memory holds
one window, so it does not grow with the corpus. A corpus that fits into one window gives bit-for-bit the same results
as one in memory.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Union

import numpy as np

from varitext.corpora.shards import ShardArrays, ShardFolder, remapped
from varitext.errors import InputError
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

WINDOW_DOCUMENTS = 1 << 17
WINDOW_ENTRIES = 1 << 23
MAX_OPEN = 64  # shards mapped at once; each holds three open files
PERMUTED = 1 << 20  # rows that are permuted at once: 8 MB


class OpenShard(NamedTuple):
    arrays: ShardArrays
    rows: np.ndarray | None  # the documents to use (default: all)


class Rows(NamedTuple):
    lengths: np.ndarray  # entries of each document
    words: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class ShardedCounts:
    """A matrix [documents, V] over a shard folder; `without_empty`, `without` and `over` return other views of it."""

    folder: ShardFolder
    vocabulary: Vocabulary  # the columns
    skip_empty: bool = False
    left_out: np.ndarray | None = None  # rows, ascending, of the view that has them
    window_documents: int = WINDOW_DOCUMENTS
    window_entries: int = WINDOW_ENTRIES

    # Views

    def without_empty(self) -> "ShardedCounts":
        kept = replace(self, skip_empty=True)
        if not kept.shape[0]:
            raise InputError(f"none of the {self.shape[0]} documents has a word of the vocabulary")
        return kept

    def without(self, rows: np.ndarray) -> "ShardedCounts":
        if self.left_out is not None:
            raise ValueError("rows were left out already")
        return replace(self, left_out=np.sort(rows))

    def over(self, vocabulary: Vocabulary) -> "ShardedCounts":
        """The same documents over another vocabulary; words that it does not have are left out."""
        return replace(self, vocabulary=vocabulary)

    # A matrix

    @cached_property
    def shape(self) -> tuple[int, int]:
        return int(self._ends[-1]) if len(self._ends) else 0, len(self.vocabulary)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> "csr_matrix":
        """These rows in memory."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        order = np.argsort(rows, kind="stable")
        found = self._ascending(rows[order])
        return found if (np.diff(order) > 0).all() else found[np.argsort(order)]

    def _ascending(self, rows: np.ndarray) -> "csr_matrix":
        if self.left_out is not None:
            rows = rows + np.searchsorted(self.left_out - np.arange(len(self.left_out)), rows, side="right")
        shards = np.searchsorted(self._all_ends, rows, side="right")
        pieces = []
        for number in np.unique(shards).tolist():
            start = int(self._all_ends[number - 1]) if number else 0
            pieces.append(self._take(number, rows[shards == number] - start))
        return _stack(pieces, len(self.vocabulary))

    @cached_property
    def sha256(self) -> str:
        """A hash of this view: the folder's hash, the columns, and the rows that are left out."""
        left_out = b"" if self.left_out is None else self.left_out.tobytes()
        columns = "\n".join(self.vocabulary.words)
        said = f"{self.folder.sha256} {self.skip_empty} {columns} ".encode() + left_out
        return hashlib.sha256(said).hexdigest()

    # Windows

    @cached_property
    def is_one_window(self) -> bool:
        return len(list(self._windows(range(len(self.folder.shards))))) <= 1

    def blocks(self) -> "Iterator[csr_matrix]":
        """All rows in order, a window at a time."""
        for shards in self._windows(range(len(self.folder.shards))):
            yield self[self._start(shards[0]) : int(self._ends[shards[-1]])]

    def shuffled_rows(self, generator: np.random.Generator) -> Iterator[np.ndarray]:
        """Every row once: shards in a random order, and within each window of them all rows in a random order."""
        if self.is_one_window:
            yield generator.permutation(len(self))
            return
        generator = generator.spawn(1)[0]  # so that the order does not depend on other draws
        for shards in self._windows(generator.permutation(len(self.folder.shards)).tolist()):
            rows = np.concatenate([np.arange(self._start(number), self._ends[number]) for number in shards])
            yield generator.permutation(rows)

    def _windows(self, shards: Iterable[int]) -> Iterator[list[int]]:
        window: list[int] = []
        documents = entries = 0
        for number in shards:
            record = self.folder.shards[number]
            documents, entries = documents + record.documents, entries + record.entries
            if window and (documents > self.window_documents or entries > self.window_entries):
                yield window
                window, documents, entries = [], record.documents, record.entries
            window.append(number)
        if window:
            yield window

    def _start(self, shard: int) -> int:
        return int(self._ends[shard - 1]) if shard else 0

    # Rows

    @cached_property
    def _all_ends(self) -> np.ndarray:
        """Where each shard's rows end, before rows are left out."""
        shards = self.folder.shards
        if not self.skip_empty:
            sizes = [shard.documents for shard in shards]
        elif self._columns is None:
            sizes = [shard.documents - shard.empty_documents for shard in shards]
        else:  # only reading shows which documents have a word of the other vocabulary
            sizes = [int((np.diff(self._open(number).arrays.starts) > 0).sum()) for number in range(len(shards))]
        return np.cumsum(sizes, dtype=np.int64)

    @cached_property
    def _ends(self) -> np.ndarray:
        if self.left_out is None:
            return self._all_ends
        return self._all_ends - np.searchsorted(self.left_out, self._all_ends)

    @cached_property
    def _columns(self) -> np.ndarray | None:
        """The column of each word of the folder, -1 for none; None if the vocabularies are the same."""
        own = self.folder.vocabulary.words
        if own == self.vocabulary.words:
            return None
        return np.array([self.vocabulary.index.get(word, -1) for word in own], np.int64)

    @cached_property
    def _opened(self) -> OrderedDict[int, OpenShard]:
        return OrderedDict()

    def _open(self, number: int) -> OpenShard:
        """A memory-mapped shard; those used longest ago are closed, which frees their pages."""
        if number in self._opened:
            self._opened.move_to_end(number)
            return self._opened[number]
        arrays = self.folder.map_shard(number)
        if self._columns is not None:
            arrays = remapped(arrays, self._columns[arrays.words])
        shard = OpenShard(arrays, np.flatnonzero(np.diff(arrays.starts)) if self.skip_empty else None)
        entries = len(arrays.words) + sum(len(other.arrays.words) for other in self._opened.values())
        while self._opened and (entries > 2 * self.window_entries or len(self._opened) >= MAX_OPEN):
            _, gone = self._opened.popitem(last=False)
            entries -= len(gone.arrays.words)
        self._opened[number] = shard
        return shard

    def _take(self, number: int, rows: np.ndarray) -> Rows:
        (starts, words, counts), known = self._open(number)
        rows = rows if known is None else known[rows]
        first, lengths = starts[rows], starts[rows + 1] - starts[rows]
        ends = np.cumsum(lengths)
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:  # neighbours
            places: slice | np.ndarray = slice(first[0], first[0] + ends[-1])
        else:
            places = np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)
        return Rows(lengths, words[places].astype(np.int32), counts[places].astype(np.float32))


Counts = Union["csr_matrix", ShardedCounts]


def blocks_of(counts: Counts) -> "Iterator[csr_matrix]":
    """All documents in order, as matrices in memory, none so large that intermediate results would fill memory."""
    if isinstance(counts, ShardedCounts):
        return counts.blocks()
    if counts.shape[0] <= WINDOW_DOCUMENTS:
        return iter([counts])
    starts = range(0, counts.shape[0], WINDOW_DOCUMENTS)
    return (counts[start : start + WINDOW_DOCUMENTS] for start in starts)


def shuffled_rows(counts: Counts, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """The rows in random order, in one piece or several."""
    if isinstance(counts, ShardedCounts):
        return counts.shuffled_rows(generator)
    return iter([generator.permutation(counts.shape[0])])


def some_rows(generator: np.random.Generator, size: int, wanted: int) -> np.ndarray:
    """`wanted` of `size` rows, ascending, in memory that does not grow with `size`."""
    if size <= PERMUTED:
        return np.sort(generator.permutation(size)[:wanted])
    return np.sort(generator.choice(size, min(wanted, size), replace=False))


def in_memory(counts: Counts) -> "csr_matrix":
    return counts[:] if isinstance(counts, ShardedCounts) else counts


def _stack(pieces: list[Rows], width: int) -> "csr_matrix":
    from scipy.sparse import csr_matrix  # slow to import, and a ranking needs none

    if not pieces:
        pieces = [Rows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))]
    lengths, words, counts = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return csr_matrix((counts, words, np.concatenate([[0], np.cumsum(lengths)])), (len(lengths), width))
