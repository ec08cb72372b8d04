"""Where documents and questions come from: corpora that are known by name, and the user's own files.

`load("20newsgroups")` or `load("articles.csv", text_column="body")` gives one plain record, `Documents`.
`load_questions("wikiqa")` or `load_questions("pairs.csv")` gives the other, `QuestionAnswers`.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from varitext.corpora import newsgroups, newsgroups_nvdm, own_files, own_questions, qasent, rcv1, wikiqa
from varitext.corpora.counts import check_counts
from varitext.corpora.documents import Columns, Documents
from varitext.corpora.own_questions import USUAL_COLUMNS, QuestionColumns
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.corpora.sources import CorpusSpec, LocalFile, SourceFile, combined_sha256, content_sha256
from varitext.errors import InputError

__all__ = [
    "CORPORA",
    "Columns",
    "CorpusSpec",
    "CorpusStatus",
    "Documents",
    "QuestionAnswers",
    "QuestionColumns",
    "SourceFile",
    "check_counts",
    "default_protocol",
    "describe",
    "fetch",
    "holds_questions",
    "load",
    "load_as",
    "load_documents",
    "load_questions",
    "parts",
    "question_parts",
    "subset",
]

_SPECS = (newsgroups_nvdm.SPEC, newsgroups.SPEC, rcv1.SPEC, wikiqa.SPEC, qasent.SPEC)
Spec = CorpusSpec[Documents] | CorpusSpec[QuestionAnswers]
CORPORA: dict[str, Spec] = {spec.name: spec for spec in _SPECS}
_PROTOCOLS = {wikiqa.NAME: wikiqa.PROTOCOL, qasent.NAME: qasent.PROTOCOL}


@dataclass(frozen=True)
class CorpusStatus:
    """A corpus known by name, and what of it is on this machine."""

    name: str
    description: str
    parts: tuple[str, ...]
    where: str  # the folder it would be read from, or "not here"
    files: tuple[SourceFile, ...]
    sha256: str | None  # of all files together


def load(
    corpus: str | Path,
    part: str = "train",
    data_dir: str | Path | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    date_column: str | None = None,
    encoding: str | None = None,
) -> Documents | QuestionAnswers:
    """One part of a named corpus, or of a file or folder of documents, or of standard input, which is called "-".

    Looks for a named corpus in `data_dir`, VARITEXT_DATA and the cache, then fetches it. A file or folder that is not
    divided into parts is loaded whole. Columns are those of a table; the record keeps the others, too.
    """
    return load_as(corpus, part, data_dir, Columns(text_column, id_column, label_column, date_column, encoding))


def load_as(
    corpus: str | Path, part: str, data_dir: str | Path | None, columns: Columns
) -> Documents | QuestionAnswers:
    """The same, with what is said of the columns in one record."""
    if corpus == own_files.STANDARD_INPUT:
        return own_files.load_standard_input(columns)
    if spec := _spec(corpus):
        if part not in spec.parts:
            raise InputError(f"{spec.name} has no part {part!r}; it has {', '.join(spec.parts)}")
        return spec.load(part, _folder(data_dir))
    return own_files.load(Path(corpus), part, columns)


def load_documents(
    corpus: str | Path, part: str = "train", data_dir: str | Path | None = None, text_column: str | None = None
) -> Documents:
    """One part of a named corpus of documents, or of the user's own."""
    loaded = load(corpus, part, data_dir, text_column)
    if not isinstance(loaded, Documents):
        raise InputError(f"{corpus} is a corpus of questions and answers, not of documents")
    return loaded


def load_questions(
    corpus: str | Path,
    part: str = "train",
    data_dir: str | Path | None = None,
    columns: QuestionColumns = USUAL_COLUMNS,
    labelled: bool = True,
) -> QuestionAnswers:
    """One part of a named corpus of questions, or of the user's own questions in a file or folder.

    Unless they must be `labelled`, files without labels will do, for ranking.
    """
    if not _spec(corpus):
        return own_questions.load(Path(corpus), part, columns, labelled)
    if columns != USUAL_COLUMNS:
        raise InputError(f"{corpus} is known by its name: columns are those of a file of yours")
    loaded = load(corpus, part, data_dir)
    if not isinstance(loaded, QuestionAnswers):
        raise InputError(f"{corpus} is a corpus of documents, not of questions and answers")
    return loaded


