"""`varitext assign`: the topic of each document, beside the columns of its file.

Documents stream: each block of them becomes a file in OUT.parts, and at the end these become OUT, so memory does not
grow with the corpus, and a run that was killed continues with the block that it had not finished.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import varitext
from varitext.cli.input import default_part, fitted_columns, load_documents
from varitext.cli.options import (
    DataDir,
    Device,
    DocumentFile,
    ModelFolder,
    Part,
    RawCsv,
    TextColumn,
    Threads,
    Trust,
    Vectors,
    option,
)
from varitext.cli.printing import CountedLines, check_table_file, log, write_table
from varitext.documents.topic_records import WHOLE
from varitext.errors import InputError
from varitext.files import atomic_file, locked, read_json, sha256_of, write_json, write_text
from varitext.loading import load_document_model

if TYPE_CHECKING:
    import numpy as np

    from varitext.corpora import Columns, Documents
    from varitext.corpora.document_input import DocumentInput

BLOCK = 4096  # documents


def assign(
    folder: ModelFolder,
    file: DocumentFile,
    out: Annotated[Path, option("documents.csv, .json or .parquet.", "FILE")],
    part: Part = None,
    threads: Threads = None,
    device: Device = "cpu",
    trust: Trust = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    vectors: Vectors = None,
    raw_csv: RawCsv = False,
) -> None:
    """Write the topic of each document to a table.

    Beside the columns of the file: topic and its probability; the second topic; the spread of the document's vector;
    surprise (nats per word above what is usual for documents of its length: sort by it to see outliers first); and the
    number of known words. The column of text is that of the fit, unless you name another.

    Documents are read a block at a time, so memory does not grow with the file. Blocks that are done are kept in
    FILE.parts: after a kill, the same command continues.

    \b
    Example:
      varitext assign models/mine articles.csv --text-column body --out documents.parquet
    """
    check_table_file(out)
    model = load_document_model(folder, threads, device, trust).use_cache(folder)
    columns = fitted_columns(model, file, part, text_column)
    source = _source(file, part, data_dir, columns)
    said = {"model": sha256_of(folder / "config.json"), "documents": source.sha256, "version": varitext.__version__}
    rows_of = _vectors(vectors)
    if vectors is not None:
        said["vectors"] = vectors if rows_of.matrix is None else sha256_of(Path(vectors))
    with _parts(out, said) as parts:
        unknown, documents, progress = 0, 0, CountedLines("assigned")
        for number, block in enumerate(source.blocks):
            if not parts.has(number):
                of_block = rows_of(documents, documents + len(block.kept))
                found = model.document_info(block.documents, of_block).as_dicts()
                rows = zip(block.kept, found, strict=True)
                parts.add(number, [_beside(kept, one, documents) for kept, one in rows])
            unknown += parts.without_topic(number)
            documents += len(block.kept)
            progress(documents)
        rows_of.check(documents)
        parts.join(out, raw_csv)
    model.save_cache(folder)
    if unknown:
        log(f"note: {unknown} {'document has' if unknown == 1 else 'documents have'} no known word, and no topic")
    log(f"{documents} documents in {out}")


def _beside(kept: dict[str, Any], info: dict[str, Any], before: int) -> dict[str, Any]:
    """The columns of the file, then ours; a column of the file that has one of our names is renamed."""
    own = {f"{name}_of_file" if name in info else name: value for name, value in kept.items()}
    return {**own, **info, "row": before + info["row"]}


@dataclass(frozen=True)
class _Vectors:
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


def _vectors(name: str | None) -> _Vectors:
    from varitext.corpora.document_vectors import map_vectors
    from varitext.documents.vectors import is_minilm

    return _Vectors(name) if name is None or is_minilm(name) else _Vectors(name, map_vectors(Path(name)))


# Documents, a block at a time


class _Block(NamedTuple):
    documents: "DocumentInput"
    kept: list[dict[str, Any]]  # the columns of the file, document by document


class _Source(NamedTuple):
    sha256: str
    blocks: Iterator[_Block]


def _source(file: str, part: str | None, data_dir: Path | None, columns: "Columns") -> _Source:
    """Texts of users' files stream; counts and named corpora are loaded, or lie in shards."""
    from varitext.corpora import CORPORA
    from varitext.corpora.own_files import STANDARD_INPUT, folder_or_file, stream_files

    if file not in CORPORA and file != STANDARD_INPUT:
        path, _ = folder_or_file(Path(file), part or default_part(file))
        stream = stream_files(path, columns)
        if stream.texts is not None:
            first = next(stream.texts, None)
            if first is None:
                raise InputError(f"{path} has no documents")
            rows = ((row.text, dict(row.row)) for row in chain([first], stream.texts))
            return _Source(_hash_of(path, columns), _in_blocks(rows))
    documents = load_documents(file, part, data_dir, columns)
    return _Source(documents.sha256, _blocks_of(documents))


