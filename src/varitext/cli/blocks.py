"""Documents for `assign` and `transform`, a block at a time, so that memory does not grow with the corpus."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from varitext.cli.input import default_part, load_documents
from varitext.errors import InputError
from varitext.files import sha256_of

if TYPE_CHECKING:
    import numpy as np

    from varitext.corpora import Columns, Documents
    from varitext.corpora.document_input import DocumentInput
    from varitext.corpora.tables import Reading

BLOCK = 4096  # documents


class Block(NamedTuple):
    documents: "DocumentInput"
    kept: list[dict[str, Any]]  # the columns of the file, document by document


class BlockSource(NamedTuple):
    blocks: Iterator[Block]
    sha256: Callable[[], str]  # which reads the file
    reading: "Reading"  # how much of the file the blocks so far are


def block_source(file: str, part: str | None, data_dir: Path | None, columns: "Columns") -> BlockSource:
    """Texts of users' files stream; counts and named corpora are loaded, or lie in shards."""
    from varitext.corpora import CORPORA
    from varitext.corpora.own_files import STANDARD_INPUT, folder_or_file, stream_files
    from varitext.corpora.tables import Reading

    if file not in CORPORA and file != STANDARD_INPUT:
        path, _ = folder_or_file(Path(file), part or default_part(file))
        stream = stream_files(path, columns)
        if stream.texts is not None:
            first = next(stream.texts, None)
            if first is None:
                raise InputError(f"{path} has no documents")
            rows = ((row.text, dict(row.row)) for row in chain([first], stream.texts))
            return BlockSource(_in_blocks(rows), lambda: _hash_of(path, columns), stream.reading)
    documents = load_documents(file, part, data_dir, columns)
    return BlockSource(_blocks_of(documents), lambda: documents.sha256, Reading())


def _hash_of(path: Path, columns: "Columns") -> str:
    """Of a file its content; of the files of a folder their names, sizes and times."""
    said = [json.dumps(columns.as_dict(), sort_keys=True)]
    if path.is_file():
        said.append(sha256_of(path))
    else:
        stats = ((name, name.stat()) for name in sorted(path.rglob("*.txt")))
        said += [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats]
    return hashlib.sha256("\n".join(said).encode("utf-8", "surrogateescape")).hexdigest()


def _in_blocks(rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[Block]:
    rows = iter(rows)
    while some := list(islice(rows, BLOCK)):
        yield Block([text for text, _ in some], [kept for _, kept in some])


def _blocks_of(documents: "Documents") -> Iterator[Block]:
    labels = {} if documents.labels is None else {"label": documents.labels}
    about = {**labels, **documents.columns}
    kept = ({name: values[row] for name, values in about.items()} for row in range(len(documents)))
    if documents.texts is not None:
        yield from _in_blocks(zip(documents.texts, kept, strict=True))
        return
    assert documents.counts is not None
    for start in range(0, len(documents), BLOCK):
        some = replace(documents, counts=documents.counts[start : start + BLOCK], labels=None, columns={})
        yield Block(some, list(islice(kept, len(some))))


# Sentence vectors


@dataclass(frozen=True)
class VectorRows:
    """Sentence vectors of documents: rows of a file, or by name."""

    name: str | None
    matrix: "np.ndarray | None" = None

    def __call__(self, start: int, end: int) -> "str | np.ndarray | None":
        if self.matrix is None:
            return self.name
        if end > len(self.matrix):
            raise InputError(f"vectors {self.name}: {len(self.matrix)} rows, but there are more documents")
        return self.matrix[start:end]

    def check(self, documents: int) -> None:
        if self.matrix is not None and len(self.matrix) != documents:
            raise InputError(f"vectors {self.name}: {len(self.matrix)} rows for {documents} documents")


def vector_rows(name: str | None) -> VectorRows:
    from varitext.corpora.document_vectors import map_vectors
    from varitext.documents.vectors import is_minilm

    return VectorRows(name) if name is None or is_minilm(name) else VectorRows(name, map_vectors(Path(name)))
