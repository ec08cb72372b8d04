"""Counts cut into shards and written, whichever way they come: chunk by chunk, with or without their final columns.

While a vocabulary is learned, shards are drafts: their words have the numbers in which they were met. When the
vocabulary is chosen, each draft becomes a shard in which the numbers are columns and the other words are gone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from varitext.corpora.shard_folder import (
    ARRAYS,
    SHARD_DOCUMENTS,
    SHARD_ENTRIES,
    ShardArrays,
    ShardRecord,
    array_path,
    write_array,
    write_shard,
)
from varitext.text.bounded_ids import MAX_TABLE
from varitext.text.counting import ChunkCounts

DRAFTS = "drafts"


@dataclass(frozen=True)
class ShardSizes:
    """Where a shard ends, and how many words are told apart on the way; tests make them small."""

    documents: int = SHARD_DOCUMENTS
    entries: int = SHARD_ENTRIES
    table: int = MAX_TABLE


DEFAULT_SIZES = ShardSizes()


def chunk_of(counts: csr_matrix) -> ChunkCounts:
    return ChunkCounts(np.diff(counts.indptr).astype(np.int64), counts.indices, counts.data)


def write_shards(
    folder: Path, chunks: Iterable[ChunkCounts], vocabulary_size: int, sizes: ShardSizes = DEFAULT_SIZES
) -> list[ShardRecord]:
    """Shards of counts whose word ids are columns already."""
    shards = enumerate(in_shards(chunks, sizes))
    return [write_shard(folder, number, shard, vocabulary_size) for number, shard in shards]


def in_shards(chunks: Iterable[ChunkCounts], sizes: ShardSizes) -> Iterator[ShardArrays]:
    """The documents cut into shards; where, depends on the documents and not on how they were chunked."""
    lengths, words, counts = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint32)
    for chunk in chunks:
        lengths = np.concatenate([lengths, chunk.distinct_words])
        words = np.concatenate([words, chunk.word_ids])
        counts = np.concatenate([counts, chunk.counts.astype(np.uint32)])
        while len(lengths) > sizes.documents or len(words) > sizes.entries:
            size = min(sizes.documents, int(np.searchsorted(np.cumsum(lengths), sizes.entries, side="right")))
            size = max(1, size)  # a document that fills a shard by itself
            if size == len(lengths):
                break
            entries = int(lengths[:size].sum())
            yield _shard(lengths[:size], words[:entries], counts[:entries])
            lengths, words, counts = lengths[size:], words[entries:], counts[entries:]
    if len(lengths):
        yield _shard(lengths, words, counts)


def _shard(lengths: np.ndarray, words: np.ndarray, counts: np.ndarray) -> ShardArrays:
    return ShardArrays(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), words, counts)


# Drafts


def write_drafts(folder: Path, chunks: Iterable[ChunkCounts], sizes: ShardSizes) -> list[int]:
    """Shards of counts whose word ids are not yet columns; how many documents each has."""
    drafts = folder / DRAFTS
    drafts.mkdir()
    documents = []
    for number, draft in enumerate(in_shards(chunks, sizes)):
        for name, array in zip(ARRAYS, draft, strict=True):
            write_array(array_path(drafts, number, name), array)
        documents.append(len(draft.starts) - 1)
    return documents


def finish_drafts(folder: Path, drafts: int, chosen: np.ndarray) -> list[ShardRecord]:
    """The shards in which `chosen[column]` has become the column; their drafts are gone."""
    shards = [_finish_draft(folder, number, chosen) for number in range(drafts)]
    (folder / DRAFTS).rmdir()
    return shards


def _finish_draft(folder: Path, number: int, chosen: np.ndarray) -> ShardRecord:
    paths = [array_path(folder / DRAFTS, number, name) for name in ARRAYS]
    starts, ids, counts = (np.load(path, allow_pickle=False) for path in paths)
    order = np.argsort(chosen)
    places = np.searchsorted(chosen[order], ids).clip(max=len(chosen) - 1)
    kept = chosen[order][places] == ids
    documents = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[kept]
    columns = order[places[kept]]
    by_column = np.lexsort((columns, documents))
    kept_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    shard = ShardArrays(kept_before[starts], columns[by_column], counts[kept][by_column])
    record = write_shard(folder, number, shard, len(chosen))
    for path in paths:
        path.unlink()
    return record
