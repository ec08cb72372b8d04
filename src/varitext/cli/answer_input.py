"""From the words that were typed to questions, candidates and word vectors."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from varitext.cli.inputs import own_questions
from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.corpora import QuestionAnswers, QuestionColumns
    from varitext.corpora.word_vectors import WordVectors

DEV = "dev"


def training_questions(
    corpus: str, part: str, data_dir: Path | None, columns: "QuestionColumns"
) -> tuple["QuestionAnswers", "QuestionAnswers | None"]:
    """The questions to learn from, and the corpus's own dev questions if it has any."""
    from varitext.corpora import load_questions, question_parts

    train = load_questions(corpus, part, data_dir, columns)
    has_dev = DEV in question_parts(corpus) and part != DEV
    return train, load_questions(corpus, DEV, data_dir, columns) if has_dev else None


def questions_for(
    ranker: "AnswerRanker",
    corpus: str | None,
    part: str | None,
    data_dir: Path | None,
    hint: str,
    columns: "QuestionColumns | None" = None,
) -> "QuestionAnswers":
    """The questions named, or a part of the corpus that the model was fitted on: its test part if none is asked for.

    The columns are those of the fit where none are named.
    """
    from varitext.corpora import CORPORA, QuestionColumns, load_questions, question_parts

    if corpus is None:
        corpus = own_questions(ranker, part, question_parts, hint)
    if not (columns and columns.as_dict()):
        columns = QuestionColumns() if corpus in CORPORA else QuestionColumns.recorded(ranker.fitted_.corpus or {})
    whole = question_parts(corpus) == ("all",)
    return load_questions(corpus, part or ("all" if whole else "test"), data_dir, columns)


def vector_source(typed: str | None, data_dir: Path | None) -> "WordVectors | str | None":
    """What was typed; else the vectors of the data folder named, if it has them."""
    from varitext.corpora.word_vectors import known_word_vectors

    return known_word_vectors(data_dir) if typed is None and data_dir is not None else typed


def read_candidates(file: str, text_column: str | None) -> list[str]:
    """One candidate per line, empty lines skipped, or one per row of a table."""
    from varitext.corpora.documents import Columns
    from varitext.corpora.own_files import stream_files
    from varitext.corpora.sources import read_bytes
    from varitext.corpora.tables import READERS, decode, suffix_of

    kind = "" if file == "-" else suffix_of(Path(file))
    where = "standard input" if file == "-" else file
    if kind in READERS:
        candidates = [row.text for row in stream_files(Path(file), Columns(text_column)).texts or ()]
    elif kind not in ("", ".txt"):
        raise InputError(f"{file}: unknown kind of file. Candidates are read from .txt, {', '.join(READERS)} or -.")
    elif text_column is not None:
        raise InputError(f"--text-column does not apply: {where} has one candidate per line")
    else:
        content = sys.stdin.buffer.read() if file == "-" else read_bytes(Path(file))
        candidates = [line.strip() for line in decode(content, where).split("\n") if line.strip()]
    if not candidates:
        raise InputError(f"{where} has no candidates")
    return candidates
