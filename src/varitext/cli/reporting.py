"""`varitext report` and `varitext figures`: what a model learned, as one page, and its pictures as files."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from varitext.cli.answer_input import questions_for
from varitext.cli.checks import refuse_options
from varitext.cli.column_values import binned_values, values_of
from varitext.cli.inputs import documents_for
from varitext.cli.options import DataDir, ModelFolder, Part, Protocol, TextColumn, Threads
from varitext.cli.printing import log
from varitext.cli.topic_options import GROUPED, By, OverTime
from varitext.errors import InputError
from varitext.loading import load_any

if TYPE_CHECKING:
    from varitext.corpora import Documents
    from varitext.report import ColumnValues

Shown = Annotated[
    str | None,
    typer.Option(metavar="CORPUS", help="Documents or questions to show; else the test part of its own corpus."),
]


ReportBins = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="day, week, month, quarter or year; else what suits the dates.", rich_help_panel=GROUPED
    ),
]


class FileFormat(StrEnum):
    svg = "svg"
    png = "png"


def report(
    folder: ModelFolder,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file; an earlier one is replaced.")] = Path(
        "report.html"
    ),
    corpus: Shown = None,
    part: Part = None,
    threads: Threads = None,
    text_column: TextColumn = None,
    protocol: Protocol = None,
    by: By = None,
    over_time: OverTime = None,
    bins: ReportBins = None,
    data_dir: DataDir = None,
) -> None:
    """Write a report as one HTML file that opens offline.

    Documents: a map with the names of topics, the topics with sizes and typical documents, examples with their
    uncertainty; perplexity beside unigram and, where it applies, the paper; nearest words, training curves. Topics by
    label and over time where the documents have labels and dates, or by the columns that you name.

    Answers: MAP and MRR with intervals beside plain rankings and, where it applies, the paper; calibration, risk by
    coverage, results by question word, attention on questions chosen by rule, Hinton diagram, training curves.

    Needs the extra: pip install 'varitext[report]'. To save its pictures as files, see `varitext figures`.

    \b
    Examples:
      varitext report models/news --out news.html
      varitext report models/mine --corpus unseen.csv --text-column body --out mine.html
      varitext report models/answers --protocol both --out answers.html
    """
    from varitext.documents.model import DocumentModel
    from varitext.files import check_can_write
    from varitext.report import write_answer_report, write_document_report

    if out.suffix not in (".html", ".htm"):
        raise InputError(f"{out}: a report is an .html file")
    check_can_write(out)
    model = load_any(folder, threads)
    if isinstance(model, DocumentModel):
        refuse_options({"protocol": protocol}, f"{folder} holds a model of documents")
        documents = documents_for(model, corpus, part, data_dir, text_column, "--corpus FILE")
        write_document_report(model, documents, out, folder=folder, columns=_columns(documents, by, over_time, bins))
    else:
        refuse_options(_of_documents(text_column, by, over_time), f"{folder} holds a ranker of answers")
        questions = questions_for(model, corpus, part, data_dir, "--corpus FILE")
        write_answer_report(model, questions, out, protocol, folder=folder)
    log(f"report in {out}")


def figures(
    folder: ModelFolder,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which figures; all that the model has if none.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files; earlier ones are replaced.")] = Path(
        "figures"
    ),
    file_format: Annotated[FileFormat, typer.Option("--format", help="Of the files.")] = FileFormat.svg,
    corpus: Shown = None,
    part: Part = None,
    threads: Threads = None,
    text_column: TextColumn = None,
    protocol: Protocol = None,
    by: By = None,
    over_time: OverTime = None,
    bins: ReportBins = None,
    data_dir: DataDir = None,
) -> None:
    """Save the figures of a report as SVG or PNG files.

    Documents: map, labels, topics, by-class, over-time, posteriors, training, dimensions.

    Answers: comparison, calibration, risk-coverage, question-words, attention, hinton, training.

    Each is one file, NAME.svg or NAME.png, with the same data as in `varitext report`. Needs no browser and no network,
    but the extra: pip install 'varitext[report]'.

    \b
    Examples:
      varitext figures models/news --out figures
      varitext figures models/news map topics --format png --out figures
      varitext figures models/mine over-time --over-time published --bins quarter
      varitext figures models/answers calibration attention --out figures
    """
    from varitext.documents.model import DocumentModel
    from varitext.files import check_can_write
    from varitext.report import check_figure_names, save_answer_figures, save_document_figures

    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file: figures go to a folder")
    check_can_write(out / "figure")
    model, names = load_any(folder, threads), names or []
    check_figure_names(model, names, file_format.value)
    if isinstance(model, DocumentModel):
        refuse_options({"protocol": protocol}, f"{folder} holds a model of documents")
        documents = documents_for(model, corpus, part, data_dir, text_column, "--corpus FILE")
        paths = save_document_figures(
            model, documents, out, names, file_format.value, columns=_columns(documents, by, over_time, bins)
        )
    else:
        refuse_options(_of_documents(text_column, by, over_time), f"{folder} holds a ranker of answers")
        questions = questions_for(model, corpus, part, data_dir, "--corpus FILE")
        paths = save_answer_figures(model, questions, out, names, file_format.value, protocol)
    for path in paths:
        log(f"figure in {path}")


def _of_documents(text_column: str | None, by: str | None, over_time: str | None) -> dict[str, str | None]:
    return {"text_column": text_column, "by": by, "over_time": over_time}


def _columns(documents: "Documents", by: str | None, over_time: str | None, bins: str | None) -> "list[ColumnValues]":
    """What topics are broken down by: the columns named, or else labels and dates where there are any."""
    from varitext.report import ColumnValues

    found = []
    if by is not None or documents.labels is not None:
        found.append(ColumnValues(by or "label", values_of(documents, by or "label")))
    if over_time is not None:
        found.append(ColumnValues(over_time, binned_values(documents, over_time, bins), over_time=True))
    elif documents.dates is not None:
        found.append(ColumnValues("date", binned_values(documents, None, bins), over_time=True))
    return found
