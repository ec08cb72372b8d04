"""`varitext report` and `varitext figures`: what a model learned, as one HTML page or as image files."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from varitext.cli import options
from varitext.cli.input import binned_values, column_values, documents_for, questions_for
from varitext.cli.options import option, refuse_options
from varitext.cli.printing import MANY_DOCUMENTS, log
from varitext.errors import InputError
from varitext.loading import load_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from varitext.corpora import Documents
    from varitext.report import ColumnValues

Shown = Annotated[
    str | None,
    option("Documents or questions to show (default: the test part of the model's own corpus).", "CORPUS"),
]
Bins = Annotated[
    str | None,
    option("day, week, month, quarter or year. Chosen automatically if omitted.", "NAME", group=options.GROUPED),
]


class FileFormat(StrEnum):
    svg = "svg"
    png = "png"


def report(
    folder: options.ModelFolder,
    out: Annotated[Path, option("The HTML file. An existing one is replaced.", "FILE")] = Path("report.html"),
    corpus: Shown = None,
    part: options.Part = None,
    threads: options.Threads = None,
    trust: options.Trust = None,
    text_column: options.TextColumn = None,
    protocol: options.Protocol = None,
    by: options.By = None,
    over_time: options.OverTime = None,
    bins: Bins = None,
    data_dir: options.DataDir = None,
) -> None:
    """Write a report as one HTML file that opens offline.

    Documents: a map labelled with topics; the topics with sizes and typical documents; examples with their
    uncertainty; perplexity beside the unigram model and, where it applies, the paper; nearest words; training curves.
    Topics by label and over time are included automatically if the documents have labels and dates.

    Answers: MAP and MRR with intervals beside baselines and, where it applies, the paper; calibration; risk by
    coverage; results by question word; attention on selected questions; a Hinton diagram; training curves.

    Needs the extra: pip install 'varitext[report]'. To save the pictures as files, see `varitext figures`.

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
    model = load_any(folder, threads, trust=trust)
    if isinstance(model, DocumentModel):
        refuse_options({"protocol": protocol}, f"{folder} holds a model of documents")
        documents = documents_for(model, corpus, part, data_dir, text_column, "--corpus FILE")
        columns = _columns(documents, by, over_time, bins)
        model.use_cache(folder)
        write_document_report(model, documents, out, folder=folder, columns=columns, log=_log_for(documents))
        model.save_cache(folder)
    else:
        only_documents = {"text_column": text_column, "by": by, "over_time": over_time}
        refuse_options(only_documents, f"{folder} holds a ranker of answers")
        questions = questions_for(model, corpus, part, data_dir, "--corpus FILE")
        write_answer_report(model, questions, out, protocol, folder=folder)
    log(f"report in {out}")


def figures(
    folder: options.ModelFolder,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Figures to save (default: all).")
    ] = None,
    out: Annotated[Path, option("Folder for the files. Existing ones are replaced.", "DIR")] = Path("figures"),
    file_format: Annotated[FileFormat, option("Format of the files.", None, "--format")] = FileFormat.svg,
    corpus: Shown = None,
    part: options.Part = None,
    threads: options.Threads = None,
    trust: options.Trust = None,
    text_column: options.TextColumn = None,
    protocol: options.Protocol = None,
    by: options.By = None,
    over_time: options.OverTime = None,
    bins: Bins = None,
    data_dir: options.DataDir = None,
) -> None:
    """Save the figures of a report as SVG or PNG files.

    Documents: map, labels, topics, by-class, over-time, posteriors, training, dimensions.

    Answers: comparison, calibration, risk-coverage, question-words, attention, hinton, training.

    Each figure is one file, NAME.svg or NAME.png, with the data of `varitext report`. Needs the extra: pip install
    'varitext[report]'.

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
        raise InputError(f"{out} is a file: name a folder for the figures")
    check_can_write(out / "figure")
    model, names = load_any(folder, threads, trust=trust), names or []
    check_figure_names(model, names, file_format.value)
    if isinstance(model, DocumentModel):
        refuse_options({"protocol": protocol}, f"{folder} holds a model of documents")
        documents = documents_for(model, corpus, part, data_dir, text_column, "--corpus FILE")
        columns = _columns(documents, by, over_time, bins)
        to = _log_for(documents)
        model.use_cache(folder)
        paths = save_document_figures(model, documents, out, names, file_format.value, columns=columns, log=to)
        model.save_cache(folder)
    else:
        only_documents = {"text_column": text_column, "by": by, "over_time": over_time}
        refuse_options(only_documents, f"{folder} holds a ranker of answers")
        questions = questions_for(model, corpus, part, data_dir, "--corpus FILE")
        paths = save_answer_figures(model, questions, out, names, file_format.value, protocol)
    for path in paths:
        log(f"figure in {path}")


def _log_for(documents: "Documents") -> "Callable[[str], None] | None":
    """Steps are logged if they take long."""
    return (lambda message: log(f"{message} ...")) if len(documents) >= MANY_DOCUMENTS else None


def _columns(documents: "Documents", by: str | None, over_time: str | None, bins: str | None) -> "list[ColumnValues]":
    """The columns to break topics down by: those named, or else labels and dates if there are any."""
    from varitext.corpora.documents import Columns
    from varitext.report import ColumnValues

    found, read_as = [], documents.read_as or Columns()
    if by is not None or documents.labels is not None:
        found.append(ColumnValues(by or read_as.label_column or "label", column_values(documents, by or "label")))
    if over_time is not None:
        found.append(ColumnValues(over_time, binned_values(documents, over_time, bins), over_time=True))
    elif documents.dates is not None:
        found.append(ColumnValues(read_as.date_column or "date", binned_values(documents, None, bins), over_time=True))
    return found