def _hash_of(path: Path, columns: "Columns") -> str:
    """Of a file its content; of the files of a folder their names, sizes and times."""
    said = [json.dumps(columns.as_dict(), sort_keys=True)]
    if path.is_file():
        said.append(sha256_of(path))
    else:
        stats = ((name, name.stat()) for name in sorted(path.rglob("*.txt")))
        said += [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats]
    return hashlib.sha256("\n".join(said).encode("utf-8", "surrogateescape")).hexdigest()


def _in_blocks(rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[_Block]:
    rows = iter(rows)
    while some := list(islice(rows, BLOCK)):
        yield _Block([text for text, _ in some], [kept for _, kept in some])


def _blocks_of(documents: "Documents") -> Iterator[_Block]:
    labels = {} if documents.labels is None else {"label": documents.labels}
    about = {**labels, **documents.columns}
    kept = ({name: values[row] for name, values in about.items()} for row in range(len(documents)))
    if documents.texts is not None:
        yield from _in_blocks(zip(documents.texts, kept, strict=True))
        return
    assert documents.counts is not None
    for start in range(0, len(documents), BLOCK):
        some = replace(documents, counts=documents.counts[start : start + BLOCK], labels=None, columns={})
        yield _Block(some, list(islice(kept, len(some))))


# Parts of the table


@contextmanager
def _parts(out: Path, said: dict[str, str]) -> Iterator["_Parts"]:
    """The folder of parts beside `out`, with what an earlier run of the same command has left there.

    Bad input removes it. Anything else that ends the run keeps it, and the same command continues.
    """
    folder, config = out.with_name(f"{out.name}.parts"), {**said, "out": out.name, "block": str(BLOCK)}
    if folder.exists() and not (folder / "config.json").is_file() and any(folder.iterdir()):
        raise InputError(f"{folder}, where unfinished blocks are kept, exists already and holds other files: remove it")
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait=False):
        done = sorted(folder.glob("[0-9]*"))
        if not (folder / "config.json").is_file() or read_json(folder / "config.json") != config:
            for file in done:
                file.unlink()
            write_json(folder / "config.json", config)
        elif done:
            log(f"note: continuing: the first {len(done)} blocks of {BLOCK} documents are in {folder} already")
        try:
            yield _Parts(folder, out.suffix)
        except InputError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class _Parts:
    """One file per block: .parquet, which keeps the types of columns, or lines of JSON."""

    folder: Path
    suffix: str

    def has(self, number: int) -> bool:
        return self._file(number).is_file()

    def add(self, number: int, rows: list[dict[str, Any]]) -> None:
        names = list(dict.fromkeys(chain.from_iterable(rows)))  # rows need not all have the same
        rows = [{name: row.get(name) for name in names} for row in rows]
        if self.suffix == ".parquet":
            write_table(self._file(number), rows)
        else:
            lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
            write_text(self._file(number), "".join(f"{line}\n" for line in lines))

    def without_topic(self, number: int) -> int:
        if self.suffix == ".parquet":
            from pyarrow import parquet

            return int(parquet.read_table(self._file(number), columns=["topic"])["topic"].null_count)
        return sum(row["topic"] is None for row in _lines_of(self._file(number)))

    def join(self, out: Path, raw_csv: bool) -> None:
        files = sorted(self.folder.glob("[0-9]*"))
        if self.suffix == ".parquet":
            with atomic_file(out) as temporary:
                _join_parquet(files, temporary)
        else:
            write_table(out, _rows_of(files), raw_csv)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:08d}{'.parquet' if self.suffix == '.parquet' else '.jsonl'}"


def _rows_of(files: list[Path]) -> Iterator[dict[str, Any]]:
    """The rows of all parts, all with the same names, one after the other."""
    names = list(dict.fromkeys(name for file in files for name in next(_lines_of(file), {})))
    for file in files:
        yield from ({name: row.get(name) for name in names} for row in _lines_of(file))


def _lines_of(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _join_parquet(files: list[Path], out: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    try:
        schema = pyarrow.unify_schemas([parquet.read_schema(file) for file in files], promote_options="permissive")
        schema = schema.with_metadata({"pandas": json.dumps(_pandas_types(schema.names))})
        with parquet.ParquetWriter(out, schema) as writer:
            for file in files:
                table = parquet.read_table(file)
                missing = [name for name in schema.names if name not in table.column_names]
                for name in missing:
                    table = table.append_column(name, pyarrow.nulls(len(table)))
                writer.write_table(table.select(schema.names).cast(schema))
    except pyarrow.ArrowException as error:
        raise InputError(f"A column mixes types ({error}): write a .csv or .json instead") from None


def _pandas_types(names: list[str]) -> dict[str, Any]:
    """For pandas, which would otherwise read whole numbers with gaps as 3.0."""
    columns = [
        {"name": name, "field_name": name, "pandas_type": "int64", "numpy_type": "Int64", "metadata": None}
        for name in names
        if name in WHOLE
    ]
    return {"index_columns": [], "column_indexes": [], "columns": columns, "pandas_version": "2.0.0"}
