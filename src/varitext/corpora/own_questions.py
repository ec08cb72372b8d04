"""Questions from users' files: a table with one question, answer and label per row, or a folder of train, dev and test.

Tables are .jsonl, .csv, .tsv and .parquet files, and pandas DataFrames. Rows of one question need not be adjacent: they
share a `question_id` if there is one, and the question's text otherwise. `candidate_id` and `position`, the sentence's
index in its document (from 0), are optional. `QuestionColumns` gives columns other names.
"""

import csv
import io
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from varitext.corpora.documents import is_missing
from varitext.corpora.encodings import decode
from varitext.corpora.parquet_files import parquet_rows
from varitext.corpora.question_answers import Candidate, Pair, QuestionAnswers, group_pairs, sentence_words
from varitext.corpora.sources import read_bytes, source_file
from varitext.corpora.text_files import separator_of, suffix_of
from varitext.errors import InputError

_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}  # as JSON, csv and pandas write them


@dataclass(frozen=True)
class QuestionColumns:
    """None: it has its usual name, `question`, `answer`, `label`, `question_id`; the last two need not be there."""

    question_column: str | None = None
    answer_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None  # of the question; rows of one question share it
    min_relevance: float | None = None  # labels are grades, and those of this grade or higher are right

    @property
    def question(self) -> str:
        return self.question_column or "question"

    @property
    def answer(self) -> str:
        return self.answer_column or "answer"

    @property
    def label(self) -> str:
        return self.label_column or "label"

    @property
    def question_id(self) -> str:
        return self.id_column or "question_id"

    def as_dict(self) -> dict[str, str | float]:
        """What was said, for the model folder."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def recorded(cls, corpus: Mapping[str, Any]) -> "QuestionColumns":
        """Those that a model folder has recorded of its corpus."""
        return cls(**{name: corpus.get(name) for name in asdict(cls())})

    def is_right(self, value: object) -> int | None:
        """1 for a label that says right, 0 for one that says wrong, None for what is neither."""
        if self.min_relevance is None:
            return _LABELS.get(str(value).strip().lower())
        try:
            grade = float(str(value))
        except ValueError:
            return None
        return None if math.isnan(grade) else int(grade >= self.min_relevance)


USUAL_COLUMNS = QuestionColumns()


PARTS = ("train", "dev", "test")
WHOLE = "all"  # the part of a file that is not divided


class Row(NamedTuple):
    values: Mapping[str, Any]
    where: str


def parts(path: Path) -> tuple[str, ...]:
    if not path.is_dir():
        return (WHOLE,)
    return tuple(part for part in PARTS if _part_of_folder(path, part))


def load(
    path: Path, part: str = "train", columns: QuestionColumns = USUAL_COLUMNS, labelled: bool = True
) -> QuestionAnswers:
    """The part of `path`; a file is loaded whole when asked for its training part.

    Unless it must be `labelled`, labels are not looked at, and all answers count as wrong.
    """
    path = Path(path)
    if path.is_dir():
        file = _part_of_folder(path, part)
        if file is None:
            raise InputError(f"{path} has no part {part!r}: a file {part}.jsonl or {part}.csv is expected there")
        return _load_file(file, part, columns, labelled)
    if part not in ("train", WHOLE):
        raise InputError(f"{path} is not divided into parts, so it has no {part!r} part")
    return _load_file(path, WHOLE, columns, labelled)


def from_table(table: Any, columns: QuestionColumns = USUAL_COLUMNS, labelled: bool = True) -> QuestionAnswers:
    """The rows of a DataFrame."""
    named = table.to_dict("list")
    values = (dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True))
    rows = (Row(row, f"row {number}") for number, row in enumerate(values, start=1))
    return QuestionAnswers("table", WHOLE, (), _questions(rows, "the table", columns, labelled))


def holds_questions(path: Path, columns: QuestionColumns = USUAL_COLUMNS) -> bool:
    """Whether the first row has what a question needs; documents do not. Nothing else is checked here."""
    file = next((found for part in PARTS if (found := _part_of_folder(path, part))), None) if path.is_dir() else path
    if file is None or suffix_of(file) not in READERS:
        return False
    first = next(READERS[suffix_of(file)](read_bytes(file), str(file)), None)
    return first is not None and first.values.keys() >= {columns.question, columns.answer, columns.label}


def _part_of_folder(folder: Path, part: str) -> Path | None:
    files = [file for file in sorted(folder.glob(f"{part}.*")) if file.is_file() and suffix_of(file) in READERS]
    if len(files) > 1:
        raise InputError(f"{folder} has more than one file for {part}: {', '.join(file.name for file in files)}")
    return files[0] if files else None


def _load_file(path: Path, part: str, columns: QuestionColumns, labelled: bool) -> QuestionAnswers:
    if suffix_of(path) not in READERS:
        raise InputError(f"{path} is not of a known kind; questions are read from {', '.join(READERS)}")
    content = read_bytes(path)
    questions = _questions(READERS[suffix_of(path)](content, str(path)), str(path), columns, labelled)
    return QuestionAnswers(str(path), part, (source_file(path.name, content),), questions)


def _questions(rows: Iterable[Row], where: str, columns: QuestionColumns, labelled: bool) -> tuple[Any, ...]:
    questions = group_pairs(_pair(row, number, columns, labelled) for number, row in enumerate(rows))
    if not questions:
        raise InputError(f"{where} has no questions")
    return questions


# Readers of files


def _read_jsonl(content: bytes, path: str) -> Iterator[Row]:
    for number, line in enumerate(decode(content, path).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                values = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: not valid JSON ({error})") from None
            if not isinstance(values, dict):
                raise InputError(f"{where}: a JSON object is expected, not {type(values).__name__}")
            yield Row(values, where)


def _read_csv(content: bytes, path: str) -> Iterator[Row]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a sentence may be longer than the 131,072 of the default
    text = decode(content, path)
    separator = separator_of(text.partition("\n")[0])
    lines = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    header: list[str] = []
    try:
        for values in filter(None, lines):
            where = f"{path}, line {lines.line_num}"
            if header and len(values) != len(header):
                raise InputError(f"{where}: {len(values)} columns, not {len(header)} as above")
            if header:
                yield Row(dict(zip(header, values, strict=True)), where)
            header = header or values
    except csv.Error as error:
        raise InputError(f"{path}, line {lines.line_num}: {error}") from None


def _read_parquet(content: bytes, path: str) -> Iterator[Row]:
    rows = parquet_rows(io.BytesIO(content), path)
    return (Row(values, f"{path}, row {number}") for values, number in zip(rows, itertools.count(1)))


READERS = {".jsonl": _read_jsonl, ".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet}


# A row


def _pair(row: Row, number: int, columns: QuestionColumns, labelled: bool) -> Pair:
    needed = [columns.question, columns.answer] + [columns.label] * labelled
    for name in needed:
        if name not in row.values:
            listed = ", ".join(map(repr, list(row.values)[:20]))
            raise InputError(f"{row.where}: has no {name!r}; its fields are {listed[:400]}")
    question, answer = _text(row, columns.question, "question"), _text(row, columns.answer, "answer")
    candidate = Candidate(
        id=_named(row, "candidate_id") or str(number),
        words=sentence_words(answer),
        text=answer,
        label=_label(row, columns) if labelled else 0,
        position=_position(row),
    )
    return Pair(_named(row, columns.question_id) or question, question, sentence_words(question), candidate, row.where)


def _named(row: Row, column: str) -> str:
    value = row.values.get(column)
    return "" if is_missing(value) else str(value)


def _text(row: Row, column: str, what: str) -> str:
    text = row.values[column]
    if not isinstance(text, str):
        raise InputError(f"{row.where}: the {what} is not text but {type(text).__name__}")
    if not text.strip():
        raise InputError(f"{row.where}: the {what} is empty")
    return text.strip()


def _label(row: Row, columns: QuestionColumns) -> int:
    value = row.values[columns.label]
    label = columns.is_right(value)
    if label is None:
        grade = columns.min_relevance is not None
        kind = (
            "a grade, a number" if grade else "1 (right) or 0 (wrong), or a grade, with min_relevance (--min-relevance)"
        )
        raise InputError(f"{row.where}: the label is {str(value)[:40]!r}; it must be {kind}")
    return label


def _position(row: Row) -> int | None:
    position = row.values.get("position")
    if is_missing(position) or position == "":
        return None
    plain = str(int(position)) if isinstance(position, float) and position.is_integer() else str(position)
    if not plain.isascii() or not plain.isdigit():
        raise InputError(f"{row.where}: the position is {str(position)[:40]!r}; it must be a whole number from 0")
    return int(plain)
