"""Documents one after the other from files of any size: what `own_files` reads whole, never held whole.

Held at a time are a line of .jsonl, a row of .csv, some rows of .parquet, some lines of .feat, one file of a folder. A
.npz is compressed as one piece and is read whole, as are a gzipped .parquet and the corpora known by name.
"""

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from scipy.sparse import csr_matrix

from varitext.corpora.counts import parse_feat, vocabulary_beside
from varitext.corpora.documents import DEFAULT_COLUMN, Columns, Documents
from varitext.corpora.encodings import decode, text_lines
from varitext.corpora.own_files import folder_or_file, load_whole
from varitext.corpora.parquet_files import parquet_batches
from varitext.corpora.sharded_counts import blocks_of
from varitext.corpora.shards import is_shard_folder
from varitext.corpora.sources import SourceFile, open_content, read_bytes
from varitext.corpora.text_files import csv_texts, jsonl_rows, suffix_of
from varitext.errors import InputError
from varitext.files import sha256_of
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

FEAT_LINES = 1000  # at a time


@dataclass(frozen=True)
class Stream:
    """Texts, or blocks of counts over a vocabulary; `sources` are known when the last one has been taken."""

    name: str
    sources: list[SourceFile]
    texts: Iterator[str] | None = None
    counts: Iterator[csr_matrix] | None = None
    vocabulary: Vocabulary | None = None  # of counts; None if the file does not name its words


def stream_documents(documents: Documents) -> Stream:
    """What is in memory, or in shards, already."""
    sources = list(documents.files)
    if documents.counts is None:
        return Stream(documents.name, sources, texts=iter(documents.texts or ()))
    return Stream(documents.name, sources, counts=blocks_of(documents.counts), vocabulary=documents.vocabulary)


def stream_files(path: Path, part: str, text_column: str | None = None) -> Stream:
    """The part of a file or folder of the user's, as `own_files.load` finds it."""
    path, part = folder_or_file(path, part)
    kind, sources = suffix_of(path), list[SourceFile]()
    if path.is_dir():
        if is_shard_folder(path):
            return stream_documents(load_whole(path, part, Columns(text_column)))
        return Stream(str(path), sources, texts=_folder_texts(path, sources))
    if kind in _TEXTS and not (kind == ".parquet" and path.suffix == ".gz"):
        return Stream(str(path), sources, texts=_TEXTS[kind](path, text_column, sources))
    if kind == ".feat":
        vocabulary = vocabulary_beside(path, None)
        return Stream(str(path), sources, counts=_feat_counts(path, vocabulary, sources), vocabulary=vocabulary)
    return stream_documents(load_whole(path, part, Columns(text_column)))


# Texts


def _jsonl_texts(path: Path, text_column: str | None, sources: list[SourceFile]) -> Iterator[str]:
    with open_content(path) as stream:
        content = _Hashed(stream)
        lines = text_lines(io.BufferedReader(content), str(path))
        yield from (row[text_column or DEFAULT_COLUMN] for row in jsonl_rows(lines, str(path), text_column))
        sources.append(content.source(path))


def _csv_texts(path: Path, text_column: str | None, sources: list[SourceFile]) -> Iterator[str]:
    with open_content(path) as stream:
        content = _Hashed(stream)
        lines = text_lines(io.BufferedReader(content), str(path))
        yield from csv_texts(lines, str(path), Columns(text_column))
        sources.append(content.source(path))


def _parquet_texts(path: Path, text_column: str | None, sources: list[SourceFile]) -> Iterator[str]:
    for batch in parquet_batches(path, str(path), text_column):
        yield from batch.texts
    sources.append(SourceFile(path.name, sha256_of(path)))


def _txt_texts(path: Path, text_column: str | None, sources: list[SourceFile]) -> Iterator[str]:
    content = read_bytes(path)
    yield decode(content, str(path))
    sources.append(SourceFile(path.name, hashlib.sha256(content).hexdigest()))


def _folder_texts(folder: Path, sources: list[SourceFile]) -> Iterator[str]:
    digest, files = hashlib.sha256(), 0
    for path in _text_files(folder):
        content = read_bytes(path)
        yield decode(content, str(path))
        digest.update(f"{path.relative_to(folder).as_posix()} {hashlib.sha256(content).hexdigest()}\n".encode())
        files += 1
    if not files:
        raise InputError(f"{folder} has no .txt files")
    sources.append(SourceFile(folder.name, digest.hexdigest()))


def _text_files(folder: Path) -> Iterator[Path]:
    """The .txt files below, in the order of their paths; one folder's names are held at a time."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _text_files(path)
        elif path.suffix == ".txt":
            yield path


_TEXTS: dict[str, Callable[[Path, str | None, list[SourceFile]], Iterator[str]]] = {
    ".jsonl": _jsonl_texts,
    ".csv": _csv_texts,
    ".tsv": _csv_texts,
    ".parquet": _parquet_texts,
    ".txt": _txt_texts,
}


# Counts


def _feat_counts(path: Path, vocabulary: Vocabulary | None, sources: list[SourceFile]) -> Iterator[csr_matrix]:
    words, line = None if vocabulary is None else len(vocabulary), 1
    with open_content(path) as stream:
        content = _Hashed(stream)
        lines = io.BufferedReader(content)
        while some := list(islice(lines, FEAT_LINES)):
            yield parse_feat(b"".join(some), str(path), words, line).counts
            line += len(some)
        sources.append(content.source(path))


class _Hashed(io.RawIOBase):
    """A stream that takes the hash of what is read from it."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream, self._digest = stream, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        place = memoryview(buffer)
        content = self._stream.read(len(place))
        place[: len(content)] = content
        self._digest.update(content)
        return len(content)

    def source(self, path: Path) -> SourceFile:
        return SourceFile(path.name, self._digest.hexdigest())