def parts(corpus: str | Path) -> tuple[str, ...]:
    """The parts of a corpus: ("train", "test"), or ("all",) for files that are not divided."""
    if corpus == own_files.STANDARD_INPUT:
        return (own_files.WHOLE,)
    spec = _spec(corpus)
    return spec.parts if spec else own_files.parts(Path(corpus))


def question_parts(corpus: str | Path) -> tuple[str, ...]:
    """The parts of a corpus of questions; none for a folder that has neither train, dev nor test."""
    spec = _spec(corpus)
    return spec.parts if spec else own_questions.parts(Path(corpus))


def holds_questions(corpus: str | Path, columns: QuestionColumns = USUAL_COLUMNS) -> bool:
    """Whether it is a corpus of questions, by its name or by the columns of a file or folder; else one of documents."""
    spec = _spec(corpus)
    return spec.name in _PROTOCOLS if spec else own_questions.holds_questions(Path(corpus), columns)


def default_protocol(corpus: str) -> str:
    """Which questions most papers count: those with a right answer, and of QASent those with a wrong one too."""
    return _PROTOCOLS.get(corpus, "answerable")


def describe(data_dir: str | Path | None = None) -> list[CorpusStatus]:
    """What is known by name, and where it was found; uses no network."""
    return [_status(spec, spec.locate(_folder(data_dir))) for spec in CORPORA.values()]


def fetch(name: str, data_dir: str | Path | None = None) -> CorpusStatus:
    """Get a named corpus onto this machine, if it is not there already."""
    spec = CORPORA.get(name)
    if spec is None:
        raise _unknown(name)
    return _status(spec, spec.fetch(_folder(data_dir)))


def place_of(corpus: Mapping[str, str]) -> str | None:
    """Its name, if it is a known one, or a path at which there is something; None if it is not here."""
    if corpus["name"] in CORPORA:
        return corpus["name"]
    for path in (corpus.get("path"), corpus["name"]):
        if path and Path(path).exists():
            return path
    return None


def load_again(
    corpus: Mapping[str, str], part: str, data_dir: str | Path | None, text_column: str | None = None
) -> Documents:
    """A part of it, read as for the fit. If it is the part that was learned from, it must still be the same."""
    place, name = place_of(corpus), corpus["name"]
    if place is None:
        raise InputError(f"{name}, which the model was fitted on, is not here")
    columns = Columns.recorded(corpus)
    columns = replace(columns, text_column=text_column or columns.text_column)
    documents = load_as(place, part, data_dir, columns)
    if not isinstance(documents, Documents):
        raise InputError(f"{name} is a corpus of questions and answers, not of documents")
    if documents.part == corpus["part"] and documents.sha256 != corpus["sha256"]:
        raise InputError(f"{name} is not what the model was fitted on: the file has changed since; name it to go on")
    return replace(documents, name=name)


def is_fitted_on(corpus: Mapping[str, str] | None, documents: Documents) -> bool:
    """Whether a model learned from these very documents."""
    fitted_on = corpus or {}
    return (fitted_on.get("sha256"), fitted_on.get("part")) == (documents.sha256, documents.part)


def _status(spec: Spec, found: list[LocalFile]) -> CorpusStatus:
    files = tuple(SourceFile(file.name, content_sha256(file.path)) for file in found)
    where = ", ".join(sorted({str(file.path.parent) for file in found})) or "not here"
    sha256 = combined_sha256(files) if files else None
    return CorpusStatus(spec.name, spec.description, spec.parts, where, files, sha256)


def _spec(corpus: str | Path) -> Spec | None:
    """The named corpus, or None for a path; an `InputError` for what is neither."""
    if isinstance(corpus, str) and corpus in CORPORA:
        return CORPORA[corpus]
    try:
        is_path = bool(str(corpus)) and Path(corpus).exists()
    except (OSError, ValueError):  # too long, or with a NUL: no path
        is_path = False
    if not is_path:
        raise _unknown(str(corpus))
    return None


def _unknown(name: str) -> InputError:
    close = difflib.get_close_matches(name, CORPORA, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return InputError(f"{name!r} is neither a file or folder nor a known corpus ({', '.join(CORPORA)}){hint}")


def _folder(data_dir: str | Path | None) -> Path | None:
    return Path(data_dir) if data_dir else None
