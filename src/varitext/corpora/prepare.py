"""From corpora of any size to shards on disk, in one pass over the data and in memory that does not grow with it.

Texts: words are numbered as they come (`text/bounded_ids.py`), and drafts of the shards are written with those numbers.
When the last document has been read, the vocabulary is chosen, and each draft becomes a shard in which the numbers are
columns and the other words are gone. The text is read once. Counts have their columns from the start.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from varitext.corpora import CORPORA, Documents, load
from varitext.corpora.count_files import LARGEST_VOCABULARY, numbered_words
from varitext.corpora.documents import SourceFile
from varitext.corpora.shard_folder import (
    ARRAYS,
    SHARD_DOCUMENTS,
    SHARD_ENTRIES,
    ShardArrays,
    ShardFolder,
    ShardRecord,
    array_path,
    finish_folder,
    write_array,
    write_shard,
)
from varitext.corpora.streams import Stream, stream_documents, stream_files
from varitext.errors import InputError
from varitext.files import atomic_folder
from varitext.store import refuse_to_overwrite
from varitext.text import TokenRules, Vocabulary, VocabularyRules
from varitext.text.bounded_ids import LARGEST_TABLE, BoundedIds
from varitext.text.counting import ChunkCounts, FindWords, KnownIds, count_chunks, words_of_texts
from varitext.text.tokens import DEFAULT_TOKEN_RULES
from varitext.text.vocabulary import DEFAULT_VOCABULARY_RULES, choose_words

DRAFTS = "drafts"


@dataclass(frozen=True)
class ShardSizes:
    """Where a shard ends, and how many words are told apart on the way; tests make them small."""

    documents: int = SHARD_DOCUMENTS
    entries: int = SHARD_ENTRIES
    table: int = LARGEST_TABLE


DEFAULT_SIZES = ShardSizes()


class Written(NamedTuple):
    shards: list[ShardRecord]
    vocabulary: Vocabulary
    details: dict[str, Any]  # how they were made, for config.json


def prepare(
    corpora: Sequence[str | Path | Documents],
    out: str | Path,
    *,
    part: str = "train",
    data_dir: str | Path | None = None,
    text_column: str | None = None,
    token_rules: TokenRules = DEFAULT_TOKEN_RULES,
    vocabulary_rules: VocabularyRules = DEFAULT_VOCABULARY_RULES,
    vocabulary: Vocabulary | None = None,
    processes: int = 1,
    ray: str | None = None,
    sizes: ShardSizes = DEFAULT_SIZES,
    progress: Callable[[int], None] | None = None,
) -> ShardFolder:
    """Write the documents of all corpora, one after the other, as one shard folder, whole or not at all.

    `vocabulary` counts those words and no others, so that test documents are counted over the words of the training
    ones. `progress` is told, now and then, how many documents have been read. `ray` counts words on Ray: `local`, or
    the address of a cluster; the shards are the same.
    """
    out = Path(out)
    refuse_to_overwrite(out)
    find_words = words_of_texts(token_rules)
    if ray is not None:
        counted = _counted_on_ray(corpora, part, text_column, find_words, ray, sizes)
        with atomic_folder(out) as folder:
            written = _write_texts(folder, counted.count, vocabulary_rules, vocabulary, sizes, progress)
            written.details["token_rules"] = token_rules.as_dict()
            _finish(folder, written, counted.sources, counted.names)
        return ShardFolder.open(out)
    streams = [_open(corpus, part, data_dir, text_column) for corpus in corpora]
    are_texts = {stream.texts is not None for stream in streams}
    if len(are_texts) != 1:
        raise InputError("texts and counts cannot be prepared together" if are_texts else "there is nothing to prepare")
    with atomic_folder(out) as folder:
        if are_texts.pop():
            texts = chain.from_iterable(stream.texts for stream in streams)
            count = partial(count_chunks, texts, find_words, processes=processes)
            written = _write_texts(folder, count, vocabulary_rules, vocabulary, sizes, progress)
            written.details["token_rules"] = token_rules.as_dict()
        else:
            written = _write_counts(folder, streams, vocabulary, sizes, progress)
        sources = [source for stream in streams for source in stream.sources]
        _finish(folder, written, sources, [stream.name for stream in streams])
    return ShardFolder.open(out)


def _finish(folder: Path, written: Written, sources: list[SourceFile], names: list[str]) -> None:
    if not sum(shard.documents for shard in written.shards):
        raise InputError(f"there are no documents in {', '.join(names)}")
    finish_folder(folder, written.shards, written.vocabulary, sources, written.details)


def _open(corpus: str | Path | Documents, part: str, data_dir: str | Path | None, text_column: str | None) -> Stream:
    if isinstance(corpus, Documents):
        return stream_documents(corpus)
    if corpus not in CORPORA and os.path.exists(corpus):
        return stream_files(Path(corpus), part, text_column)
    documents = load(corpus, part, data_dir)  # which also says what is wrong with a name
    if not isinstance(documents, Documents):
        raise InputError(f"{corpus} is a corpus of questions and answers, not of documents")
    return stream_documents(documents)


# Texts


class CountedOnRay(NamedTuple):
    count: "CountTexts"
    sources: list[SourceFile]  # known when the last document has been counted
    names: list[str]


def _counted_on_ray(
    corpora: Sequence[str | Path | Documents],
    part: str,
    text_column: str | None,
    find_words: FindWords,
    address: str,
    sizes: ShardSizes,
) -> CountedOnRay:
    from varitext.on_ray.pieces import cut
    from varitext.on_ray.preparing import count_on_ray

    pieces, sources = cut(corpora, part, text_column, sizes.documents), []
    if any(piece.is_counted for piece in pieces):
        raise InputError("shards are counted already: prepare them without Ray")
    count = partial(count_on_ray, pieces, find_words, address, sources)
    return CountedOnRay(count, sources, list(dict.fromkeys(piece.path for piece in pieces)))


CountTexts = Callable[[BoundedIds | KnownIds], Iterator[ChunkCounts]]


def _write_texts(
    folder: Path,
    count: CountTexts,
    rules: VocabularyRules,
    vocabulary: Vocabulary | None,
    sizes: ShardSizes,
    progress: Callable[[int], None] | None,
) -> Written:
    if vocabulary is not None:
        chunks = _told(count(ids=KnownIds(vocabulary.index)), progress)
        shards = _write_shards(folder, chunks, sizes, len(vocabulary))
        return Written(shards, vocabulary, {"vocabulary": "given"})
    ids = BoundedIds(sizes.table)
    drafts = folder / DRAFTS
    drafts.mkdir()
    chunks = _remembered(count(ids=ids), ids)
    documents = [_write_draft(drafts, *draft) for draft in enumerate(in_shards(_told(chunks, progress), sizes))]
    if not documents:
        return Written([], Vocabulary(()), {})
    statistics = ids.statistics()
    chosen = choose_words(statistics, sum(documents), rules)
    if not len(chosen):
        raise InputError(f"no word of the {sum(documents)} documents passes the rules for words and vocabulary")
    shards = [_finish_draft(folder, number, ids.ids[chosen]) for number in range(len(documents))]
    drafts.rmdir()
    details = {
        "vocabulary": "learned",
        "vocabulary_rules": rules.as_dict(),
        "table": {"largest": ids.largest, "drops": ids.drops, "largest_undercount": ids.undercount},
    }
    return Written(shards, Vocabulary(tuple(statistics.words[place] for place in chosen)), details)


def _remembered(chunks: Iterable[ChunkCounts], ids: BoundedIds) -> Iterator[ChunkCounts]:
    for chunk in chunks:
        ids.add(chunk)
        yield chunk


def _told(chunks: Iterable[ChunkCounts], progress: Callable[[int], None] | None) -> Iterator[ChunkCounts]:
    documents = 0
    for chunk in chunks:
        documents += len(chunk.distinct_words)
        if progress:
            progress(documents)
        yield chunk


def _write_draft(folder: Path, number: int, draft: ShardArrays) -> int:
    for name, array in zip(ARRAYS, draft, strict=True):
        write_array(array_path(folder, number, name), array)
    return len(draft.starts) - 1


def _finish_draft(folder: Path, number: int, chosen: np.ndarray) -> ShardRecord:
    """The shard in which `chosen[column]` has become the column; its draft is gone."""
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


# Counts


def _write_counts(
    folder: Path,
    streams: list[Stream],
    vocabulary: Vocabulary | None,
    sizes: ShardSizes,
    progress: Callable[[int], None] | None,
) -> Written:
    given = streams[0].vocabulary
    for stream in streams:
        if stream.vocabulary != given:
            raise InputError(f"{stream.name} and {streams[0].name} are counts over different words")
    if vocabulary is not None:
        raise InputError("counts have their words already: a vocabulary is given for texts only")
    width = 0

    def chunks() -> Iterator[ChunkCounts]:
        nonlocal width
        for counts in chain.from_iterable(stream.counts for stream in streams):
            width = max(width, counts.shape[1])
            yield chunk_of(counts)

    most = LARGEST_VOCABULARY if given is None else len(given)
    shards = _write_shards(folder, _told(chunks(), progress), sizes, most)
    return Written(shards, given or numbered_words(width), {"vocabulary": "of the counts"})


def chunk_of(counts: csr_matrix) -> ChunkCounts:
    return ChunkCounts(np.diff(counts.indptr).astype(np.int64), counts.indices, counts.data)


# Shards


def _write_shards(folder: Path, chunks: Iterable[ChunkCounts], sizes: ShardSizes, words: int) -> list[ShardRecord]:
    return [write_shard(folder, number, shard, words) for number, shard in enumerate(in_shards(chunks, sizes))]


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
