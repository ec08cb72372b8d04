"""Document vectors on Ray Data: each worker holds the model and turns pieces of the corpus into Parquet files.

The folder has one file per piece, named by its number: read in the order of their names, as all readers of Parquet
folders do, the rows are in the order of the documents. A file is written whole or not at all, so a piece that is done
twice, because a worker died, still appears once.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.sharded_counts import in_memory
from varitext.documents.export import vector_tables, write_vectors
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.files import atomic_folder
from varitext.ray.cluster import LOCAL, connected
from varitext.ray.pieces import Piece, cut

TEXTS = 4096  # held at a time


class Transformed(NamedTuple):
    documents: int
    unknown: int  # documents without any word of the model
    files: int


def transform_on_ray(
    model_folder: Path,
    corpus: str | Path,
    out: Path,
    *,
    part: str,
    text_column: str | None = None,
    with_std: bool = False,
    address: str = LOCAL,
    progress: Callable[[int], None] | None = None,
) -> Transformed:
    """Write the folder `out` of Parquet files, whole or not at all."""
    pieces = cut([corpus], part, text_column)
    items = [{"number": number, "piece": json.dumps(dataclasses.asdict(piece))} for number, piece in enumerate(pieces)]
    done: dict[int, tuple[int, int]] = {}
    with atomic_folder(out.absolute()) as folder, connected(address) as ray:
        settings = (str(model_folder.absolute()), str(folder), with_std)
        encoders = ray.data.ActorPoolStrategy(min_size=1, max_size=len(items))
        dataset = ray.data.from_items(items, override_num_blocks=len(items))
        for row in dataset.map(PieceEncoder, fn_constructor_args=settings, compute=encoders).iter_rows():
            if row["error"]:
                raise InputError(row["error"])
            done[row["number"]] = row["documents"], row["unknown"]
            if progress:
                progress(sum(documents for documents, _ in done.values()))
        if sorted(done) != list(range(len(items))):
            raise RuntimeError(f"{len(items) - len(done)} of {len(items)} pieces were lost")
        for half_written in set(folder.iterdir()) - {folder / name_of(number) for number in done}:
            half_written.unlink()  # by a worker that was killed
    documents, unknown = (sum(column) for column in zip(*done.values(), strict=True))
    return Transformed(documents, unknown, len(items))


def name_of(piece: int) -> str:
    return f"part-{piece:06}.parquet"


class PieceEncoder:
    """In a worker: the model, loaded once, and the file that it writes for a piece."""

    def __init__(self, model_folder: str, out: str, with_std: bool):
        self.model = DocumentModel.load(model_folder)
        self.model.threads = 1  # Ray gives a worker one core
        self.out, self.with_std = Path(out), with_std

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        piece, self.documents, self.unknown = Piece(**json.loads(row["piece"])), 0, 0
        path, error = self.out / name_of(row["number"]), ""
        try:
            write_vectors(path, self.vectors(piece), self.model.fitted_.network.vector_dim, self.with_std)
        except InputError as told:
            error = str(told)
        return {"number": row["number"], "documents": self.documents, "unknown": self.unknown, "error": error}

    def vectors(self, piece: Piece) -> Iterator[np.ndarray]:
        for documents in self.documents_of(piece):
            counts = in_memory(self.model.count(documents))
            self.documents += counts.shape[0]
            self.unknown += int((counts.getnnz(1) == 0).sum())
            yield from vector_tables(self.model, counts, self.with_std)

    def documents_of(self, piece: Piece) -> Iterator[Any]:
        if piece.is_counted:
            yield piece.counts(self.model.fitted_.vocabulary)
            return
        texts = piece.texts([])
        while some := list(islice(texts, TEXTS)):
            yield some
