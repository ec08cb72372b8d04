"""Where documents and questions come from: named corpora and users' files.

`load_documents("20newsgroups")` or `load_documents("articles.csv", text_column="body")` returns a `Documents` record,
`load_questions("wikiqa")` or `load_questions("pairs.csv")` a `QuestionAnswers` record.
"""

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from varitext.corpora import (
    glove,
    minilm,
    newsgroups,
    newsgroups_nvdm,
    own_files,
    own_questions,
    qasent,
    rcv1,
    rcv1_sample,
    wikiqa,
)
from varitext.corpora.counts import check_counts
from varitext.corpora.documents import Columns, Documents
from varitext.corpora.own_questions import USUAL_COLUMNS, QuestionColumns
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.corpora.sources import LocalFile, SourceFile, combined_sha256, stated_sha256
from varitext.errors import InputError

__all__ = [
    "CORPORA",
    "Columns",
    "CorpusStatus",
    "Documents",
    "NamedCorpus",
    "QuestionAnswers",
    "QuestionColumns",
    "SourceFile",
    "check_counts",
    "default_protocol",
    "describe",
    "fetch",
    "holds_questions",
    "load_as",
    "load_documents",
    "load_questions",
    "parts",
    "question_parts",
    "subset",
]


class NamedSource(Protocol):
    """The interface of a module for something that can be fetched."""

    @property
    def NAME(self) -> str: ...

    @property
    def DESCRIPTION(self) -> str: ...

    @property
    def PARTS(self) -> tuple[str, ...]: ...

    def locate(self, data_dir: Path | None) -> list[LocalFile]:
        """The files it would be read from, without using the network; none if they are not all here."""

    def fetch(self, data_dir: Path | None) -> list[LocalFile]:
        """The same files, after downloading what is missing."""


class NamedCorpus(NamedSource, Protocol):
    """The interface of the module of a named corpus."""

    def load(self, part: str, data_dir: Path | None = None) -> Documents | QuestionAnswers: ...


_MODULES: list[NamedCorpus] = [newsgroups_nvdm, newsgroups, rcv1, rcv1_sample, wikiqa, qasent]
CORPORA = {module.NAME: module for module in _MODULES}
_PROTOCOLS = {wikiqa.NAME: wikiqa.PROTOCOL, qasent.NAME: qasent.PROTOCOL}


@dataclass(frozen=True)
class CorpusStatus:
    """A named corpus, and its files on this machine."""

    name: str
    description: str
    parts: tuple[str, ...]
    where: str  # the folder it would be read from, or "not here"
    files: tuple[SourceFile, ...]
    sha256: str | None  # of all files together


def load_documents(
    corpus: str | Path,
    part: str = "train",
    data_dir: str | Path | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    date_column: str | None = None,
    encoding: str | None = None,
) -> Documents:
    r"""Load one part of a named corpus of documents, or documents from your files.

    A named corpus is looked for in `data_dir`, in the folder that VARITEXT_DATA names and in the cache, and downloaded
    if it is in none of them.

    Parameters
    ----------
    corpus : str or Path
        Name of a corpus ("20newsgroups", "20newsgroups-nvdm", "rcv1", "rcv1-sample"), or path of a file (.csv, .tsv,
        .jsonl, .xlsx, .parquet, .txt, .feat, .npz; all but the last also as .gz) or folder (.txt files, shards, or the
        parts train and test), or "-" for standard input.
    part : str, default="train"
        Part of the corpus. Files that are not divided into parts are loaded whole.
    data_dir : str or Path, optional
        Folder to look in first for a named corpus.
    text_column : str, optional
        Column that holds the text (default: "text", or the only text column).
    id_column : str, optional
        Column that holds an id for each document.
    label_column : str, optional
        Column that holds a label for each document (default: "label", if every document has one).
    date_column : str, optional
        Column that holds the date of each document.
    encoding : str, optional
        Encoding of a text file (default: UTF-8, or UTF-16 with a byte order mark).

    Returns
    -------
    Documents
        The texts or counts, with labels, ids, dates and the other columns of a table.

    Examples
    --------
    >>> from pathlib import Path
    >>> from varitext import load_documents
    >>> _ = Path("articles.csv").write_text("id,body\n7,a rocket to the moon\n")
    >>> load_documents("articles.csv", text_column="body", id_column="id").texts
    ('a rocket to the moon',)
    """
    return load_as(corpus, part, data_dir, Columns(text_column, id_column, label_column, date_column, encoding))


def load_as(
    corpus: str | Path,
    part: str,
    data_dir: str | Path | None,
    columns: Columns,
    progress: own_files.Progress | None = None,
) -> Documents:
    """The same as `load_documents`, with the columns in one record; `progress` follows the reading of files."""
    if corpus == own_files.STANDARD_INPUT:
        return own_files.load_standard_input(columns)
    if not (module := _named(corpus)):
        return own_files.load(Path(corpus), part, columns, progress)
    loaded = _load_part(module, part, data_dir)
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
    r"""Load one part of a named corpus of questions, or questions from your files.

    Parameters
    ----------
    corpus : str or Path
        Name of a corpus ("wikiqa", "qasent"), or path of a file (.csv, .tsv, .jsonl, .xlsx, .parquet) with one
        question, candidate answer and label per row, or of a folder with such files for train, dev and test.
    part : str, default="train"
        Part of the corpus. A single file is loaded whole.
    data_dir : str or Path, optional
        Folder to look in first for a named corpus.
    columns : QuestionColumns, optional
        Names of the columns (default: question, answer, label, question_id).
    labelled : bool, default=True
        Require labels. With False, labels are ignored, for ranking.

    Returns
    -------
    QuestionAnswers
        The questions, each with its candidates.

    Examples
    --------
    >>> from pathlib import Path
    >>> from varitext import load_questions
    >>> _ = Path("pairs.csv").write_text("question,answer,label\nWho?,Ada did.,1\nWho?,In 1843.,0\n")
    >>> load_questions("pairs.csv").n_pairs
    2
    """
    if not (module := _named(corpus)):
        return own_questions.load(Path(corpus), part, columns, labelled)
    if columns != USUAL_COLUMNS:
        raise InputError(f"{corpus} is a named corpus: columns apply only to your own files")
    loaded = _load_part(module, part, data_dir)
    if not isinstance(loaded, QuestionAnswers):
        raise InputError(f"{corpus} is a corpus of documents, not of questions and answers")
    return loaded


