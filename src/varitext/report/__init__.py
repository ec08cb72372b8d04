"""Reports: what a model learned, as one HTML file that opens without a network, and its figures as files.

`documents/page.py` and `answers/page.py` collect what a report has, and `templates/` say how it reads. A chart is a
plain record (`drawing/charts.py`) that plotly draws for the page and matplotlib for files. `documents/figures.py` and
`answers/figures.py` name the figures that can be saved. The libraries are the extra `report`: what uses them is
imported only when it is asked for.
"""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from varitext.answers.ranker import AnswerRanker
from varitext.corpora import Documents, QuestionAnswers, default_protocol, is_fitted_on
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.files import write_text
from varitext.report.answers.evaluated import evaluate_answers
from varitext.report.documents.breakdown import Breakdown, ColumnValues, breakdown
from varitext.report.documents.sample import choose_documents
from varitext.report.extra import check_drawing_packages

__all__ = [
    "ColumnValues",
    "check_drawing_packages",
    "check_figure_names",
    "save_answer_figures",
    "save_corpus_figures",
    "save_document_figures",
    "write_answer_report",
    "write_corpus_report",
    "write_document_report",
]

# Documents


def write_document_report(
    model: DocumentModel,
    documents: Any,
    path: Path,
    *,
    record: PerplexityRecord,
    corpus_name: str,
    labels: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    folder: Path | None = None,
    columns: Sequence[ColumnValues] = (),
) -> None:
    """Write the report of a fitted model on `documents`, whole or not at all.

    `documents` is whatever `DocumentModel.posterior` takes, and `record` what `perplexity_record` says of them.
    `labels` colour a map; `titles` name the documents in it; topics are broken down by `columns`. The report names the
    files of the model's `folder`.
    """
    path = _checked(path)
    from varitext.report.documents.page import document_page

    model = _with_topics(model, documents)
    sample = choose_documents(model, documents, labels, titles)
    source = documents if isinstance(documents, Documents) else None
    found = _breakdowns(model, documents, columns)
    write_text(path, document_page(model, sample, record, corpus_name, source, folder, found))


def write_corpus_report(
    model: DocumentModel,
    documents: Documents,
    path: Path,
    record: PerplexityRecord | None = None,
    folder: Path | None = None,
    columns: Sequence[ColumnValues] = (),
) -> None:
    """The same for a corpus record, which brings its name, labels and texts."""
    _checked(path)
    fitted_on = is_fitted_on(model.fitted_.corpus, documents)
    write_document_report(
        model,
        documents,
        path,
        record=record or model.perplexity_record(documents),
        corpus_name=f"{documents.name} ({'fitted on these' if fitted_on else documents.part})",
        labels=documents.labels,
        titles=documents.texts,
        folder=folder,
        columns=columns,
    )


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
) -> list[Path]:
    """Save the figures named, or all, as `folder/NAME.svg` or `.png`; gives the files."""
    check_figure_names(model, names, file_format)
    from varitext.report.documents.figures import DOCUMENT_FIGURES, EvaluatedDocuments
    from varitext.report.drawing.saving import save_figures

    model = _with_topics(model, documents)
    sample = choose_documents(model, documents, labels, titles)
    evaluated = EvaluatedDocuments(model, sample, _breakdowns(model, documents, columns))
    return save_figures(DOCUMENT_FIGURES, evaluated, Path(folder), names, file_format)


def save_corpus_figures(
    model: DocumentModel,
    documents: Documents,
    folder: Path,
    names: Sequence[str] = (),
    file_format: str = "svg",
    columns: Sequence[ColumnValues] = (),
) -> list[Path]:
    """The same for a corpus record, which brings its labels and texts."""
    brought = {"labels": documents.labels, "titles": documents.texts}
    return save_document_figures(model, documents, folder, names, file_format, columns=columns, **brought)


def _breakdowns(model: DocumentModel, documents: Any, columns: Sequence[ColumnValues]) -> list[Breakdown]:
    found = (breakdown(model, documents, column) for column in columns)
    return [one for one in found if one is not None]


def _with_topics(model: DocumentModel, documents: Any) -> DocumentModel:
    """A model of an earlier version has none yet: they are found in the documents shown, and not kept."""
    return model if model.fitted_.regions is not None else copy.copy(model).refit_topics(documents)


# Answers


def write_answer_report(
    ranker: AnswerRanker,
    question_answers: QuestionAnswers,
    path: Path,
    protocol: str | None = None,
    folder: Path | None = None,
) -> None:
    """Write the report of a fitted ranker on these questions, whole or not at all.

    `protocol` says which questions count; without one it is the corpus's own, as for `varitext evaluate`.
    """
    path = _checked(path)
    from varitext.report.answers.page import answer_page

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
    """Save the figures named, or all, as `folder/NAME.svg` or `.png`; gives the files."""
    check_figure_names(ranker, names, file_format)
    from varitext.report.answers.figures import ANSWER_FIGURES
    from varitext.report.drawing.saving import save_figures

    evaluated = evaluate_answers(ranker, question_answers, protocol or default_protocol(question_answers.name))
    return save_figures(ANSWER_FIGURES, evaluated, Path(folder), names, file_format)


# Checks


def check_figure_names(model: DocumentModel | AnswerRanker, names: Sequence[str], file_format: str) -> None:
    """Whether the model has these figures, before documents or questions are looked for."""
    check_drawing_packages()
    from varitext.report.answers.figures import ANSWER_FIGURES
    from varitext.report.documents.figures import DOCUMENT_FIGURES
    from varitext.report.drawing.saving import check_figures

    check_figures(names, [*(DOCUMENT_FIGURES if isinstance(model, DocumentModel) else ANSWER_FIGURES)], file_format)


def _checked(path: Path) -> Path:
    check_drawing_packages()
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder: the report is one file, such as {path / 'report.html'}")
    return path
