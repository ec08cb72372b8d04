"""`varitext assign`: the topic of each document, beside the columns of its file.

Documents stream: each block of them becomes a file in OUT.parts, and at the end these become OUT, so memory does not
grow with the corpus, and a run that was killed continues with the block that it had not finished.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import varitext
from varitext.cli import blocks
from varitext.cli.blocks import block_source, vector_rows
from varitext.cli.input import fitted_columns
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
from varitext.cli.printing import CountedLines, check_table_file, counted, log, write_table
from varitext.documents.topic_records import WHOLE
from varitext.errors import InputError
from varitext.files import atomic_file, locked, read_json, sha256_of, write_json, write_text
from varitext.loading import load_document_model


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
    source = block_source(file, part, data_dir, columns)
    said = {"model": sha256_of(folder / "config.json"), "documents": source.sha256(), "version": varitext.__version__}
    rows_of = vector_rows(vectors)
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
            progress(documents, source.reading.share)
        rows_of.check(documents)
        parts.join(out, raw_csv)
    model.save_cache(folder)
    if unknown:
        log(f"note: {unknown} {'document has' if unknown == 1 else 'documents have'} no known word, and no topic")
    log(f"{counted(documents, 'document')} in {out}; {progress.rate(documents)}")


def _beside(kept: dict[str, Any], info: dict[str, Any], before: int) -> dict[str, Any]:
    """The columns of the file, then ours; a column of the file that has one of our names is renamed."""
    own = {f"{name}_of_file" if name in info else name: value for name, value in kept.items()}
    return {**own, **info, "row": before + info["row"]}


# Parts of the table


@contextmanager
def _parts(out: Path, said: dict[str, str]) -> Iterator["_Parts"]:
    """The folder of parts beside `out`, with what an earlier run of the same command has left there.

    Bad input removes it. Anything else that ends the run keeps it, and the same command continues.
    """
    folder, config = out.with_name(f"{out.name}.parts"), {**said, "out": out.name, "block": str(blocks.BLOCK)}
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
            log(f"note: continuing: the first {len(done)} blocks of {blocks.BLOCK} documents are in {folder} already")
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