def _load_part(module: NamedCorpus, part: str, data_dir: str | Path | None) -> Documents | QuestionAnswers:
    if part not in module.PARTS:
        raise InputError(f"{module.NAME} has no part {part!r}; it has {', '.join(module.PARTS)}")
    return module.load(part, _folder(data_dir))


def parts(corpus: str | Path) -> tuple[str, ...]:
    """The parts of a corpus: ("train", "test"), or ("all",) for files that are not divided."""
    if corpus == own_files.STANDARD_INPUT:
        return (own_files.WHOLE,)
    module = _named(corpus)
    return module.PARTS if module else own_files.parts(Path(corpus))


def question_parts(corpus: str | Path) -> tuple[str, ...]:
    """The parts of a corpus of questions; none for a folder that has neither train, dev nor test."""
    module = _named(corpus)
    return module.PARTS if module else own_questions.parts(Path(corpus))


def holds_questions(corpus: str | Path, columns: QuestionColumns = USUAL_COLUMNS) -> bool:
    """Whether a corpus holds questions, by its name or by the columns of a file or folder."""
    module = _named(corpus)
    return module.NAME in _PROTOCOLS if module else own_questions.holds_questions(Path(corpus), columns)


def default_protocol(corpus: str) -> str:
    """The protocol of most papers: questions with a right answer, and for QASent also with a wrong one."""
    return _PROTOCOLS.get(corpus, "answerable")


def describe(data_dir: str | Path | None = None) -> list[CorpusStatus]:
    """All named corpora, word vectors and the encoder, and where they were found, without using the network."""
    sources: list[NamedSource] = [*CORPORA.values(), glove, minilm]
    return [_status(module, module.locate(_folder(data_dir))) for module in sources]


def fetch(name: str, data_dir: str | Path | None = None, note: Callable[[str], None] = lambda _: None) -> CorpusStatus:
    """Download what `describe` lists by this name, unless it is here already; `note` reports a long download."""
    if long := {glove.NAME: glove, rcv1.NAME: rcv1}.get(name):
        return _status(long, long.fetch(_folder(data_dir), note))
    module = minilm if name == minilm.NAME else CORPORA.get(name)
    if module is None:
        raise _unknown(name, (*CORPORA, glove.NAME, minilm.NAME))
    return _status(module, module.fetch(_folder(data_dir)))


# The corpus that a model was fitted on


def place_of(corpus: Mapping[str, str]) -> str | None:
    """The name of a named corpus, or the path of the user's files; None if they are not here."""
    if corpus["name"] in CORPORA:
        return corpus["name"]
    return next((path for path in (corpus.get("path"), corpus["name"]) if path and Path(path).exists()), None)


def load_again(
    corpus: Mapping[str, str], part: str, data_dir: str | Path | None, text_column: str | None = None
) -> Documents:
    """A part of the corpus, read as for the fit. The part that the model was fitted on must be unchanged."""
    place, name = place_of(corpus), corpus["name"]
    if place is None:
        raise InputError(f"{name}, which the model was fitted on, is not here")
    columns = Columns.recorded(corpus)
    columns = replace(columns, text_column=text_column or columns.text_column)
    documents = load_as(place, part, data_dir, columns)
    if documents.part == corpus["part"] and documents.sha256 != corpus["sha256"]:
        raise InputError(f"{name} has changed since the model was fitted. Name a file to use it anyway.")
    return replace(documents, name=name)


def is_fitted_on(corpus: Mapping[str, str] | None, documents: Documents) -> bool:
    fitted_on = corpus or {}
    return (fitted_on.get("sha256"), fitted_on.get("part")) == (documents.sha256, documents.part)


def _status(module: NamedSource, found: list[LocalFile]) -> CorpusStatus:
    files = tuple(SourceFile(file.name, stated_sha256(file)) for file in found)
    where = ", ".join(sorted({str(file.path.parent) for file in found})) or "not here"
    sha256 = combined_sha256(files) if files else None
    return CorpusStatus(module.NAME, module.DESCRIPTION, module.PARTS, where, files, sha256)


def _named(corpus: str | Path) -> NamedCorpus | None:
    """The named corpus, or None for a path; an `InputError` for anything else."""
    if isinstance(corpus, str) and corpus in CORPORA:
        return CORPORA[corpus]
    try:
        is_path = bool(str(corpus)) and Path(corpus).exists()
    except (OSError, ValueError):  # too long, or with a NUL: not a path
        is_path = False
    if not is_path:
        raise _unknown(str(corpus))
    return None


def _unknown(name: str, known: Collection[str] = tuple(CORPORA)) -> InputError:
    close = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return InputError(f"{name!r} is neither a file or folder nor a known corpus ({', '.join(known)}){hint}")


def _folder(data_dir: str | Path | None) -> Path | None:
    return Path(data_dir) if data_dir else None
