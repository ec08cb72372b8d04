"""Scores that another ranker gave to candidates, one per row of a table: question id, score, and the label if known.

Rows of one question share a `question_id`, or the text of the `question`. `candidate_id` is optional. Tables are those
of `own_questions.py`.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.documents import is_missing
from varitext.corpora.own_questions import QuestionColumns, judgement_of
from varitext.corpora.sources import SourceFile, combined_sha256
from varitext.corpora.tables import READERS, Row, listed, suffix_of, table_rows
from varitext.errors import InputError

SCORE = "score"  # column


class CandidateScores(NamedTuple):
    """One entry per candidate, [P], in the order of the file."""

    question_ids: np.ndarray
    candidate_ids: np.ndarray
    scores: np.ndarray
    labels: np.ndarray  # 1 right, 0 wrong or not read
    name: str = "scores"
    sha256: str = ""


def load_scores(
    path: Path, columns: QuestionColumns, score_column: str = SCORE, labelled: bool = True
) -> CandidateScores:
    """The scores in a file; labels are read if they must be there."""
    if suffix_of(path) not in READERS:
        raise InputError(f"{path}: unknown kind of file. Scores are read from {', '.join(READERS)}.")
    sources: list[SourceFile] = []
    found = _read(table_rows(path, sources), columns, score_column, labelled, str(path))
    return found._replace(name=str(path), sha256=combined_sha256(sources))


def scores_of_table(table: Any, columns: QuestionColumns, score_column: str = SCORE) -> CandidateScores:
    """The labelled scores in a DataFrame."""
    named = table.to_dict("list")
    values = (dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True))
    rows = (Row(row, f"row {number}") for number, row in enumerate(values, start=1))
    return _read(rows, columns, score_column, True, "the table")


def _read(
    rows: Iterable[Row], columns: QuestionColumns, score_column: str, labelled: bool, where: str
) -> CandidateScores:
    questions, candidates, scores, labels = [], [], [], []
    for number, row in enumerate(rows):
        questions.append(_question_id(row, columns))
        candidates.append(str(row.values.get("candidate_id", number)))
        scores.append(_score(_value(row, score_column), row.where))
        labels.append(judgement_of(row, columns).label if labelled else 0)
    if not scores:
        raise InputError(f"{where} has no scores")
    ids = np.array(questions), np.array(candidates)
    return CandidateScores(*ids, np.array(scores), np.array(labels))


def _value(row: Row, column: str) -> Any:
    if column not in row.values:
        raise InputError(f"{row.where}: no column {column!r}. Columns: {listed(row.values)}.")
    return row.values[column]


def _question_id(row: Row, columns: QuestionColumns) -> str:
    known = columns.question_id in row.values or columns.question not in row.values
    value = _value(row, columns.question_id if known else columns.question)
    if is_missing(value) or not str(value).strip():
        raise InputError(f"{row.where}: the question has no id")
    return str(value)


def _score(value: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: the score {str(value)[:40]!r} is not a number") from None
    if not math.isfinite(score):
        raise InputError(f"{where}: the score is {score}; it must be finite")
    return score
