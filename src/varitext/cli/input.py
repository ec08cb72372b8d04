"""The documents, questions and texts of a command: those that were named, or those that the model was fitted on."""

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.segment import IndexedDocument
    from varitext.corpora import Columns, Documents, QuestionAnswers, QuestionColumns
    from varitext.documents.model import DocumentModel


def load_documents(
    corpus: str, part: str | None, data_dir: Path | None, columns: "Columns | None" = None
) -> "Documents":
    """The named part; by default the test part, or all documents of an undivided file."""
    from varitext.corpora import Columns, load_as

    return load_as(corpus, part or default_part(corpus), data_dir, columns or Columns())


def fitted_columns(model: "DocumentModel", corpus: str, part: str | None, text_column: str | None) -> "Columns":
    """The columns that were named for the fit, as far as these files have them; the text's may be named anew."""
    from varitext.corpora import CORPORA, Columns
    from varitext.corpora.own_files import STANDARD_INPUT, column_names, folder_or_file

    fitted = Columns.recorded(model.fitted_.corpus or {})
    if corpus in CORPORA or corpus == STANDARD_INPUT:
        return Columns(text_column)
    path, _ = folder_or_file(Path(corpus), part or default_part(corpus))
    there = column_names(path, fitted.encoding)
    wanted = {**fitted.as_dict(), "text_column": text_column or fitted.text_column or model.text_column}
    named = {name: value for name, value in wanted.items() if name == "encoding" or value in there}
    return Columns(**{**named, **({"text_column": text_column} if text_column else {})})


def default_part(corpus: str) -> str:
    from varitext.corpora import parts

    known = parts(corpus)
    return "test" if "test" in known else known[0]


def documents_for(
    model: "DocumentModel",
    corpus: str | None,
    part: str | None,
    data_dir: Path | None,
    text_column: str | None,
    hint: str,
) -> "Documents":
    """The named documents, or a part of the corpus that the model was fitted on: by default its test part.

    For an undivided file these are the training documents, which every command then reports.
    """
    from varitext.corpora import load_again

    if corpus is not None:
        return load_documents(corpus, part, data_dir, fitted_columns(model, corpus, part, text_column))
    part = part or default_part(own_corpus(model, "documents", hint))
    with warnings.catch_warnings():  # the fit has warned about the table already
        warnings.simplefilter("ignore", UserWarning)
        return load_again(model.fitted_.corpus or {}, part, data_dir, text_column)


def questions_for(
    ranker: "AnswerRanker",
    corpus: str | None,
    part: str | None,
    data_dir: Path | None,
    hint: str,
    columns: "QuestionColumns | None" = None,
) -> "QuestionAnswers":
    """The named questions, or a part of the corpus that the model was fitted on: by default its test part.

    Columns that are not named are those of the fit.
    """
    from varitext.corpora import CORPORA, QuestionColumns, load_questions, question_parts

    if corpus is None:
        corpus = own_corpus(ranker, "questions", hint)
        if part is None and "test" not in question_parts(corpus):
            raise InputError(
                f"{corpus}, which the model was fitted on, has no test part: "
                f"name questions that the model has not seen, {hint}"
            )
        _check_own_questions(ranker, corpus, data_dir, hint)
    if not (columns and columns.as_dict()):
        columns = QuestionColumns() if corpus in CORPORA else QuestionColumns.recorded(ranker.fitted_.corpus or {})
    whole = question_parts(corpus) == ("all",)
    return load_questions(corpus, part or ("all" if whole else "test"), data_dir, columns)


def _check_own_questions(ranker: "AnswerRanker", corpus: str, data_dir: Path | None, hint: str) -> None:
    """Refuse files that only have the name of those that the model was fitted on."""
    from varitext.corpora import CORPORA, QuestionColumns, load_questions

    recorded = ranker.fitted_.corpus
    if corpus in CORPORA:  # known by its checksum
        return
    with warnings.catch_warnings():  # the fit has warned about the table already
        warnings.simplefilter("ignore", UserWarning)
        found = load_questions(corpus, recorded["part"], data_dir, QuestionColumns.recorded(recorded))
    if found.sha256 != recorded["sha256"]:
        part = f"the {found.part} part of {corpus}" if found.part != "all" else corpus
        raise InputError(f"{part} is not what the model was fitted on, or has changed: name questions, {hint}")


