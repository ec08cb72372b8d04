"""`varitext transform`: one vector per document."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from varitext.cli import options
from varitext.cli.blocks import block_source, vector_rows
from varitext.cli.input import default_part, fitted_columns
from varitext.cli.options import option, refuse_options
from varitext.cli.printing import CountedLines, counted, log
from varitext.loading import load_document_model

if TYPE_CHECKING:
    import numpy as np


def transform(
    folder: options.ModelFolder,
    file: options.DocumentFile,
    out: Annotated[Path, option("vectors.parquet, .npy or .csv; with --ray a folder of Parquet files.", "FILE")],
    with_std: Annotated[bool, option("Also write posterior standard deviations.", None, "--with-std")] = False,
    fast: Annotated[
        bool,
        option("Inference network alone, without refinement: several times faster, less precise.", None, "--fast"),
    ] = False,
    part: options.Part = None,
    threads: options.Threads = None,
    device: options.Device = "cpu",
    trust: options.Trust = None,
    text_column: options.TextColumn = None,
    data_dir: options.DataDir = None,
    vectors: options.Vectors = None,
    ray: options.OnRay = False,
    ray_address: options.RayAddress = None,
) -> None:
    """Write one vector per document.

    One row per document, in order. The columns are the posterior means and, with --with-std, the standard deviations. A
    document without any word of the model's vocabulary gets the prior: for nvdm, mean 0 and standard deviation 1.
    Documents are read a block at a time, so memory does not grow with the file.

    \b
    Examples:
      varitext transform models/mine articles.csv --text-column body --with-std --out vectors.parquet
      varitext transform models/mine pages.parquet --ray --out vectors
    """
    if ray or ray_address:
        refuse_options({"vectors": vectors}, "--ray reads documents by their words and, if so fitted, by MiniLM")
        refuse_options({"fast": fast, "trust": trust}, "--ray always refines vectors, with models of varitext")
        return _transform_on_ray(folder, file, out, part, text_column, with_std, ray_address)
    from varitext.corpora.sharded_counts import blocks_of
    from varitext.documents.export import check_vector_file, vector_tables, write_vectors

    check_vector_file(out)
    model = load_document_model(folder, threads, device, trust)
    width = model.fitted_.network.vector_dim
    source = block_source(file, part, data_dir, fitted_columns(model, file, part, text_column))
    rows_of, progress = vector_rows(vectors), CountedLines("transformed")
    documents = unknown = 0

    def tables() -> "Iterator[np.ndarray]":
        nonlocal documents, unknown
        for block in source.blocks:
            before, documents = documents, documents + len(block.kept)
            counts = model.count(block.documents, rows_of(before, documents))
            yield from vector_tables(model, counts, with_std, refine=not fast)
            unknown += sum(int((some.getnnz(1) == 0).sum()) for some in blocks_of(counts))
            progress(documents, source.reading.share)
        rows_of.check(documents)

    write_vectors(out, tables(), width, with_std)
    _note_unknown(unknown)
    log(f"{counted(documents, 'vector')} of {width} dimensions in {out}; {progress.rate(documents)}")


def _transform_on_ray(
    folder: Path,
    corpus: str,
    out: Path,
    part: str | None,
    text_column: str | None,
    with_std: bool,
    address: str | None,
) -> None:
    from varitext.files import refuse_to_overwrite
    from varitext.ray.cluster import LOCAL
    from varitext.ray.transforming import transform_on_ray

    refuse_to_overwrite(out)
    width = load_document_model(folder).fitted_.network.vector_dim  # which also reports what is wrong with the folder
    found = transform_on_ray(
        folder,
        corpus,
        out,
        part=part or default_part(corpus),
        text_column=text_column,
        with_std=with_std,
        address=address or LOCAL,
        progress=CountedLines(),
    )
    _note_unknown(found.unknown)
    log(f"{counted(found.documents, 'vector')} of {width} dimensions in {out}, {counted(found.files, 'file')}")


def _note_unknown(documents: int) -> None:
    if documents:
        log(f"note: {documents} document{'s'[: documents != 1]} without a known word: the vector is the prior's")
