"""`varitext assign`: the topic of each document, beside the columns of its file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from varitext.cli.input import load_documents
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
from varitext.cli.printing import check_table_file, log, write_table
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
    number of known words.

    \b
    Example:
      varitext assign models/mine articles.csv --text-column body --out documents.parquet
    """
    check_table_file(out)
    model = load_document_model(folder, threads, device, trust)
    documents = load_documents(file, part, data_dir, text_column)
    found = model.document_info(documents, vectors)
    kept = dict(documents.columns)
    if not kept and documents.labels is not None:
        kept = {"label": documents.labels}
    write_table(out, [_beside(kept, info.row, info.as_dict()) for info in found], raw_csv)
    if unknown := sum(info.topic is None for info in found):
        log(f"note: {unknown} {'document has' if unknown == 1 else 'documents have'} no known word, and no topic")
    log(f"{len(found)} documents in {out}")


def _beside(kept: dict[str, Sequence[Any]], row: int, info: dict[str, Any]) -> dict[str, Any]:
    """The columns of the file, then ours; a column of the file that has one of our names is renamed."""
    own = {f"{name}_of_file" if name in info else name: values[row] for name, values in kept.items()}
    return {**own, **info}