def own_corpus(model: "DocumentModel | AnswerRanker", things: str, hint: str) -> str:
    """The name or path of the corpus that the model was fitted on, if it is here."""
    from varitext.corpora import place_of

    if not model.fitted_.corpus:
        raise InputError(f"the model names no corpus that it was fitted on: name {things}, {hint}")
    place = place_of(model.fitted_.corpus)
    if place is None:
        name = model.fitted_.corpus["name"]
        raise InputError(f"{name}, which the model was fitted on, is not here: name {things}, {hint}")
    return place


def column_values(documents: "Documents", column: str) -> list[Any]:
    """A column of the documents' file; "label" is the corpus's labels."""
    if column == "label" and documents.labels is not None:
        return list(documents.labels)
    if column not in documents.columns:
        there = ", ".join(documents.columns) or "none"
        raise InputError(f"{documents.name} has no column {column!r} beside its text. Columns: {there}.")
    return list(documents.columns[column])


def binned_values(documents: "Documents", column: str | None, bins: str | None) -> list[str | None]:
    """Names of time bins, which sort in the order of time; None where there is no date.

    Without a column these are the corpus's own dates; without `bins`, the width suits their range.
    """
    from varitext.corpora.dates import bins_of, parse_dates

    if column is None:
        return bins_of(documents.dates or (), bins)
    return bins_of(parse_dates(column_values(documents, column), column, documents.name), bins)


def trec_ids(questions: "QuestionAnswers") -> tuple[list[str], list[str]]:
    """The ids of question and candidate of each pair, as TREC files need them: one word each."""
    from varitext.evaluation.trec_files import one_word_ids

    names = one_word_ids([question.id for question in questions.questions])
    pairs = [
        (name, candidate)
        for name, question in zip(names, questions.questions, strict=True)
        for candidate in one_word_ids([candidate.id for candidate in question.candidates])
    ]
    return [name for name, _ in pairs], [candidate for _, candidate in pairs]


def stream_texts(file: str, text_column: str | None, id_column: str | None = None) -> Iterator["IndexedDocument"]:
    """Texts to rank or to index: the lines of a .txt file or of standard input, empty ones skipped; rows of a table."""
    from varitext.answers.segment import IndexedDocument
    from varitext.corpora.tables import READERS, suffix_of

    kind = "" if file == "-" else suffix_of(Path(file))
    where = "standard input" if file == "-" else file
    if kind in READERS:
        texts = _rows_of_table(Path(file), text_column, id_column)
    elif kind not in ("", ".txt"):
        raise InputError(f"{file}: unknown kind of file. Texts are read from .txt, {', '.join(READERS)} or -.")
    elif text_column is not None or id_column is not None:
        name = "--text-column" if text_column is not None else "--id-column"
        raise InputError(f"{name} does not apply: {where} has one text per line")
    else:
        texts = (IndexedDocument(line) for line in _lines(file, where))
    first = next(texts, None)
    if first is None:
        raise InputError(f"{where} has no texts")
    return chain([first], texts)


def _rows_of_table(path: Path, text_column: str | None, id_column: str | None) -> Iterator["IndexedDocument"]:
    """With the other columns as metadata."""
    from varitext.answers.segment import IndexedDocument
    from varitext.corpora.documents import Columns, check_column, is_missing
    from varitext.corpora.own_files import stream_files

    for number, row in enumerate(stream_files(path, Columns(text_column)).texts or (), start=1):
        values = {name: None if is_missing(value) else value for name, value in row.columns.items()}
        name = None
        if id_column is not None:
            check_column(id_column, list(values), str(path))
            name = str(values.pop(id_column) or "").strip()
            if not name:
                raise InputError(f"{path}: row {number} has no id in column {id_column!r}")
        yield IndexedDocument(row.text, name, values)


def _lines(file: str, where: str) -> Iterator[str]:
    from varitext.corpora.tables import hashed_content, text_lines

    opened = hashed_content(Path(file), []) if file != "-" else nullcontext(io.BufferedReader(_standard_input()))
    with opened as stream:
        yield from filter(None, (line.strip() for line in text_lines(stream, where)))


def _standard_input() -> Any:
    return sys.stdin.buffer
