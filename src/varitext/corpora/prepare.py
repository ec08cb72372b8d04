"""From corpora of any size to shards on disk, in one pass over the data and in memory that does not grow with it.

Words of texts are numbered as they come (`BoundedIds`), and drafts of the shards are written with those numbers until
the last document has been read and the vocabulary is chosen. Counts have their columns from the start.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from varitext.corpora import CORPORA, load_documents
from varitext.corpora.counts import MAX_VOCABULARY, numbered_words
from varitext.corpora.documents import Columns, Documents
from varitext.corpora.own_files import Stream, folder_or_file, stream_documents, stream_files
from varitext.corpora.shards import (
    DEFAULT_SIZES,
    ShardFolder,
    ShardRecord,
    ShardSizes,
    chunk_of,
    finish_drafts,
    finish_folder,
    write_drafts,
    write_shards,
)
from varitext.corpora.sources import SourceFile
from varitext.errors import InputError
from varitext.files import atomic_folder, refuse_to_overwrite
from varitext.text import TokenRules, Vocabulary, VocabularyRules
from varitext.text.counting import BoundedIds, ChunkCounts, FindWords, KnownIds, count_chunks, words_of_texts
from varitext.text.tokens import DEFAULT_TOKEN_RULES
from varitext.text.vocabulary import DEFAULT_VOCABULARY_RULES, choose_words

Corpora = Sequence[str | Path | Documents]
Progress = Callable[[int], None]


class CountedTexts(NamedTuple):
    """Texts that are read and counted while `chunks` is iterated over, which numbers words with the ids it is given."""

    chunks: Callable[[BoundedIds | KnownIds], Iterator[ChunkCounts]]
    sources: list[SourceFile]  # complete when the last document has been counted
    names: list[str]


class TextCounter(Protocol):
    """Counts the words of texts instead of this process."""

    def __call__(
        self, corpora: Corpora, part: str, text_column: str | None, find_words: FindWords, sizes: ShardSizes
    ) -> CountedTexts: ...


class Written(NamedTuple):
    shards: list[ShardRecord]
    vocabulary: Vocabulary
    details: dict[str, Any]  # how they were made, for config.json


def prepare(
    corpora: Corpora,
    out: str | Path,
    *,
    part: str = "train",
    data_dir: str | Path | None = None,
    text_column: str | None = None,
    token_rules: TokenRules = DEFAULT_TOKEN_RULES,
    vocabulary_rules: VocabularyRules = DEFAULT_VOCABULARY_RULES,
    vocabulary: Vocabulary | None = None,
    processes: int | None = None,
    counter: TextCounter | None = None,
    sizes: ShardSizes = DEFAULT_SIZES,
    progress: Progress | None = None,
) -> ShardFolder:
    """Write the documents of one or more corpora as one shard folder, completely or not at all.

    Parameters
    ----------
    corpora : sequence of str, Path or Documents
        Names of corpora, paths of files and folders, or records. Either all texts or all counts.
    out : str or Path
        The new folder.
    part : str, default="train"
        Part of each corpus.
    data_dir : str or Path, optional
        Folder to look in first for named corpora.
    text_column : str, optional
        Column that holds the text (default: "text", or the only text column).
    token_rules : TokenRules, optional
        How texts are split into words.
    vocabulary_rules : VocabularyRules, optional
        Which words are counted.
    vocabulary : Vocabulary, optional
        Count these words and no others, for example test documents over the words of the training documents.
    processes : int, optional
        Number of threads that count words, or of processes without the compiled counter (default: all cores, or one
        process). The result does not depend on it.
    counter : TextCounter, optional
        Counts the words instead, for example on a cluster (`varitext.ray.counting.ray_counter`).
    sizes : ShardSizes, optional
        Where shards end.
    progress : callable, optional
        Called now and then with the number of documents read.

    Returns
    -------
    ShardFolder
        The folder, which `load_documents` reads as counts that stay on disk.

    Examples
    --------
    >>> from pathlib import Path
    >>> from varitext import load_documents, prepare
    >>> _ = Path("articles.txt").write_text("a rocket to the moon")
    >>> _ = prepare(["articles.txt"], "shards")
    >>> load_documents("shards").counts.shape
    (1, 2)
    """
    out = Path(out)
    refuse_to_overwrite(out)
    if token_rules.phrases:
        raise InputError("prepare cannot find phrases, because it reads texts only once. Use n-grams instead.")
    find_words = words_of_texts(token_rules)
    streams: list[Stream] = []
    if counter:
        texts: CountedTexts | None = counter(corpora, part, text_column, find_words, sizes)
    else:
        streams = [_open(corpus, part, data_dir, text_column) for corpus in corpora]
        kinds = {stream.texts is not None for stream in streams}
        if not kinds:
            raise InputError("Nothing to prepare: name at least one corpus")
        if len(kinds) > 1:
            raise InputError("Texts and counts cannot be prepared together")
        texts = _counted(streams, find_words, processes) if kinds.pop() else None
    with atomic_folder(out) as folder:
        if texts is not None:
            written = _write_texts(folder, texts, vocabulary_rules, vocabulary, sizes, progress)
            written.details["token_rules"] = token_rules.as_dict()
            sources, names = texts.sources, texts.names
        else:
            written = _write_counts(folder, streams, vocabulary, sizes, progress)
            sources = [source for stream in streams for source in stream.sources]
            names = [stream.name for stream in streams]
        if not sum(shard.documents for shard in written.shards):
            raise InputError(f"No documents in {', '.join(names)}")
        finish_folder(folder, written.shards, written.vocabulary, sources, written.details)
    return ShardFolder.open(out)


def _open(corpus: str | Path | Documents, part: str, data_dir: str | Path | None, text_column: str | None) -> Stream:
    if isinstance(corpus, Documents):
        return stream_documents(corpus)
    if corpus not in CORPORA and os.path.exists(corpus):
        return stream_files(folder_or_file(Path(corpus), part)[0], Columns(text_column), texts_only=True)
    return stream_documents(load_documents(corpus, part, data_dir))  # which also reports an unknown name


def _told(
    chunks: Iterable[ChunkCounts], progress: Progress | None, ids: BoundedIds | None = None
) -> Iterator[ChunkCounts]:
    """The chunks; on the way, `ids` counts their words and `progress` is told the number of documents."""
    documents = 0
    for chunk in chunks:
        if ids is not None:
            ids.add(chunk)
        documents += len(chunk.distinct_words)
        if progress:
            progress(documents)
        yield chunk


# Texts


def _counted(streams: list[Stream], find_words: FindWords, processes: int | None) -> CountedTexts:
    """Counted in this process, or in others on this machine."""
    sources: list[SourceFile] = []

    def texts() -> Iterator[str]:
        for stream in streams:
            yield from (row.text for row in stream.texts or ())
            sources.extend(stream.sources)

    chunks = partial(count_chunks, texts(), find_words, processes=processes)
    return CountedTexts(chunks, sources, [stream.name for stream in streams])


def _write_texts(
    folder: Path,
    texts: CountedTexts,
    rules: VocabularyRules,
    vocabulary: Vocabulary | None,
    sizes: ShardSizes,
    progress: Progress | None,
) -> Written:
    if vocabulary is not None:
        chunks = _told(texts.chunks(KnownIds(vocabulary.index)), progress)
        return Written(write_shards(folder, chunks, len(vocabulary), sizes), vocabulary, {"vocabulary": "given"})
    ids = BoundedIds(sizes.table)
    documents = write_drafts(folder, _told(texts.chunks(ids), progress, ids), sizes)
    if not documents:
        return Written([], Vocabulary(()), {})
    statistics = ids.statistics()
    chosen = choose_words(statistics, sum(documents), rules)
    details = {
        "vocabulary": "learned",
        "vocabulary_rules": rules.as_dict(),
        "table": {"largest": ids.largest, "drops": ids.drops, "largest_undercount": ids.undercount},
    }
    shards = finish_drafts(folder, len(documents), ids.ids[chosen])
    return Written(shards, Vocabulary(tuple(statistics.words[place] for place in chosen)), details)


# Counts


def _write_counts(
    folder: Path, streams: list[Stream], vocabulary: Vocabulary | None, sizes: ShardSizes, progress: Progress | None
) -> Written:
    given = streams[0].vocabulary
    for stream in streams:
        if stream.vocabulary != given:
            raise InputError(f"{stream.name} and {streams[0].name} have different vocabularies")
    if vocabulary is not None:
        raise InputError("Counts have their words already: a vocabulary applies to texts only")
    width = 0

    def chunks() -> Iterator[ChunkCounts]:
        nonlocal width
        for counts, _ in chain.from_iterable(stream.counts or () for stream in streams):
            width = max(width, counts.shape[1])
            yield chunk_of(counts)

    most = MAX_VOCABULARY if given is None else len(given)
    shards = write_shards(folder, _told(chunks(), progress), most, sizes)
    return Written(shards, given or numbered_words(width), {"vocabulary": "of the counts"})
