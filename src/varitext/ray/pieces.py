"""A corpus cut into pieces: what one worker takes at a time, in the order of the documents.

A piece is a file, some row groups of a Parquet file, or a shard. Workers open the files themselves, so every machine of
the cluster must see them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from varitext.corpora import CORPORA, Documents
from varitext.corpora.documents import Columns
from varitext.corpora.own_files import folder_or_file, parquet_texts, stream_files
from varitext.corpora.sharded_counts import ShardedCounts
from varitext.corpora.shards import ShardFolder, is_shard_folder
from varitext.corpora.sources import SourceFile
from varitext.corpora.tables import parquet_row_groups, suffix_of
from varitext.errors import InputError
from varitext.files import sha256_of
from varitext.text import Vocabulary

PIECE_DOCUMENTS = 1 << 15


@dataclass(frozen=True)
class Piece:
    """`first` and `after` are row groups of a Parquet file, or documents of a shard folder; None is the whole file."""

    path: str
    part: str
    text_column: str | None = None
    first: int | None = None
    after: int | None = None
    is_last: bool = True  # of its file

    @property
    def is_counted(self) -> bool:
        return is_shard_folder(Path(self.path))

    def texts(self, sources: list[SourceFile]) -> Iterator[str]:
        """The documents; where a file ends, what it was is added to `sources`."""
        path, columns = Path(self.path), Columns(self.text_column)
        if self.first is None or self.after is None:
            stream = stream_files(path, columns, texts_only=True)
            yield from (row.text for row in stream.texts or ())
            sources += stream.sources
            return
        yield from (row.text for row in parquet_texts(path, columns, range(self.first, self.after)))
        if self.is_last:
            sources.append(SourceFile(path.name, sha256_of(path)))

    def counts(self, vocabulary: Vocabulary) -> csr_matrix:
        """The documents of a shard, over that vocabulary."""
        return ShardedCounts(ShardFolder.open(Path(self.path)), vocabulary)[self.first : self.after]


def cut(
    corpora: Sequence[str | Path | Documents], part: str, text_column: str | None, documents: int = PIECE_DOCUMENTS
) -> list[Piece]:
    """Pieces of about that many documents, where a file can be read in pieces."""
    return [piece for corpus in corpora for piece in _cut(corpus, part, text_column, documents)]


def _cut(corpus: str | Path | Documents, part: str, text_column: str | None, documents: int) -> list[Piece]:
    if not isinstance(corpus, (str, Path)) or str(corpus) in CORPORA or not Path(corpus).exists():
        raise InputError(f"{corpus}: on Ray, documents are read from files and folders only")
    path, part = folder_or_file(Path(corpus).absolute(), part)
    whole = Piece(str(path), part, text_column)
    if path.is_dir() and is_shard_folder(path):
        ends = list(accumulate(shard.documents for shard in ShardFolder.open(path).shards))
        return [replace(whole, first=first, after=end) for first, end in zip([0, *ends], ends, strict=False)]
    if path.name.lower().endswith(".parquet"):
        return _row_groups(whole, parquet_row_groups(path), documents)
    if path.is_dir() or suffix_of(path) in (".jsonl", ".csv", ".tsv", ".parquet", ".txt"):
        return [whole]
    raise InputError(f"{path}: on Ray, documents are texts or shards. Read counts without --ray.")


def _row_groups(whole: Piece, sizes: list[int], documents: int) -> list[Piece]:
    """Neighbouring groups, until they have that many rows together."""
    number = (np.cumsum(sizes) - 1) // documents
    ends = [*(np.flatnonzero(np.diff(number)) + 1).tolist(), len(sizes)]
    places = zip([0, *ends], ends, strict=False)
    return [replace(whole, first=first, after=end, is_last=end == len(sizes)) for first, end in places]
