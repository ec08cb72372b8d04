"""TREC run and qrels files, as trec_eval and similar tools read them.

run     question Q0 document rank score tag      one line per ranked candidate
qrels   question 0 document relevance            one line per judged candidate; relevance above 0 is right

Scores are written so that reading gives the same float64. trec_eval sorts by score, not by the rank column, holds
scores as 32-bit floats, and puts equal ones in *descending* order of document id (strcmp); ranks are written in that
order. So ids decide ties there; here ties are resolved in expectation (see `ranking`). Scores that tie by the rule of
`columns.py::merge_ties` are written as one number, so that both mean the same ties.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError
from varitext.evaluation.columns import merge_ties, numbers, same_length
from varitext.files import read_text, write_text

RUN_COLUMNS = ("question", "Q0", "document", "rank", "score", "tag")
QRELS_COLUMNS = ("question", "0", "document", "relevance")


class TrecRun(NamedTuple):
    """One entry per line, in the order of the file."""

    question_ids: np.ndarray
    document_ids: np.ndarray
    scores: np.ndarray


def write_run(
    path: Path, question_ids: ArrayLike, document_ids: ArrayLike, scores: ArrayLike, tag: str = "varitext"
) -> None:
    """Questions in the order of their first row, candidates from best to worst."""
    scores = numbers(scores, "scores")
    pairs = _pairs(question_ids, document_ids, scores)
    scores = merge_ties(scores, np.unique([question for question, _ in pairs], return_inverse=True)[1])
    _check_id(tag, "tag")
    by_question: dict[str, list[tuple[float, str]]] = {}
    for (question, document), score in zip(pairs, scores.tolist(), strict=True):
        by_question.setdefault(question, []).append((score, document))
    lines = (
        f"{question} Q0 {document} {rank} {score!r} {tag}\n"
        for question, candidates in by_question.items()
        for rank, (score, document) in enumerate(sorted(candidates, reverse=True), start=1)
    )
    write_text(Path(path), "".join(lines))


def write_qrels(path: Path, question_ids: ArrayLike, document_ids: ArrayLike, relevance: ArrayLike) -> None:
    relevance = numbers(relevance, "relevances")
    if (relevance != np.rint(relevance)).any():
        raise InputError("relevances in a qrels file are whole numbers")
    pairs = _pairs(question_ids, document_ids, relevance)
    rows = zip(pairs, relevance.astype(int).tolist(), strict=True)
    write_text(Path(path), "".join(f"{question} 0 {document} {grade}\n" for (question, document), grade in rows))


def read_run(path: Path) -> TrecRun:
    """Read a run file; the rank column is ignored."""
    rows, scores = [], []
    seen: set[tuple[str, str]] = set()
    for where, (question, _, document, _, score, _) in _lines(path, "run", RUN_COLUMNS):
        _check_new(seen, question, document, where)
        rows.append((question, document))
        scores.append(_score(score, where))
    questions, documents = zip(*rows, strict=True)
    return TrecRun(np.array(questions), np.array(documents), np.array(scores))


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """The relevance of each question's documents."""
    found: dict[str, dict[str, int]] = {}
    for where, (question, _, document, grade) in _lines(path, "qrels", QRELS_COLUMNS):
        grades = found.setdefault(question, {})
        if document in grades:
            raise InputError(f"{where}: document {document} of question {question} was there before")
        try:
            grades[document] = int(grade)
        except ValueError:
            raise InputError(f"{where}: the relevance {grade!r} is not a whole number") from None
    return found


def judged(run: TrecRun, qrels: dict[str, dict[str, int]], min_relevance: float = 1) -> tuple[TrecRun, np.ndarray]:
    """The lines of the run whose question has a judgement, and their labels: 1 from `min_relevance` on.

    A document without a judgement is wrong, as for trec_eval. A right one not listed in the run is not a candidate.
    """
    kept = np.isin(run.question_ids, list(qrels))
    if not kept.any():
        raise InputError("no question of the run is in the qrels")
    chosen = TrecRun(*(column[kept] for column in run))
    pairs = zip(chosen.question_ids.tolist(), chosen.document_ids.tolist(), strict=True)
    grades = [qrels[question].get(document, 0) for question, document in pairs]
    return chosen, (np.array(grades) >= min_relevance).astype(int)


def one_word_ids(ids: Sequence[str]) -> list[str]:
    """The ids as they are, if each is one word and none is repeated; otherwise their places, from 1."""
    if len(set(ids)) == len(ids) and all(one.split() == [one] for one in ids):
        return list(ids)
    return [str(place) for place in range(1, len(ids) + 1)]


def _pairs(question_ids: ArrayLike, document_ids: ArrayLike, values: np.ndarray) -> list[tuple[str, str]]:
    questions, documents = _ids(question_ids, "question id"), _ids(document_ids, "document id")
    same_length(question_ids=questions, document_ids=documents, values=values)
    pairs = list(zip(questions, documents, strict=True))
    seen: set[tuple[str, str]] = set()
    for row, (question, document) in enumerate(pairs):
        _check_new(seen, question, document, f"row {row}")
    return pairs


def _check_new(seen: set[tuple[str, str]], question: str, document: str, where: str) -> None:
    if (question, document) in seen:
        raise InputError(f"{where}: document {document} of question {question} was there before")
    seen.add((question, document))


def _lines(path: Path, kind: str, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each line's place, for messages, and its columns; empty lines are skipped."""
    found = False
    for number, line in enumerate(read_text(path).removeprefix("\ufeff").split("\n"), start=1):
        parts = line.split()
        if parts and len(parts) != len(columns):
            expected = " ".join(columns)
            raise InputError(f"{path}:{number}: a {kind} line is `{expected}`, but this one has {len(parts)} columns")
        if parts:
            found = True
            yield f"{path}:{number}", parts
    if not found:
        raise InputError(f"{path} has no {kind} line")


def _score(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{where}: the score {text!r} is not a number") from None
    if not math.isfinite(value):
        raise InputError(f"{where}: the score is {value}; it must be finite")
    return value


def _ids(values: ArrayLike, name: str) -> list[str]:
    ids = [str(value) for value in np.asarray(values, object).tolist()]
    for one in ids:
        _check_id(one, name)
    return ids


def _check_id(value: str, name: str) -> None:
    if value.split() != [value]:
        raise InputError(f"a {name} in a TREC file is one word without spaces, not {value!r}")
