"""`varitext index`: a folder of texts to search, for `varitext rank --index` and `varitext serve --index`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from varitext.cli.input import stream_texts
from varitext.cli.options import TextColumn, option, refuse_options
from varitext.cli.printing import CountedLines, log
from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.answers.index import CandidateIndex
    from varitext.answers.segment import IndexedDocument

Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE|DIR",
        help="Texts: .txt, one per line; .jsonl, .csv or .parquet; - for standard input. Or an index, to change it.",
    ),
]
Out = Annotated[Path | None, option("Folder for a new index of FILE.", "DIR")]
Add = Annotated[str | None, option("Add the texts of a file to the index. Those with known ids are replaced.", "FILE")]
Delete = Annotated[list[str] | None, option("Delete the document with this id. Repeat it for more.", "ID")]
DocumentIds = Annotated[str | None, option("Column of document ids (default: documents are numbered from 0).", "NAME")]


def index(
    source: Source,
    out: Out = None,
    add: Add = None,
    delete: Delete = None,
    text_column: TextColumn = None,
    id_column: DocumentIds = None,
) -> None:
    """Index texts once, to search them often.

    An index is a folder. `rank --index` and `serve --index` open it at once, whatever its size, and find the texts that
    share words with a question by BM25, for a ranker to rank. Texts may be of any length. Other columns of a table come
    back with the results.

    A change is complete or not made at all. A text that is added with the id of another replaces it; if an id occurs
    twice in one file, nothing is added. Without --out, --add and --delete, prints the number of documents.

    \b
    Examples:
      varitext index articles.csv --text-column body --id-column url --out articles.index
      varitext index articles.index --add new.csv --text-column body --id-column url
      varitext index articles.index --delete https://example.org/17 --delete https://example.org/18
    """
    from varitext.answers.index import CandidateIndex

    columns = {"text_column": text_column, "id_column": id_column}
    if out is not None:
        refuse_options({"add": add, "delete": delete}, "--out makes a new index")
        _check_file(source, out)
        made = CandidateIndex.create(out, _counted(stream_texts(source, text_column, id_column)))
        return log(f"{_documents(made)} in {out}")
    _check_index(source)
    if add is None:
        refuse_options(columns, "it belongs to --out and --add")
    changed = CandidateIndex.open(source)
    if delete:
        log(f"{changed.delete(delete):,} deleted")
    if add is not None:
        replaced = changed.add(_counted(stream_texts(add, text_column, id_column)))
        log(f"{replaced:,} replaced")
    print(f"{_documents(changed)} in {source}")


def _check_file(source: str, out: Path) -> None:
    if Path(source).is_dir():
        raise InputError(f"{source} is a folder: name a file of texts. To change an index, use --add or --delete.")
    if out.exists():
        raise InputError(f"{out} exists already. Add to it with `varitext index {out} --add {source}`.")


def _check_index(source: str) -> None:
    if source == "-" or Path(source).is_file():
        raise InputError(f"Missing --out: name a folder for the index, for example --out {Path(source).stem}.index")


def _counted(documents: "Iterator[IndexedDocument]") -> "Iterator[IndexedDocument]":
    """Reports the number of documents read, every few seconds."""
    report = CountedLines()
    for number, one in enumerate(documents):
        report(number)
        yield one


def _documents(index: "CandidateIndex") -> str:
    return f"{len(index):,} document" + ("" if len(index) == 1 else "s")
