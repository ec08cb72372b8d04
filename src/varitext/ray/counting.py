"""Words counted on Ray Data: workers count pieces of the corpus, and this process numbers the words, in order.

A worker returns counts over its own words; this process numbers the words as they come, in the order of the documents.
So the shards are identical to those that one process writes.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.corpora.prepare import Corpora, CountedTexts, TextCounter
from varitext.corpora.shards import ShardSizes
from varitext.corpora.sources import SourceFile
from varitext.errors import InputError
from varitext.ray.cluster import LOCAL, connected
from varitext.ray.pieces import Piece, cut
from varitext.text import counting
from varitext.text.counting import BoundedIds, ChunkCounts, FindWords, KnownIds

Row = dict[str, Any]  # what workers exchange: bytes and text, which Arrow takes as they are


def ray_counter(address: str = LOCAL) -> TextCounter:
    def counted(
        corpora: Corpora, part: str, text_column: str | None, find_words: FindWords, sizes: ShardSizes
    ) -> CountedTexts:
        pieces, sources = cut(corpora, part, text_column, sizes.documents), list[SourceFile]()
        if any(piece.is_counted for piece in pieces):
            raise InputError("Shards are counted already: prepare them without --ray")
        chunks = partial(count_on_ray, pieces, find_words, address, sources)
        return CountedTexts(chunks, sources, list(dict.fromkeys(piece.path for piece in pieces)))

    return counted


def count_on_ray(
    pieces: list[Piece], find_words: FindWords, address: str, sources: list[SourceFile], ids: BoundedIds | KnownIds
) -> Iterator[ChunkCounts]:
    """As `count_chunks`: the counts of all documents in their order; `sources` is filled on the way."""
    known = ids if isinstance(ids, KnownIds) else None
    items = [{"piece": json.dumps(dataclasses.asdict(piece))} for piece in pieces]
    count = count_piece  # by value: workers need not find it under this name

    def count_row(row: Row) -> Iterable[Row]:
        return count(Piece(**json.loads(row["piece"])), find_words, known)

    with connected(address) as ray:
        dataset = ray.data.from_items(items, override_num_blocks=len(items)).flat_map(count_row)
        for row in dataset.iter_rows():
            if row["error"]:
                raise InputError(row["error"])
            sources += [SourceFile(**source) for source in json.loads(row["sources"])]
            if row["lengths"]:
                yield counting.with_ids(chunk_of_row(row), ids)


def count_piece(piece: Piece, find_words: FindWords, known: KnownIds | None) -> Iterator[Row]:
    """In a worker: a row for every chunk of the piece, and one for its end."""
    sources: list[SourceFile] = []
    try:
        for chunk in counting.in_chunks(piece.texts(sources), counting.TRANSFER_SIZE):
            yield row_of_chunk(counting.count_alone(chunk, find_words, known))
        listed = json.dumps([dataclasses.asdict(source) for source in sources])
        yield {**NOTHING, "sources": listed}
    except InputError as error:
        yield {**NOTHING, "error": str(error)}


NOTHING: Row = {"lengths": b"", "ids": b"", "counts": b"", "words": "", "sources": "[]", "error": ""}


def row_of_chunk(chunk: ChunkCounts) -> Row:
    return NOTHING | {
        "lengths": chunk.distinct_words.astype(np.int64).tobytes(),
        "ids": chunk.word_ids.astype(np.int32).tobytes(),
        "counts": chunk.counts.astype(np.float32).tobytes(),
        "words": json.dumps(chunk.words),
    }


def chunk_of_row(row: Row) -> ChunkCounts:
    kinds = {"lengths": np.int64, "ids": np.int32, "counts": np.float32}
    lengths, ids, counts = (np.frombuffer(row[name], kind) for name, kind in kinds.items())
    return ChunkCounts(lengths, ids, counts, json.loads(row["words"]))
