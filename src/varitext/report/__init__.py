"""Reports: what a model learned, as one HTML file that can be opened offline, and its figures as files.

`documents.py` and `answers.py` collect what a report shows; the templates in `templates/` lay it out. A chart is a
plain record (`varitext.charts`), which plotly draws on the page and matplotlib (`drawing.py`) in files. These libraries
are in the extra `report`.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from varitext.answers.ranker import AnswerRanker
from varitext.charts.records import ColumnValues
from varitext.corpora import QuestionAnswers, default_protocol
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.files import write_text

__all__ = [
    "ColumnValues",
    "check_drawing_packages",
    "check_figure_names",
    "save_answer_figures",
    "save_document_figures",
    "write_answer_report",
    "write_document_report",
]

PACKAGES = ("jinja2", "matplotlib", "openTSNE", "plotly")
FORMATS = ("svg", "png")


def check_drawing_packages() -> None:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise InputError(f"A report needs {' and '.join(missing)}: pip install 'varitext[report]'")


check_drawing_packages()  # before a module of this package imports one of them


# Documents


def write_document_report(
    model: DocumentModel,
    documents: Any,
    path: Path,
    *,
    record: PerplexityRecord | None = None,
    corpus_name: str | None = None,
    labels: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    folder: Path | None = None,
    columns: Sequence[ColumnValues] = (),
    log: Callable[[str], None] | None = None,
) -> None:
    """Write the report of a fitted document model as one HTML file.

    The file is written completely or not at all.

    Parameters
    ----------
    model : DocumentModel
        A fitted model.
    documents : Documents, sequence of str or sparse matrix
        The documents to show: whatever `DocumentModel.posterior` takes.
    path : Path
        The file. An existing file is replaced.
    record : PerplexityRecord, optional
        The model's perplexity on the documents (default: `model.perplexity_record(documents)`, on a random sample if
        there are more than 8,000 documents).
    corpus_name : str, optional
        The heading of the report (default: the name of the corpus, or "documents").
    labels : sequence of str, optional
        One label per document, to colour a second map (default: the labels of the corpus, if it has any).
    titles : sequence of str, optional
        One text per document, shown on the map (default: the texts of the corpus, if it has any).
    folder : Path, optional
        The model folder. If given, the report lists the SHA-256 of its files.
    columns : sequence of ColumnValues, optional
        Columns by which the report breaks down the topics.
    log : callable, optional
        Called with a short text before each step that can take a long time.

    Examples
    --------
    >>> from varitext.report import write_document_report  # doctest: +SKIP
    >>> write_document_report(model, documents, "report.html")  # doctest: +SKIP
    """
    path = _checked(path)
    from varitext.report.documents import document_page, perplexity_of, shown_documents, silent

    shown = shown_documents(model, documents, labels, titles, columns, log or silent)
    write_text(path, document_page(shown, record or perplexity_of(shown), corpus_name, folder))


def save_document_figures(
    model: DocumentModel,
    documents: Any,
    folder: Path,
    names: Sequence[str] = (),
    file_format: str = "svg",
    *,
    labels: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    columns: Sequence[ColumnValues] = (),
    log: Callable[[str], None] | None = None,
) -> list[Path]:
    """Save figures of the report of a document model as files.

    Parameters
    ----------
    model : DocumentModel
        A fitted model.
    documents : Documents, sequence of str or sparse matrix
        The documents to show: whatever `DocumentModel.posterior` takes.
    folder : Path
        The folder for the files `NAME.svg` or `NAME.png`. Existing files are replaced.
    names : sequence of str, default=()
        Which figures: map, labels, topics, by-class, over-time, posteriors, training, dimensions (default: all).
    file_format : {"svg", "png"}, default="svg"
        The format of the files.
    labels, titles, columns, log
        As for `write_document_report`.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> from varitext.report import save_document_figures  # doctest: +SKIP
    >>> save_document_figures(model, documents, "figures", ["map", "topics"])  # doctest: +SKIP
    """
    check_figure_names(model, names, file_format)
    from varitext.report.documents import DOCUMENT_FIGURES, shown_documents, silent
    from varitext.report.drawing import save_figures

    shown = shown_documents(model, documents, labels, titles, columns, log or silent)
    return save_figures(DOCUMENT_FIGURES, shown, Path(folder), names, file_format)


# Answers


def write_answer_report(
    ranker: AnswerRanker,
    question_answers: QuestionAnswers,
    path: Path,
    protocol: str | None = None,
    folder: Path | None = None,
) -> None:
    """Write the report of a fitted answer ranker as one HTML file.

    The file is written completely or not at all.

    Parameters
    ----------
    ranker : AnswerRanker
        A fitted ranker.
    question_answers : QuestionAnswers
        Labelled questions to evaluate it on.
    path : Path
        The file. An existing file is replaced.
    protocol : str, optional
        Which questions count (default: the protocol of the corpus, as in `varitext evaluate`).
    folder : Path, optional
        The model folder. If given, the report lists the SHA-256 of its files.

    Examples
    --------
    >>> from varitext.report import write_answer_report  # doctest: +SKIP
    >>> write_answer_report(ranker, questions, "report.html")  # doctest: +SKIP
    """
    path = _checked(path)
    from varitext.report.answers import answer_page, evaluate_answers

    evaluated = evaluate_answers(ranker, question_answers, protocol or default_protocol(question_answers.name))
    write_text(path, answer_page(evaluated, question_answers, folder))


def save_answer_figures(
    ranker: AnswerRanker,
    question_answers: QuestionAnswers,
    folder: Path,
    names: Sequence[str] = (),
    file_format: str = "svg",
    protocol: str | None = None,
) -> list[Path]:
    """Save figures of the report of an answer ranker as files.

    Parameters
    ----------
    ranker : AnswerRanker
        A fitted ranker.
    question_answers : QuestionAnswers
        Labelled questions to evaluate it on.
    folder : Path
        The folder for the files `NAME.svg` or `NAME.png`. Existing files are replaced.
    names : sequence of str, default=()
        Which figures: comparison, calibration, risk-coverage, question-words, attention, hinton, training
        (default: all that the model has).
    file_format : {"svg", "png"}, default="svg"
        The format of the files.
    protocol : str, optional
        Which questions count (default: the protocol of the corpus).

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> from varitext.report import save_answer_figures  # doctest: +SKIP
    >>> save_answer_figures(ranker, questions, "figures", ["calibration"])  # doctest: +SKIP
    """
    check_figure_names(ranker, names, file_format)
    from varitext.report.answers import ANSWER_FIGURES, evaluate_answers
    from varitext.report.drawing import save_figures

    evaluated = evaluate_answers(ranker, question_answers, protocol or default_protocol(question_answers.name))
    return save_figures(ANSWER_FIGURES, evaluated, Path(folder), names, file_format)


# Checks


def check_figure_names(model: DocumentModel | AnswerRanker, names: Sequence[str], file_format: str) -> None:
    """Raise an InputError if the model lacks a figure with one of these names. Needs no documents or questions."""
    check_drawing_packages()
    from varitext.report.answers import ANSWER_FIGURES
    from varitext.report.documents import DOCUMENT_FIGURES

    if file_format not in FORMATS:
        raise InputError(f"Figures are saved as {' or '.join(FORMATS)}, not {file_format!r}")
    known = [*(DOCUMENT_FIGURES if isinstance(model, DocumentModel) else ANSWER_FIGURES)]
    for name in names:
        if name not in known:
            raise InputError(f"No figure is called {name!r}. This model has {', '.join(known)}.")


def _checked(path: Path) -> Path:
    check_drawing_packages()
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder. The report is one file: {path / 'report.html'}, for example.")
    return path
