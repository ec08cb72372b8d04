"""TREC run and qrels files: what trec_eval and its kin read.

run     question Q0 document rank score tag      one line per ranked candidate
qrels   question 0 document relevance            one line per judged candidate; relevance above 0 is right

Scores are written so that reading gives the same float64. trec_eval goes by the score and not by the rank column, holds
scores as 32-bit floats, and puts equal ones in *descending* order of document id (strcmp); ranks are written in that
order. So ids decide ties there; here ties are resolved in expectation (see `ranking`). Scores that tie by the rule of
`columns.py::merge_ties` are written as one number, so that both mean the same ties.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError
from varitext.evaluation.columns import merge_ties, numbers, same_length
from varitext.files import write_text


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


def one_word_ids(ids: Sequence[str]) -> list[str]:
    """The ids as they are, if each is one word and none is repeated; else their places, from 1."""
    if len(set(ids)) == len(ids) and all(one.split() == [one] for one in ids):
        return list(ids)
    return [str(place) for place in range(1, len(ids) + 1)]


def _pairs(question_ids: ArrayLike, document_ids: ArrayLike, values: np.ndarray) -> list[tuple[str, str]]:
    questions, documents = _ids(question_ids, "question id"), _ids(document_ids, "document id")
    same_length(question_ids=questions, document_ids=documents, values=values)
    pairs = list(zip(questions, documents, strict=True))
    seen: set[tuple[str, str]] = set()
    for row, (question, document) in enumerate(pairs):
        if (question, document) in seen:
            raise InputError(f"row {row}: document {document} of question {question} was there before")
        seen.add((question, document))
    return pairs


def _ids(values: ArrayLike, name: str) -> list[str]:
    ids = [str(value) for value in np.asarray(values, object).tolist()]
    for one in ids:
        _check_id(one, name)
    return ids


def _check_id(value: str, name: str) -> None:
    if value.split() != [value]:
        raise InputError(f"a {name} in a TREC file is one word without spaces, not {value!r}")
