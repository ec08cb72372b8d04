"""Rankings of many questions as a file: .trec for trec_eval, or .csv, .jsonl and .parquet with a row per candidate."""

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.cli.checks import check_new_file
from varitext.cli.table_files import check_table_file, write_table
from varitext.errors import InputError
from varitext.files import write_text

if TYPE_CHECKING:
    from varitext.answers.ranking import Ranking
    from varitext.corpora import QuestionAnswers

FORMATS = (".trec", ".csv", ".jsonl", ".parquet")


def check_ranking_file(path: Path) -> None:
    """Say so before the work, not after, if rankings cannot be written to `path`."""
    if path.suffix not in FORMATS:
        kind = path.suffix or "a file without ending"
        raise InputError(f"{path}: rankings are written as {', '.join(FORMATS)}, not {kind}")
    check_new_file(path) if path.suffix in (".trec", ".jsonl") else check_table_file(path)


def write_rankings(path: Path, questions: "QuestionAnswers", rankings: Iterable["Ranking"]) -> None:
    rows = list(_rows(questions, rankings))
    if path.suffix == ".trec":
        return _write_trec(path, rows)
    if path.suffix == ".jsonl":
        return write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_table(path, rows)


def _rows(questions: "QuestionAnswers", rankings: Iterable["Ranking"]) -> Iterator[dict[str, Any]]:
    """Question after question, the best candidate first."""
    for question, ranking in zip(questions.questions, rankings, strict=True):
        for one in ranking.candidates:
            yield {
                "question_id": question.id,
                "question": question.text,
                "candidate_id": question.candidates[one.place].id,
                "answer": one.text,
                "rank": one.rank,
                "probability": one.probability,
                "probability_best": one.probability_best,
                "best_rank": one.rank_interval[0],
                "highest_rank": one.rank_interval[1],
                "rank_interval_probability": one.rank_interval_probability,
                "probability_none": ranking.probability_none,
                "answered": ranking.answered,
                "known": one.known,
            }


def _write_trec(path: Path, rows: list[dict[str, Any]]) -> None:
    from varitext.evaluation.trec_files import one_word_ids, write_run

    by_question: dict[str, list[str]] = {}
    for row in rows:
        by_question.setdefault(row["question_id"], []).append(row["candidate_id"])
    candidates = itertools.chain.from_iterable(map(one_word_ids, by_question.values()))
    short = dict(zip(by_question, one_word_ids(list(by_question)), strict=True))
    questions = [short[row["question_id"]] for row in rows]
    write_run(path, questions, list(candidates), [row["probability"] for row in rows])
