"""TREC run and qrels files: what trec_eval and its kin read.

run     question Q0 document rank score tag      one line per ranked candidate
qrels   question 0 document relevance            one line per judged candidate; relevance above 0 is right

Scores are written so that reading gives the same float64. trec_eval goes by the score and not by the rank column, holds
scores as 32-bit floats, and puts equal ones in *descending* order of document id (strcmp); ranks are written in that
order. So ids decide ties there; here ties are resolved in expectation (see `ranking`). Scores that tie by the rule of
`ties.py` are written as one number, so that both mean the same ties.
"""

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
    question_ids: np.ndarray
    document_ids: np.ndarray
    scores: np.ndarray
    tag: str = "varitext"


class TrecQrels(NamedTuple):
    question_ids: np.ndarray
    document_ids: np.ndarray
    relevance: np.ndarray


class JudgedRun(NamedTuple):
    """What `ranking_record` takes."""

    scores: np.ndarray
    labels: np.ndarray
    question_ids: np.ndarray


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


def read_run(path: Path) -> TrecRun:
    """A run file; its order of lines is kept, its rank column is not looked at."""
    rows, scores = [], []
    seen: set[tuple[str, str]] = set()
    for where, (question, _, document, _, score, tag) in _lines(Path(path), "run", RUN_COLUMNS):
        _check_new(seen, question, document, where)
        scores.append(_number(score, where))
        rows.append((question, document, tag))
    tags = sorted({tag for *_, tag in rows})
    if len(tags) > 1:
        raise InputError(f"{path} holds {len(tags)} runs ({', '.join(tags[:3])}); one file holds one")
    questions, documents, _ = zip(*rows, strict=True)
    return TrecRun(np.array(questions), np.array(documents), np.array(scores), tags[0])


def write_qrels(path: Path, question_ids: ArrayLike, document_ids: ArrayLike, relevance: ArrayLike) -> None:
    relevance = numbers(relevance, "relevances")
    if (relevance != np.rint(relevance)).any():
        raise InputError("relevances in a qrels file are whole numbers")
    pairs = _pairs(question_ids, document_ids, relevance)
    rows = zip(pairs, relevance.astype(int).tolist(), strict=True)
    write_text(Path(path), "".join(f"{question} 0 {document} {grade}\n" for (question, document), grade in rows))


def read_qrels(path: Path) -> TrecQrels:
    rows = []
    seen: set[tuple[str, str]] = set()
    for where, (question, _, document, grade) in _lines(Path(path), "qrels", QRELS_COLUMNS):
        _check_new(seen, question, document, where)
        try:
            rows.append((question, document, int(grade)))
        except ValueError:
            raise InputError(f"{where}: the relevance {grade!r} is not a whole number") from None
    questions, documents, relevance = zip(*rows, strict=True)
    return TrecQrels(np.array(questions), np.array(documents), np.array(relevance))


def judged_run(run: TrecRun, qrels: TrecQrels) -> JudgedRun:
    """Scores and labels, one row per line of the run. A candidate without a judgement is wrong, as for trec_eval.

    A right answer that the run does not rank is refused: what it is worth depends on the tool, so rank every candidate.
    """
    judged = list(zip(qrels.question_ids.tolist(), qrels.document_ids.tolist(), strict=True))
    right = {pair for pair, grade in zip(judged, qrels.relevance.tolist(), strict=True) if grade > 0}
    ranked = list(zip(run.question_ids.tolist(), run.document_ids.tolist(), strict=True))
    missing = sorted(right.difference(ranked))
    if missing:
        question, document = missing[0]
        raise InputError(
            f"{len(missing)} right answers are not in the run, the first is {document} of question {question}"
        )
    return JudgedRun(run.scores, np.array([pair in right for pair in ranked], dtype=int), run.question_ids)


def one_word_ids(ids: Sequence[str]) -> list[str]:
    """The ids as they are, if each is one word and none stands twice; else their places, from 1."""
    if len(set(ids)) == len(ids) and all(one.split() == [one] for one in ids):
        return list(ids)
    return [str(place) for place in range(1, len(ids) + 1)]


# Inside


def _lines(path: Path, kind: str, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each line's place, for messages, and its columns; empty lines are passed over."""
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


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{where}: the score {text!r} is not a number") from None
    if value != value:
        raise InputError(f"{where}: the score is NaN, which has no place in a ranking")
    return value


def _check_new(seen: set[tuple[str, str]], question: str, document: str, where: str) -> None:
    if (question, document) in seen:
        raise InputError(f"{where}: document {document} of question {question} was there before")
    seen.add((question, document))


def _pairs(question_ids: ArrayLike, document_ids: ArrayLike, values: np.ndarray) -> list[tuple[str, str]]:
    questions, documents = _ids(question_ids, "question id"), _ids(document_ids, "document id")
    same_length(question_ids=questions, document_ids=documents, values=values)
    pairs = list(zip(questions, documents, strict=True))
    seen: set[tuple[str, str]] = set()
    for row, (question, document) in enumerate(pairs):
        _check_new(seen, question, document, f"row {row}")
    return pairs


def _ids(values: ArrayLike, name: str) -> list[str]:
    ids = [str(value) for value in np.asarray(values, object).tolist()]
    for one in ids:
        _check_id(one, name)
    return ids


def _check_id(value: str, name: str) -> None:
    if value.split() != [value]:
        raise InputError(f"a {name} in a TREC file is one word without spaces, not {value!r}")
