"""Commands for models of documents: vectors, topics, neighbours and the tour."""

from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.checks import refuse_options
from varitext.cli.inputs import documents_for, load_documents
from varitext.cli.options import AsJson, DataDir, Device, ModelFolder, OnRay, Part, RayAddress, TextColumn, Threads
from varitext.cli.printing import document_entry, log, print_neighbours
from varitext.cli.ray_work import transform_corpus_on_ray
from varitext.errors import InputError
from varitext.loading import load_document_model


def transform(
    folder: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Documents: a file or folder of yours, or a known corpus.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="vectors.parquet, .npy or .csv; on Ray a folder of Parquet files")
    ],
    with_std: Annotated[bool, typer.Option("--with-std", help="Standard deviations beside the means.")] = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Use the inference network alone, without refinement: faster, a little less precise."
        ),
    ] = False,
    part: Part = None,
    threads: Threads = None,
    device: Device = "cpu",
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    ray: OnRay = False,
    ray_address: RayAddress = None,
) -> None:
    """Write one vector per document.

    Rows are documents in their order; columns are the posterior mean and, with --with-std, its spread. A document
    without any word of the model's vocabulary gets the prior: mean 0, standard deviation 1 for nvdm.

    \b
    Examples:
      varitext transform models/mine articles.csv --text-column body --with-std --out vectors.parquet
      varitext transform models/mine pages.parquet --ray --out vectors
    """
    if ray or ray_address:
        refuse_options({"fast": fast or None}, "on Ray vectors are always refined")
        return transform_corpus_on_ray(folder, file, out, part, text_column, with_std, ray_address)
    from varitext.corpora.sharded_counts import blocks_of
    from varitext.documents.export import check_vector_file, vector_tables, write_vectors

    check_vector_file(out)
    model = load_document_model(folder, threads, device)
    counts = model.count(load_documents(file, part, data_dir, text_column))
    documents, width = counts.shape[0], model.fitted_.network.vector_dim
    write_vectors(out, vector_tables(model, counts, with_std, refine=not fast), documents, width, with_std)
    if unknown := sum(int((block.getnnz(1) == 0).sum()) for block in blocks_of(counts)):
        log(f"note: {unknown} documents have no known word: they get the prior")
    log(f"{documents} vectors of {width} dimensions in {out}")


def similar(
    folder: ModelFolder,
    word: Annotated[str | None, typer.Option(metavar="WORD", help="A word of the model's vocabulary.")] = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="A text; finds the most similar documents.")] = None,
    among: Annotated[
        str | None, typer.Option(metavar="CORPUS", help="Documents to search; else the corpus it was fitted on.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")] = 5,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Words like a word, or documents like a text.

    The number is the cosine of their vectors: 1 is the same direction, 0 unrelated.

    \b
    Examples:
      varitext similar models/news --word israel
      varitext similar models/news --text "the shuttle reached orbit" -n 3
      varitext similar models/mine --text "late delivery" --among complaints.jsonl --json
    """
    from varitext.corpora.sharded_counts import in_memory

    if (word is None) == (text is None):
        raise InputError("say either --word or --text")
    model = load_document_model(folder)
    if word is not None:
        found = model.similar_words(model.fitted_.vocabulary.spelling(word), n)
        return print_neighbours([{"similarity": value, "word": name} for name, value in found], as_json)
    assert text is not None  # or else there is a word
    if not in_memory(model.count([text])).nnz:
        raise InputError("the text has no word that the model knows")
    part = "train" if among is None else None
    documents = documents_for(model, among, part, data_dir, text_column, "--among FILE")
    neighbours = model.similar_documents([text], documents, n)[0]
    print_neighbours([document_entry(documents, entry.index, entry.similarity) for entry in neighbours], as_json)


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the model and the report.")] = Path("demo"),
    threads: Threads = None,
    data_dir: DataDir = None,
) -> None:
    """The sixty-second tour on 20 Newsgroups.

    Fits a model, shows topics, nearest words and perplexity, and writes a report with pictures.

    \b
    Example:
      varitext demo --out demo
    """
    from varitext.cli.demo import run_demo

    run_demo(out, threads, data_dir)
